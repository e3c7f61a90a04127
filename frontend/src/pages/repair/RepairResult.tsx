import type { Schemas } from "../../api/client";
import { Card } from "../../components/Card";
import { chance, counted, isCertain, percent, points, pointsRange, range, share } from "../../components/figures";
import { PairedDots } from "./PairedDots";

type Section = Schemas["RepairSection"];
type Group = Schemas["RepairRow"];
type Change = Schemas["GroupChange"];
type Names = Record<string, string>;
type Props = { section: Section; names: Names };

const CHARTED = ["overall", "slice", "rest of the class"];
const MOST_CHARTED = 12;

/** One repair beside its baselines; what got worse is said first. */
export function RepairResult({ repair, names, isChosen = false }: { repair: Schemas["RepairView"]; names: Names; isChosen?: boolean }) {
  const { section } = repair;
  const body = (
    <>
      {repair.worse.map((sentence) => <p key={sentence} className={`note ${sentence.startsWith("Got worse") ? "bad" : sentence.startsWith("Lower") ? "warn" : ""}`}>{sentence}</p>)}
      {section.labelling && <p className="note warn">{section.labelling}</p>}
      {section.sentences.map((sentence) => <p key={sentence}>{sentence}</p>)}
      {section.rows.length > 0 && <BeforeAfter section={section} names={names} />}
      {section.rows.length > 0 && <GroupTable section={section} names={names} />}
      {section.spread.length > 0 && <SpreadTable title="How even it became" rows={section.spread} names={names} />}
      {section.given.length > 0 && <SpreadTable title="Over given groups" rows={section.given} names={names} />}
      {section.accounting.length > 0 && <AccountingTable section={section} names={names} />}
      {section.aftermath.length > 0 && (
        <>
          <h3>Looked for again</h3>
          {section.aftermath.map((sentence) => <p key={sentence}>{sentence}</p>)}
        </>
      )}
      {section.calibration && <p>{section.calibration}</p>}
      <details>
        <summary>{section.arms.length > 0 ? "What every arm was trained on" : "What else to know"}</summary>
        <ul>
          {section.arms.map((arm) => (
            <li key={arm.arm}>
              {names[arm.arm]}: {arm.note} Trained on {counted(arm.n_trained)} samples
              {arm.n_added > 0 && `, ${counted(arm.n_added)} of them from the pool`}{arm.n_synthetic > 0 && `, ${counted(arm.n_synthetic)} of them generated`}.
            </li>
          ))}
          {section.notes.map((note) => <li key={note}>{note}</li>)}
        </ul>
      </details>
    </>
  );
  return isChosen ? <Card title={section.title} className="repair-result">{body}</Card> : <div className="repair-result">{body}</div>;
}

const rightBefore = ({ before }: Group) => share(before.right_before, before.n_samples, before.interval_before);
const rightAfter = (change: Change) => share(change.right_after, change.n_samples, change.interval_after);
const changeOf = (change: Change) => (change.n_samples ? (change.right_after - change.right_before) / change.n_samples : 0);

/** Groups that matter most, as a chart: before, after the repair, and after every baseline. */
function BeforeAfter({ section, names }: Props) {
  const charted = section.rows.filter((group) => CHARTED.includes(group.kind) && group.before.n_samples > 0).slice(0, MOST_CHARTED);
  return (
    <>
      <h3>Before and after</h3>
      <p className="legend"><span><i className="dot-before" />before</span><span><i className="dot-after" />after</span><span><i className="dot-fell" />after, lower than before</span><span>lines: 95 % intervals; accuracy from 0 to 100 %, on {section.measured_on}</span></p>
      {charted.map((group) => (
        <div key={`${group.kind} ${group.group}`} className="dots-group">
          <p><strong>{group.group}</strong> <span className="quiet">{group.kind !== group.group && `${group.kind}, `}{counted(group.before.n_samples)} samples</span></p>
          {section.arms.map((arm, place) => {
            const change = group.after[place];
            if (!change) return null;
            return (
              <div key={arm.arm} className="dots-line">
                <span>{names[arm.arm]}{arm.is_baseline && <span className="quiet"> {arm.is_reference ? "reference" : "baseline"}</span>}</span>
                <PairedDots before={rightBefore(group)} after={rightAfter(change)} label={`${group.group}, ${names[arm.arm]}`} />
                <span className="figure">{percent(rightBefore(group).value)} → {percent(rightAfter(change).value)} ({points(changeOf(change))})</span>
              </div>
            );
          })}
        </div>
      ))}
    </>
  );
}

/** All groups as figures. */
function GroupTable({ section, names }: Props) {
  const caption = `Accuracy before and after, on ${section.measured_on}`;
  return (
    <details>
      <summary>All groups as a table</summary>
      <div className="table-box" tabIndex={0} role="region" aria-label={caption}>
        <table>
          <caption className="unseen">{caption}</caption>
          <thead>
            <tr>
              <th scope="col">Accuracy on</th><th scope="col" className="number">Samples</th><th scope="col" className="number">Before</th>
              {section.arms.map((arm) => <th key={arm.arm} scope="col" className="number">{names[arm.arm]}<br /><small>{arm.is_reference ? "reference, another model" : arm.is_baseline ? "baseline" : "the repair"}</small></th>)}
            </tr>
          </thead>
          <tbody>{section.rows.map((group) => <GroupLine key={`${group.kind} ${group.group}`} group={group} />)}</tbody>
        </table>
      </div>
      {section.n_unchanged > 0 && <p className="quiet">Classes not listed because nothing changed in them: {counted(section.n_unchanged)}.</p>}
      <p className="quiet">Small figures: samples gained and lost, and McNemar's exact p-value. * more than chance (p at most 0.05).</p>
    </details>
  );
}

/** One group as figures. */
function GroupLine({ group }: { group: Group }) {
  return (
    <tr>
      <th scope="row">{group.group}{group.kind !== group.group && <><br /><small>{group.kind}</small></>}</th>
      <td className="number">{counted(group.before.n_samples)}</td>
      <td className="number">{group.before.n_samples > 0 ? <>{percent(rightBefore(group).value)}<br /><small>{range(group.before.interval_before)}</small></> : "–"}</td>
      {group.after.map((change, place) => (
        <td key={place} className="number">
          {change && change.n_samples > 0 ? (
            <>
              {percent(rightAfter(change).value)} {points(changeOf(change))}{isCertain(change.q_value ?? change.p_value) && "*"}
              <br /><small>+{change.gained} −{change.lost}{change.gained !== change.lost && `, p ${chance(change.q_value ?? change.p_value)}`}</small>
            </>
          ) : "–"}
        </td>
      ))}
    </tr>
  );
}

/** How even every arm became, over its own groups or over given ones. */
function SpreadTable({ title, rows, names }: { title: string; rows: Section["spread"]; names: Names }) {
  return (
    <>
      <h3>{title}</h3>
      <div className="table-box" tabIndex={0} role="region" aria-label={title}>
        <table>
          <thead><tr><th scope="col">Arm</th><th scope="col" className="number">Lowest accuracy of a group</th><th scope="col">Now lowest</th><th scope="col" className="number">Average over groups</th><th scope="col" className="number">Gap, points</th></tr></thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.arm.arm}>
                <th scope="row">{names[row.arm.arm]}</th>
                <td className="number">{percent(row.spread.worst_before)} → {percent(row.spread.worst_after)}<br /><small>change {pointsRange(row.spread.worst_change.low, row.spread.worst_change.high)}</small></td>
                <td>{row.spread.worst_group}</td>
                <td className="number">{percent(row.spread.average_before)} → {percent(row.spread.average_after)}</td>
                <td className="number">{Math.round(100 * row.spread.gap_before)} → {Math.round(100 * row.spread.gap_after)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

/** Former failures that are right now, and formerly right samples that still are. */
function AccountingTable({ section, names }: Props) {
  return (
    <details>
      <summary>Failures resolved, and what was right before</summary>
      <div className="table-box" tabIndex={0} role="region" aria-label="Failures resolved">
        <table>
          <thead><tr><th scope="col">Samples</th><th scope="col">Share</th>{section.arms.map((arm) => <th key={arm.arm} scope="col" className="number">{names[arm.arm]}</th>)}</tr></thead>
          <tbody>
            {section.accounting.map((row) => (
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
