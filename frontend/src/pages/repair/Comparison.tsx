import type { Schemas } from "../../api/client";
import { Card } from "../../components/Card";
import { isCertain, percent, points, pointsRange } from "../../components/figures";
import { SortedTable, type Column } from "../../components/SortedTable";

type Row = Schemas["StrategyRow"];
type Move = Schemas["Move"] | null;
type Names = Record<string, string>;

const MOST_NAMED = 6;

function moved(move: Move) {
  if (!move) return "–";
  const { low, high } = move.interval;
  const isSure = isCertain(move.p_value) && (low > 0 || high < 0);
  return <span className={isSure ? (move.change > 0 ? "rose" : "fell") : undefined}>{points(move.change)}{isSure && "*"}<br /><small>{pointsRange(low, high)}</small></span>;
}

const columnsOf = (names: Names): Column<Row>[] => [
  { key: "title", title: "Strategy", cell: (row) => <>{names[row.strategy]}<br /><small>{row.is_baseline ? "baseline" : row.is_chosen ? "chosen" : "strategy"}</small></>, order: (row) => names[row.strategy] ?? row.strategy },
  { key: "slices", title: "Slices", cell: (row) => moved(row.on_slices), order: (row) => row.on_slices?.change ?? -2, isNumber: true },
  { key: "rival", title: "Best baseline on them", cell: (row) => (row.rival === null ? "–" : <>{points(row.rival[1].change)}<br /><small>{names[row.rival[0]]}</small></>), isNumber: true },
  { key: "rest", title: "Rest of class", cell: (row) => moved(row.on_rest), order: (row) => row.on_rest?.change ?? -2, isNumber: true },
  { key: "overall", title: "Overall", cell: (row) => moved(row.overall), order: (row) => row.overall?.change ?? -2, isNumber: true },
  { key: "lowest", title: "Lowest group", cell: (row) => (row.arm?.spread ? <>{percent(row.arm.spread.worst_after)}<br /><small>{percent(row.arm.spread.worst_before)} before</small></> : "–"), order: (row) => row.arm?.spread?.worst_after ?? -1, isNumber: true },
  { key: "given", title: "Lowest given group", cell: (row) => (row.arm?.given?.spread ? <>{percent(row.arm.given.spread.worst_after)}<br /><small>{percent(row.arm.given.spread.worst_before)} before</small></> : "–"), order: (row) => row.arm?.given?.spread?.worst_after ?? -1, isNumber: true },
  { key: "worse", title: "Got worse, by more than chance", cell: (row) => (row.note ? row.note : worse(row)) },
];

function worse(row: Row) {
  const unsure = row.n_lower - row.got_worse.length;
  const more = row.got_worse.length - MOST_NAMED;
  return (
    <>
      {row.got_worse.length === 0 ? "nothing" : row.got_worse.slice(0, MOST_NAMED).join(", ")}{more > 0 && ` and ${more} more`}
      {unsure > 0 && <><br /><small>{unsure} lower, which may be chance</small></>}
    </>
  );
}

/** Strategies side by side, all measured on the same samples. */
export function Comparison({ rows, names, measuredOn }: { rows: Row[]; names: Names; measuredOn: string }) {
  return (
    <Card title="Ways of repairing, compared">
      <p className="quiet">Change of accuracy in percentage points, with 95 % intervals, on {measuredOn}. * more than chance. “Best baseline” is matched to what the strategy chose; a strategy is worth something only beyond it.</p>
      <SortedTable rows={rows} columns={columnsOf(names).filter((one) => one.key !== "given" || rows.some((row) => row.arm?.given?.spread))} rowKey={(row) => row.strategy} caption="Strategies and baselines side by side" />
    </Card>
  );
}
