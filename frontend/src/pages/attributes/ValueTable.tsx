import { Button } from "../../components/Button";
import { counted, percent, range } from "../../components/figures";
import { IntervalBar } from "../../components/IntervalBar";
import { barParts, type Attribute, type Attributes, type Value } from "./tables";

export type ValueAction = "rename value" | "change phrases" | "move value" | "delete value";
type Props = {
  view: Attributes;
  attribute: Attribute;
  shown: string | null;
  onShow: (value: string) => void;
  isEditing: boolean;
  ticked: string[];
  onTick: (value: string) => void;
  onAct: (action: ValueAction, value: Value) => void;
};

/** The values of an attribute: right and wrong samples as bars and numbers, and failure rates with intervals. */
export function ValueTable({ view, attribute, shown, onShow, isEditing, ticked, onTick, onAct }: Props) {
  const longest = Math.max(1, attribute.unknown.total, ...attribute.values.map((value) => value.failures.total));
  const unknown: Value = { value_id: "", title: "not known", failures: attribute.unknown, training: null, phrases: [], merged: [] };
  const hasTraining = view.n_training > 0 && !isEditing;
  const isEmpty = (value: Value) => value.failures.total === 0 && attribute.state === "assigned" && !isEditing;
  const empty = attribute.values.filter(isEmpty);
  return (
    <div className="table-box" tabIndex={0} role="region" aria-label={`Values of ${attribute.name}`}>
      <table className="attribute-values">
        <caption className="unseen">Right and wrong samples of every value of {attribute.name}</caption>
        <thead>
          <tr>
            {isEditing && <th scope="col"><span className="unseen">Choose</span></th>}
            <th scope="col">Value</th>
            {!isEditing && <th scope="col" className="bar-cell">Right and wrong</th>}
            <th scope="col" className="number">Wrong</th>
            <th scope="col">Failure rate</th>
            {hasTraining && <th scope="col" className="number">In training</th>}
            {isEditing && <th scope="col">Change</th>}
          </tr>
        </thead>
        <tbody>
          {attribute.values.filter((value) => !isEmpty(value)).map((value) => (
            <tr key={value.value_id} className={value.value_id === shown ? "is-shown-value" : undefined}>
              {isEditing && (
                <td><input type="checkbox" aria-label={`Choose ${value.title} to merge`} checked={ticked.includes(value.value_id)} onChange={() => onTick(value.value_id)} /></td>
              )}
              <th scope="row">
                <button type="button" className="value-link" aria-pressed={value.value_id === shown} disabled={value.failures.total === 0} onClick={() => onShow(value.value_id)}>{value.title}</button>
                {value.merged.length > 0 && <span className="quiet attribute-small"> also {value.merged.join(", ")}</span>}
              </th>
              <Figures value={value} longest={longest} usual={view.failures.value} hasBar={!isEditing} />
              {hasTraining && <td className="number">{value.training ? percent(value.training.value) : "–"}</td>}
              {isEditing && <td><Actions value={value} isWorded={attribute.is_worded} onAct={onAct} /></td>}
            </tr>
          ))}
          {attribute.unknown.total > 0 && (
            <tr className="quiet">
              {isEditing && <td />}
              <th scope="row">not known</th>
              <Figures value={unknown} longest={longest} usual={view.failures.value} hasBar={!isEditing} />
              {hasTraining && <td className="number">–</td>}
              {isEditing && <td />}
            </tr>
          )}
        </tbody>
      </table>
      {empty.length > 0 && <p className="quiet attribute-small">No samples here: {empty.map((value) => value.title).join(", ")}.</p>}
    </div>
  );
}

function Figures({ value, longest, usual, hasBar }: { value: Value; longest: number; usual: number; hasBar: boolean }) {
  const { right, wrong } = barParts(value, longest);
  const { failures } = value;
  return (
    <>
      {hasBar && (
        <td className="bar-cell">
          <span className="result-bar" aria-hidden="true">
            <span className="right" style={{ width: `${right}%` }} />
            <span className="wrong" style={{ width: `${wrong}%` }} />
          </span>
        </td>
      )}
      <td className="number">{failures.total > 0 ? `${counted(failures.count)} of ${counted(failures.total)}` : "–"}</td>
      <td className="rate-cell">
        {failures.total > 0 ? (
          <>
            <span className="figure"><strong>{percent(failures.value)}</strong> <span className="quiet">{range(failures.interval)}</span></span>
            <IntervalBar rate={failures.value} interval={failures.interval} other={usual} label={`Failure rate of ${value.title}`} />
          </>
        ) : (
          <span className="quiet">no samples</span>
        )}
      </td>
    </>
  );
}

function Actions({ value, isWorded, onAct }: { value: Value; isWorded: boolean; onAct: Props["onAct"] }) {
  const actions: [ValueAction, string][] = [
    ["rename value", "Rename"],
    ...(isWorded ? ([["change phrases", "Words"], ["move value", "Move"]] as [ValueAction, string][]) : []),
    ["delete value", "Delete"],
  ];
  return (
    <span className="value-actions">
      {actions.map(([action, words]) => (
        <Button key={action} kind="quiet" aria-label={`${words} ${value.title}`} onClick={() => onAct(action, value)}>{words}</Button>
      ))}
    </span>
  );
}
