import { Button } from "../../components/Button";
import { counted, percent, range } from "../../components/figures";
import { IntervalBar } from "../../components/IntervalBar";
import { chosenOf, type Chosen, type Combination } from "./tables";

type Props = {
  combinations: Combination[];
  usual: number;
  onShow: (chosen: Chosen[]) => void;
  onProve: ((combination: Combination) => void) | null;
  isBusy: boolean;
};

/** The words of a combination. */
export function wordsOf(combination: Combination): string {
  return combination.values.map((value) => `${value.attribute}: ${value.value}`).join(", ");
}

/** Combinations in order: the one whose failure rate is surely highest comes first. */
export function CombinationList({ combinations, usual, onShow, onProve, isBusy }: Props) {
  if (combinations.length === 0) return <p>No combination has enough samples and fails more often than usual.</p>;
  return (
    <div className="table-box tall-table" tabIndex={0} role="region" aria-label="Combinations, worst first">
      <table className="combination-table">
        <caption className="unseen">Combinations of attribute values, worst first</caption>
        <thead>
          <tr>
            <th scope="col">Combination</th>
            <th scope="col" className="number">Wrong</th>
            <th scope="col">Failure rate</th>
            <th scope="col" className="number" title="Failure rate divided by that of the class">Lift</th>
            <th scope="col" className="number" title="Share of all failures of the class">Coverage</th>
            <th scope="col"><span className="unseen">Do</span></th>
          </tr>
        </thead>
        <tbody>
          {combinations.map((combination) => (
            <tr key={wordsOf(combination)}>
              <th scope="row">
                {combination.values.map((value) => (
                  <span key={value.attribute_id} className="value-chip"><span className="quiet">{value.attribute}</span> {value.value}</span>
                ))}
              </th>
              <td className="number">{counted(combination.failures.count)} of {counted(combination.failures.total)}</td>
              <td className="rate-cell">
                <span className="figure"><strong>{percent(combination.failures.value)}</strong> <span className="quiet">{range(combination.failures.interval)}</span></span>
                <IntervalBar rate={combination.failures.value} interval={combination.failures.interval} other={usual} label={`Failure rate of ${wordsOf(combination)}`} />
              </td>
              <td className="number">{combination.lift === null ? "–" : `${combination.lift.toFixed(1)}×`}</td>
              <td className="number">{percent(combination.coverage.value)}</td>
              <td>
                <span className="value-actions">
                  <Button kind="quiet" aria-label={`Look at ${wordsOf(combination)}`} onClick={() => onShow(chosenOf(combination))}>Look</Button>
                  {onProve && <Button kind="quiet" disabled={isBusy} aria-label={`Prove ${wordsOf(combination)}`} onClick={() => onProve(combination)}>Prove</Button>}
                </span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
