import type { Schemas } from "../../api/client";
import { Card } from "../../components/Card";
import { counted } from "../../components/figures";
import { SortedTable, type Column } from "../../components/SortedTable";

type Method = Schemas["MethodView"];

const COLUMNS: Column<Method>[] = [
  { key: "method", title: "Method", cell: (one) => <>{one.method}{one.note && <p className="quiet">{one.note}</p>}</>, order: (one) => one.method },
  { key: "considered", title: "Looked at", cell: (one) => counted(one.n_considered), order: (one) => one.n_considered, isNumber: true },
  { key: "found", title: "Found", cell: (one) => counted(one.n_found), order: (one) => one.n_found, isNumber: true },
  { key: "tested", title: "Tested", cell: (one) => counted(one.n_tested), order: (one) => one.n_tested, isNumber: true },
  { key: "confirmed", title: "Confirmed", cell: (one) => counted(one.n_confirmed), order: (one) => one.n_confirmed, isNumber: true },
  { key: "seconds", title: "Seconds", cell: (one) => one.seconds.toFixed(1), order: (one) => one.seconds, isNumber: true },
];

/** What every method did, and why nothing could be said of some classes. */
export function Tried({ run }: { run: Schemas["RunFacts"] }) {
  return (
    <Card title="What was tried">
      {run.methods.length > 0 ? (
        <SortedTable rows={run.methods} columns={COLUMNS} rowKey={(one) => one.method} caption="What every method did" />
      ) : (
        <p className="quiet">No method was run; the slices of this run are what people said.</p>
      )}
      {run.notes.length > 0 && (
        <details>
          <summary>{run.notes.length === 1 ? "1 note on a class" : `${counted(run.notes.length)} notes on classes`}</summary>
          <dl className="facts">
            {run.notes.map((note) => <div key={`${note.class_name} ${note.note}`}><dt>{note.class_name}</dt><dd>{note.note}</dd></div>)}
          </dl>
        </details>
      )}
    </Card>
  );
}
