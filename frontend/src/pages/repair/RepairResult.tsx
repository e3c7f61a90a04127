import type { Schemas } from "../../api/client";
import { Card } from "../../components/Card";
import { chance, counted, percent, range } from "../../components/figures";
import { PairedDots } from "./PairedDots";
import { points, pointsRange } from "./words";

type Repair = Schemas["RepairView"];
type Group = Schemas["GroupView"];

const DRAWN = ["overall", "slice", "rest of the class"];
const MOST_DRAWN = 12;

/** One repair beside its baselines; what got worse is said first. */
export function RepairResult({ repair, isChosen = false }: { repair: Repair; isChosen?: boolean }) {
  const body = (
    <>
      {repair.worse.map((sentence) => <p key={sentence} className={`note ${sentence.startsWith("Got worse") ? "bad" : sentence.startsWith("Lower") ? "warn" : ""}`}>{sentence}</p>)}
      {repair.labelling && <p className="note warn">{repair.labelling}</p>}
      {repair.sentences.map((sentence) => <p key={sentence}>{sentence}</p>)}
      {repair.groups.length > 0 && <BeforeAfter repair={repair} />}
      {repair.groups.length > 0 && <GroupTable repair={repair} />}
      {repair.spread.length > 0 && <SpreadTable repair={repair} />}
      {repair.accounting.length > 0 && <AccountingTable repair={repair} />}
      {repair.aftermath.length > 0 && (
        <>
          <h3>Looked for again</h3>
          {repair.aftermath.map((sentence) => <p key={sentence}>{sentence}</p>)}
        </>
      )}
      {repair.calibration && <p>{repair.calibration}</p>}
      <details>
        <summary>What every arm was trained on</summary>
        <ul>
          {repair.arms.map((arm) => (
            <li key={arm.arm}>
              {arm.title}: {arm.note} Trained on {counted(arm.n_trained)} samples
              {arm.n_added > 0 && `, ${counted(arm.n_added)} of them from the pool`}{arm.n_synthetic > 0 && `, ${counted(arm.n_synthetic)} of them generated`}.
            </li>
          ))}
          {repair.notes.map((note) => <li key={note}>{note}</li>)}
        </ul>
      </details>
    </>
  );
  return isChosen ? <Card title={repair.title} className="repair-result">{body}</Card> : <div className="repair-result">{body}</div>;
}

/** Groups that matter most, drawn: before, after the repair, and after every baseline. */
function BeforeAfter({ repair }: { repair: Repair }) {
  const drawn = repair.groups.filter((group) => DRAWN.includes(group.kind) && group.n_samples > 0).slice(0, MOST_DRAWN);
  return (
    <>
      <h3>Before and after</h3>
      <p className="legend"><span><i className="dot-before" />before</span><span><i className="dot-after" />after</span><span><i className="dot-fell" />after, lower than before</span><span>lines: 95 % intervals; accuracy from 0 to 100 %, on {repair.measured_on}</span></p>
      {drawn.map((group) => (
        <div key={`${group.kind} ${group.group}`} className="dots-group">
          <p><strong>{group.group}</strong> <span className="quiet">{group.kind !== group.group && `${group.kind}, `}{counted(group.n_samples)} samples</span></p>
          {repair.arms.map((arm, place) => {
            const change = group.after[place];
            if (!change) return null;
            return (
              <div key={arm.arm} className="dots-line">
                <span>{arm.title}{arm.is_baseline && <span className="quiet"> {arm.is_reference ? "reference" : "baseline"}</span>}</span>
                <PairedDots before={group.before} after={change.right} label={`${group.group}, ${arm.title}`} />
                <span className="figure">{percent(group.before.value)} → {percent(change.right.value)} ({points(change.change)})</span>
              </div>
            );
          })}
        </div>
      ))}
    </>
  );
}

/** All groups as figures. */
function GroupTable({ repair }: { repair: Repair }) {
  const caption = `Accuracy before and after, on ${repair.measured_on}`;
  return (
    <details>
      <summary>All groups as a table</summary>
      <div className="table-box" tabIndex={0} role="region" aria-label={caption}>
        <table>
          <caption className="unseen">{caption}</caption>
          <thead>
            <tr>
              <th scope="col">Accuracy on</th><th scope="col" className="number">Samples</th><th scope="col" className="number">Before</th>
              {repair.arms.map((arm) => <th key={arm.arm} scope="col" className="number">{arm.title}<br /><small>{arm.is_reference ? "reference, another model" : arm.is_baseline ? "baseline" : "the repair"}</small></th>)}
            </tr>
          </thead>
          <tbody>{repair.groups.map((group) => <GroupLine key={`${group.kind} ${group.group}`} group={group} />)}</tbody>
        </table>
      </div>
      {repair.n_unchanged > 0 && <p className="quiet">Classes not listed because nothing changed in them: {counted(repair.n_unchanged)}.</p>}
      <p className="quiet">Small figures: samples gained and lost, and McNemar's exact p-value. * more than chance (p at most 0.05).</p>
    </details>
  );
}

/** One group as figures. */
function GroupLine({ group }: { group: Group }) {
  return (
    <tr>
      <th scope="row">{group.group}{group.kind !== group.group && <><br /><small>{group.kind}</small></>}</th>
      <td className="number">{counted(group.n_samples)}</td>
      <td className="number">{group.n_samples > 0 ? <>{percent(group.before.value)}<br /><small>{range(group.before)}</small></> : "–"}</td>
      {group.after.map((change, place) => (
        <td key={place} className="number">
          {change && group.n_samples > 0 ? (
            <>
              {percent(change.right.value)} {points(change.change)}{change.is_certain && "*"}
              <br /><small>+{change.gained} −{change.lost}{change.gained !== change.lost && `, p ${chance(change.p_value)}`}</small>
            </>
          ) : "–"}
        </td>
      ))}
    </tr>
  );
}

/** How even every arm became. */
function SpreadTable({ repair }: { repair: Repair }) {
  return (
    <>
      <h3>How even it became</h3>
      <div className="table-box" tabIndex={0} role="region" aria-label="How even it became">
        <table>
          <thead><tr><th scope="col">Arm</th><th scope="col" className="number">Lowest accuracy of a group</th><th scope="col">Now lowest</th><th scope="col" className="number">Average over groups</th><th scope="col" className="number">Gap, points</th></tr></thead>
          <tbody>
            {repair.spread.map((row) => (
              <tr key={row.arm}>
                <th scope="row">{row.arm}</th>
                <td className="number">{percent(row.worst_before)} → {percent(row.worst_after)}<br /><small>change {pointsRange(row.worst_change_low, row.worst_change_high)}</small></td>
                <td>{row.worst_group}</td>
                <td className="number">{percent(row.average_before)} → {percent(row.average_after)}</td>
                <td className="number">{Math.round(100 * row.gap_before)} → {Math.round(100 * row.gap_after)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

/** Former failures that are right now, and formerly right samples that still are. */
function AccountingTable({ repair }: { repair: Repair }) {
  return (
    <details>
      <summary>Failures resolved, and what was right before</summary>
      <div className="table-box" tabIndex={0} role="region" aria-label="Failures resolved">
        <table>
          <thead><tr><th scope="col">Samples</th><th scope="col">Share</th>{repair.arms.map((arm) => <th key={arm.arm} scope="col" className="number">{arm.title}</th>)}</tr></thead>
          <tbody>
            {repair.accounting.map((row) => (
              <tr key={`${row.data} ${row.is_clean}`}>
                <th scope="row">{row.data}</th><td>{row.is_clean ? "formerly right, still right" : "former failures, now right"}</td>
                {row.shares.map((share, place) => <td key={place} className="number">{share && share.total > 0 ? <>{percent(share.value)}<br /><small>{share.count} of {share.total}</small></> : "–"}</td>)}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}
