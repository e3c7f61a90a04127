import { useMemo, useState } from "react";
import { Button } from "../../components/Button";
import { percent, range } from "../../components/figures";
import { wordsOf } from "./CombinationList";
import { cellKey, chosenOf, heat, heatTable, type Attribute, type Chosen, type Combination } from "./tables";

type Props = {
  combinations: Combination[];
  first: Attribute;
  second: Attribute;
  usual: number;
  onShow: (chosen: Chosen[]) => void;
  onProve: ((combination: Combination) => void) | null;
  isBusy: boolean;
};

/** Two attributes against each other: the deeper the colour, the further the failure rate lies above the usual one. */
export function HeatTableView({ combinations, first, second, usual, onShow, onProve, isBusy }: Props) {
  const table = useMemo(() => heatTable(combinations, first, second), [combinations, first, second]);
  const [picked, setPicked] = useState<string | null>(null);
  const chosen = picked ? table.cells.get(picked) : undefined;
  const titleOf = (attribute: Attribute, id: string) => attribute.values.find((value) => value.value_id === id)?.title ?? id;
  if (table.rows.length === 0) return <p>No combination of the two has enough samples.</p>;
  return (
    <>
      <div className="table-box" tabIndex={0} role="region" aria-label={`${first.name} by ${second.name}`}>
        <table className="heat-table">
          <caption className="unseen">Failure rates of {first.name} (rows) by {second.name} (columns)</caption>
          <thead>
            <tr>
              <td className="quiet attribute-small">{first.name} ↓ {second.name} →</td>
              {table.columns.map((column) => <th key={column} scope="col">{titleOf(second, column)}</th>)}
            </tr>
          </thead>
          <tbody>
            {table.rows.map((row) => (
              <tr key={row}>
                <th scope="row">{titleOf(first, row)}</th>
                {table.columns.map((column) => {
                  const key = cellKey(row, column);
                  const cell = table.cells.get(key);
                  return (
                    <td key={column}>
                      {cell ? (
                        <button type="button" className={`heat-cell heat-${heat(cell.failures.value, usual)}`} aria-pressed={key === picked} onClick={() => setPicked(key)}>
                          <span className="unseen">{wordsOf(cell)}: </span>
                          <strong>{percent(cell.failures.value)}</strong>
                          <span>{cell.failures.count} of {cell.failures.total}</span>
                        </button>
                      ) : (
                        <span className="quiet attribute-small">too few</span>
                      )}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {chosen && (
        <div className="row chosen-cell" role="status">
          <p><strong>{wordsOf(chosen)}</strong>: {chosen.failures.count} of {chosen.failures.total} wrong, {percent(chosen.failures.value)} ({range(chosen.failures.interval)}), {percent(chosen.coverage.value)} of all failures.</p>
          <Button onClick={() => onShow(chosenOf(chosen))}>Look</Button>
          {onProve && <Button disabled={isBusy} onClick={() => onProve(chosen)}>Prove</Button>}
        </div>
      )}
    </>
  );
}
