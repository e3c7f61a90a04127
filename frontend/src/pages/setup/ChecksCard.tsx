import { useEffect, useRef } from "react";
import { Button } from "../../components/Button";
import { Card } from "../../components/Card";
import { ErrorNote } from "../../components/ErrorNote";
import { isUnderWay, JobProgress, useJob } from "../../components/jobs";

type Check = { check: string; state: "ok" | "notice" | "problem"; sentence: string; fix: string; settings_line: string };

const SIGNS = { ok: "✓", notice: "!", problem: "✗" };
const WORDS = { ok: "in order", notice: "worth knowing", problem: "a problem" };

/** Whether data and classifier fit together, and the beginning of the work. */
export function ChecksCard() {
  const preflight = useJob("preflight");
  const run = useJob("run");
  const { start, job, isRunning } = preflight;
  const asked = useRef(false);
  useEffect(() => {
    if (!asked.current && !isUnderWay(run.job)) {
      asked.current = true;
      start({});
    }
  }, [start, run.job]);
  const checks = job?.state === "done" ? ((job.result.checks ?? []) as Check[]) : [];
  const nProblems = checks.filter((check) => check.state === "problem").length;
  return (
    <>
      <Card title="3. Do they fit together?">
        {(isRunning || job?.state !== "done") && <JobProgress job={job} />}
        {preflight.error && <ErrorNote error={preflight.error} />}
        {!isRunning && checks.length > 0 && (
          <ul className="plain-list setup-checks">
            {checks.map((check) => (
              <li key={check.check} className={`is-${check.state}`}>
                <b aria-hidden="true">{SIGNS[check.state]}</b>
                <div>
                  <p><strong>{check.check}</strong> <span className="unseen">{WORDS[check.state]}:</span> {check.sentence}</p>
                  {check.fix && <p className="quiet">{check.fix}</p>}
                  {check.settings_line && <p><code>{check.settings_line}</code></p>}
                </div>
              </li>
            ))}
          </ul>
        )}
        {!isRunning && job?.state === "done" && checks.length === 0 && <p>Nothing has to be checked before this table is read.</p>}
        {!isRunning && job && <Button onClick={() => start({})}>Check again</Button>}
      </Card>
      <Card title="4. Look for failures">
        <p className="quiet">Every image is read once and put to the classifier, then failures are looked for, named and tested. You may close this page; the work goes on.</p>
        {run.job && <JobProgress job={run.job} />}
        {run.error && <ErrorNote error={run.error} />}
        {run.job?.state === "done" && <p role="status">It is done; the project is being opened.</p>}
        {!run.isRunning && run.job?.state !== "done" && (
          <Button kind="primary" disabled={isRunning || job?.state !== "done"} onClick={() => run.start({})}>{nProblems ? "Begin all the same" : "Begin"}</Button>
        )}
      </Card>
    </>
  );
}
