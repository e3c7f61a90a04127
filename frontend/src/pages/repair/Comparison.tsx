import type { Schemas } from "../../api/client";
import { Card } from "../../components/Card";
import { percent } from "../../components/figures";
import { SortedTable, type Column } from "../../components/SortedTable";
import { points, pointsRange } from "./words";

type Row = Schemas["StrategyView"];
type Move = Schemas["MoveView"] | null;

const MOST_NAMED = 6;

function moved(move: Move) {
  if (!move) return "–";
  return <span className={move.is_certain ? (move.change > 0 ? "rose" : "fell") : undefined}>{points(move.change)}{move.is_certain && "*"}<br /><small>{pointsRange(move.low, move.high)}</small></span>;
}

const COLUMNS: Column<Row>[] = [
  { key: "title", title: "Strategy", cell: (row) => <>{row.title}<br /><small>{row.is_baseline ? "baseline" : row.is_chosen ? "chosen" : "strategy"}</small></>, order: (row) => row.title },
  { key: "slices", title: "Slices", cell: (row) => moved(row.on_slices), order: (row) => row.on_slices?.change ?? -2, isNumber: true },
  { key: "rival", title: "Best baseline on them", cell: (row) => (row.rival_change === null ? "–" : <>{points(row.rival_change)}<br /><small>{row.rival}</small></>), isNumber: true },
  { key: "rest", title: "Rest of class", cell: (row) => moved(row.on_rest), order: (row) => row.on_rest?.change ?? -2, isNumber: true },
  { key: "overall", title: "Overall", cell: (row) => moved(row.overall), order: (row) => row.overall?.change ?? -2, isNumber: true },
  { key: "lowest", title: "Lowest group", cell: (row) => (row.worst_after === null ? "–" : <>{percent(row.worst_after)}<br /><small>{percent(row.worst_before)} before</small></>), order: (row) => row.worst_after ?? -1, isNumber: true },
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
export function Comparison({ rows, measuredOn }: { rows: Row[]; measuredOn: string }) {
  return (
    <Card title="Ways of repairing, compared">
      <p className="quiet">Change of accuracy in percentage points, with 95 % intervals, on {measuredOn}. * more than chance. “Best baseline” is matched to what the strategy chose; a strategy is worth something only beyond it.</p>
      <SortedTable rows={rows} columns={COLUMNS} rowKey={(row) => row.strategy} caption="Strategies and baselines side by side" />
    </Card>
  );
}
