import { serverRoot } from "../../api/client";
import { isStatic } from "../../api/static";
import { useMayChange } from "../../app/session";
import { Button } from "../../components/Button";
import { Card } from "../../components/Card";
import { ErrorNote } from "../../components/ErrorNote";
import { Loaded } from "../../components/Loaded";
import { chance, percent, score } from "../../components/figures";
import { SortedTable, type Column } from "../../components/SortedTable";
import { useJob, JobProgress } from "../../components/jobs";
import { duration } from "./activity";
import { useOwnerActions, useStudyTable, type Study, type Summary, type TableRow } from "./studyData";

const SOURCES: Record<string, string> = { own: "own", suggestion: "clicked", edited: "edited suggestion" };

const COLUMNS: Column<TableRow>[] = [
  { key: "person", title: "Person", order: (row) => row.person, cell: (row) => row.person },
  { key: "class", title: "Class", order: (row) => row.class_title, cell: (row) => row.class_title },
  { key: "phrase", title: "Phrase", order: (row) => row.phrase, cell: (row) => row.phrase },
  { key: "source", title: "Source", order: (row) => row.source, cell: (row) => SOURCES[row.source] ?? row.source },
  { key: "score", title: "Error Score", isNumber: true, order: (row) => row.score ?? -2, cell: (row) => score(row.score) },
  { key: "held", title: "Held out", isNumber: true, order: (row) => row.held_out_score ?? -2, cell: (row) => score(row.held_out_score) },
  { key: "confirmed", title: "Confirmed", isNumber: true, order: (row) => row.confirmed_score ?? -2, cell: (row) => (row.p_value === null ? "–" : `${score(row.confirmed_score)} (p ${chance(row.p_value)})`) },
  { key: "time", title: "After", isNumber: true, order: (row) => row.seconds, cell: (row) => duration(row.seconds) },
  { key: "accepted", title: "Accepted", order: (row) => (row.is_accepted ? 0 : 1), cell: (row) => (row.is_accepted ? "yes" : "") },
  { key: "worst", title: "Worst group, repaired", isNumber: true, order: (row) => row.worst_after ?? -1, cell: (row) => <Repaired row={row} /> },
  { key: "given", title: "Given groups: worst, gap", isNumber: true, hint: "Over groups that are the same for everybody, on test samples after the repair", order: (row) => row.given_worst_after ?? -1, cell: (row) => (row.given_worst_after === null ? "–" : `${percent(row.given_worst_after)} (before ${percent(row.given_worst_before)}), gap ${percent(row.given_gap_after)}`) },
];

/** Every phrase of a study, figures in sum, and the same as a file. */
export function StudyTableCard({ study }: { study: Study }) {
  const table = useStudyTable(study.study_id);
  const mayChange = useMayChange();
  const { repair } = useOwnerActions(study.study_id);
  const { job, isRunning } = useJob("study-repairs");
  const file = `${serverRoot}/api/studies/${study.study_id}/table.csv`;
  return (
    <Card title="Phrases" aside={!isStatic() && <span className="row"><a className="button plain" href={file} download="study.csv">Download as CSV</a><a className="button plain" href={file.replace("table.csv", "timings.csv")} download="timings.csv">Timings</a></span>}>
      <Loaded query={table} what="the phrases">
        {({ rows, summary }) =>
          rows.length === 0 ? <p className="quiet">Nothing was said yet.</p> : (
            <div className="stack">
              <SummaryLine summary={summary} />
              {mayChange && (
                <div className="row">
                  <Button onClick={() => repair.mutate(false)} disabled={isRunning || repair.isPending}>Repair by the best phrases</Button>
                  <Button kind="quiet" onClick={() => repair.mutate(true)} disabled={isRunning || repair.isPending}>by all phrases</Button>
                  <span className="quiet">Retrains the last layer for each phrase and measures the worst group on test samples.</span>
                </div>
              )}
              {repair.error && <ErrorNote error={repair.error} />}
              {job?.arguments.study === study.study_id && <JobProgress job={job} />}
              <SortedTable rows={rows} columns={study.options.groups ? COLUMNS : COLUMNS.filter((column) => column.key !== "given")} rowKey={(row) => `${row.person_id} ${row.created} ${row.class_title} ${row.phrase} ${row.confirmed_score}`} caption="All phrases of the study" />
            </div>
          )
        }
      </Loaded>
    </Card>
  );
}

/** Accuracy of the worst group before and after the repair. */
function Repaired({ row }: { row: TableRow }) {
  if (row.worst_before === null) return row.note ? <span title={row.note}>not possible<span className="unseen">: {row.note}</span></span> : <>–</>;
  return <>{percent(row.worst_before)} → {percent(row.worst_after)}</>;
}

type Figure = Summary["minutes"];

/** The figures that a paper would report. */
function SummaryLine({ summary }: { summary: Summary }) {
  const said = (figure: Figure, show: (value: number | null) => string) => (figure.n === 0 ? "–" : `${show(figure.mean)}${figure.sd === null ? "" : ` (SD ${show(figure.sd)})`}`);
  const facts: [string, string][] = [
    ["People", String(summary.n_people)],
    ["Phrases", `${summary.n_phrases}, ${summary.n_accepted} accepted`],
    ["Best Error Score, a person and class", said(summary.best_score, score)],
    ["The same held out", said(summary.best_held_out_score, score)],
    ["Minutes, a person and class", said(summary.minutes, (value) => (value ?? 0).toFixed(1))],
    ["Worst group after repair", said(summary.worst_after, percent)],
    ...(summary.given_worst_after.n ? [["Worst given group after repair", said(summary.given_worst_after, percent)], ["Gap over given groups", said(summary.given_gap_after, percent)]] as [string, string][] : []),
  ];
  return (
    <dl className="study-summary">
      {facts.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}
    </dl>
  );
}
