import { Link } from "wouter";
import type { Schemas } from "../../api/client";
import { Card } from "../../components/Card";
import { counted, percent, unbroken } from "../../components/figures";

type Answer = Schemas["FirstAnswer"];

/** The one sentence to read first, and what is wrong with the set-up. */
export function Headline({ answer }: { answer: Answer }) {
  return (
    <div className="headline-card">
      <p className="headline">{unbroken(answer.headline)}</p>
      {answer.problems.map((one) => (
        <div key={one.check} className="note bad" role="alert">
          <p><strong>Problem: {one.check}.</strong> {one.sentence} {one.fix}</p>
          {one.settings_line && <p>In weakspot.toml: <code>{one.settings_line}</code></p>}
        </div>
      ))}
    </div>
  );
}

/** What the terminal and the report say first too: the classes that do worst, what is wrong, what to do. */
export function FirstAnswer({ answer }: { answer: Answer }) {
  const hidden = answer.n_findings - answer.findings.length;
  return (
    <Card className="headline-card" title="In short">
      <ClassRows answer={answer} />
      <h3>Findings <small className="quiet">{answer.findings_note}</small></h3>
      {answer.findings.length > 0 && (
        <ol>
          {answer.findings.map((one) => (
            <li key={`${one.slice_id} ${one.sentence}`}>
              {one.slice_id && <><Link href={`/slices/${one.slice_id}`}>{one.title}</Link> – </>}
              {unbroken(one.sentence)}
            </li>
          ))}
        </ol>
      )}
      {hidden > 0 && <p className="quiet">{counted(hidden)} more, on <Link href="/slices">Slices</Link>.</p>}
      <ToDo answer={answer} />
      {answer.repaired && <p><strong>Repair.</strong> {answer.repaired}</p>}
      {answer.not_confirmed && <p><strong>Not confirmed.</strong> {answer.not_confirmed}.</p>}
      {answer.checks && <p><strong>Checks.</strong> {answer.checks}.</p>}
    </Card>
  );
}

function ToDo({ answer }: { answer: Answer }) {
  if (answer.to_do.length === 0) return null;
  return (
    <>
      <h3>To do</h3>
      <ol>
        {answer.to_do.map((one) => (
          <li key={one.sentence}>
            {one.sentence}
            {one.command && !one.sentence.includes(one.command) && <><br /><code>{one.command}</code></>}
          </li>
        ))}
      </ol>
    </>
  );
}

function ClassRows({ answer }: { answer: Answer }) {
  if (answer.classes.length === 0) return null;
  const isPart = answer.classes.length < answer.n_classes;
  return (
    <div className="table-box" tabIndex={0} role="region" aria-label="The classes that do worst">
      <table className="first-classes">
        <thead>
          <tr>
            <th scope="col">{isPart ? `Worst ${answer.classes.length} of ${counted(answer.n_classes)} classes` : "Class"}</th>
            <th scope="col" className="number" colSpan={2}>Right</th>
            <th scope="col">Mostly taken for</th>
          </tr>
        </thead>
        <tbody>
          {answer.classes.map((row) => (
            <tr key={row.name} className={row.is_failing ? "is-failing" : ""}>
              <th scope="row">{row.is_failing && "! "}<Link href={`/classes/${encodeURIComponent(row.name)}`}>{row.name}</Link></th>
              <td className="number">{counted(row.right.count)} of {counted(row.right.total)}</td>
              <td className="number">{percent(row.right.value)}</td>
              <td>{row.taken_for.map((one) => `${one.name} ${counted(one.number)}`).join(", ")}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
