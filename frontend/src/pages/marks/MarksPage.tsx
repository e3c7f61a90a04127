import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { allBut, askAgain } from "../../api/askAgain";
import { api, serverRoot, unwrap, type Schemas } from "../../api/client";
import { isStatic } from "../../api/static";
import { useMayChange } from "../../app/session";
import { Button } from "../../components/Button";
import { Card } from "../../components/Card";
import { ErrorNote } from "../../components/ErrorNote";
import { counted, moment } from "../../components/figures";
import { Form } from "../../components/Form";
import { ImageStrip } from "../../components/ImageStrip";
import { Loaded } from "../../components/Loaded";
import { PageHead } from "../../components/PageHead";
import { renewMarks } from "../../marks/useMarks";
import { openSample } from "../../viewer/imageSet";
import "../../marks/marks.css";

type Marks = Schemas["MarksView"];
type Tool = "csv" | "label-studio" | "cvat" | "cleanlab";
const SHOWN = 24;
const KINDS: Record<string, string> = { label: "Label is wrong", unusable: "Unusable", note: "With a note", tag: "With a tag" };
const TOOLS: Record<Tool, string> = { csv: "Table (CSV)", "label-studio": "Label Studio", cvat: "CVAT", cleanlab: "cleanlab" };

/** What people said of images; how it leaves, comes back, and begins to count. */
export function MarksPage() {
  const found = useQuery({ queryKey: ["marks"], queryFn: () => unwrap(api.GET("/api/marks")), enabled: !isStatic() });
  return (
    <>
      <PageHead title="Marks">What people said of single images: a wrong label, no use, a note, a tag. Nothing of it counts before it is applied.</PageHead>
      {isStatic() ? (
        <p className="note">This needs a server: open the project with <code>weakspot serve</code>.</p>
      ) : (
        <Loaded query={found} what="the marks">
          {(marks) => (
            <div className="stack">
              <Counts marks={marks} />
              <Apply marks={marks} />
              <Files marks={marks} />
            </div>
          )}
        </Loaded>
      )}
    </>
  );
}

function Counts({ marks }: { marks: Marks }) {
  const total = Object.values(marks.counts).reduce((sum, count) => sum + count, 0);
  return (
    <Card title="Marked images">
      {total === 0 ? (
        <p className="quiet">Nothing is marked yet. Open an image and press W if its label is wrong, U if it is unusable, N for a note or T for a tag; or pick many on the page <Link href="/images">Images</Link> or the <Link href="/map">map</Link>.</p>
      ) : (
        <>
          <MarkedStrip />
          <p className="mark-counts">
            {Object.entries(marks.counts).map(([kind, count]) => count > 0 && <Link key={kind} href={`/images?mark=${kind}`}>{KINDS[kind] ?? kind}: {counted(count)}</Link>)}
            {marks.tags.slice(0, 30).map((tag) => <Link key={tag} href={`/images?mark=${encodeURIComponent(`tag:${tag}`)}`}>⚑ {tag}</Link>)}
          </p>
        </>
      )}
    </Card>
  );
}

/** The images that something was said of, the first of them. */
function MarkedStrip() {
  const query = { mark: "any" };
  const { data } = useQuery({ queryKey: ["images", "marked"], queryFn: () => unwrap(api.GET("/api/images", { params: { query: { ...query, limit: SHOWN } } })) });
  return data ? <ImageStrip title="" samples={data.images} tables={data.tables} side={96} onOpen={(row) => openSample(row, data.tables, query)} /> : null;
}

function Apply({ marks }: { marks: Marks }) {
  const mayChange = useMayChange();
  const queries = useQueryClient();
  const apply = useMutation({
    mutationFn: () => unwrap(api.POST("/api/marks/apply")),
    onSettled: () => askAgain(queries, allBut("session")),
  });
  if (marks.labels.length + marks.n_applied + marks.n_without_right + marks.n_of_proof === 0) return null;
  return (
    <Card title="Labels">
      <p>
        <strong>{counted(marks.n_waiting)}</strong> wait to be applied, <strong>{counted(marks.n_applied)}</strong> are applied.
        {marks.n_without_right > 0 && ` Of ${counted(marks.n_without_right)} the right label is not known; they cannot be applied.`}
        {marks.n_of_proof > 0 && ` ${counted(marks.n_of_proof)} cannot be applied: runs are cross-fitted here, so these labels prove slices.`}
        {marks.n_gone > 0 && ` ${counted(marks.n_gone)} are of images that are no longer shown.`}
      </p>
      <p className="quiet">
        Applied labels are used for looking, for finding slices and for training. Proofs stay by the labels as given, because nobody has looked at the images that prove. They are kept in <code>corrected_labels.csv</code> beside
        weakspot.toml, and runs from then on are of other data.
      </p>
      {mayChange && marks.n_waiting > 0 && <p><Button kind="primary" onClick={() => apply.mutate()} disabled={apply.isPending}>{apply.isPending ? "Applying …" : `Apply ${counted(marks.n_waiting)} ${marks.n_waiting === 1 ? "label" : "labels"}`}</Button></p>}
      {apply.isError && <ErrorNote error={apply.error} />}
      {marks.labels.length > 0 && (
        <div className="table-box" tabIndex={0} role="region" aria-label="Marked labels">
          <table className="mark-table">
            <thead><tr><th scope="col">File</th><th scope="col">Label now</th><th scope="col">Right</th><th scope="col">Who</th><th scope="col">State</th></tr></thead>
            <tbody>
              {marks.labels.map((one) => (
                <tr key={one.sample_id}>
                  <th scope="row"><a href={`#/image/${encodeURIComponent(one.sample_id)}?mark=any`}>{one.file}</a></th>
                  <td>{one.label.join(", ") || "none"}</td>
                  <td>{one.right === null ? "unusable" : one.right.join(", ") || "none"}</td>
                  <td>{one.by}, {moment(one.time)}</td>
                  <td>{one.is_applied ? <span className="badge">applied</span> : "waits"}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Card>
  );
}

function Files({ marks }: { marks: Marks }) {
  const mayChange = useMayChange();
  const hasMarks = Object.values(marks.counts).some((count) => count > 0);
  return (
    <Card title="Take along and bring back">
      {hasMarks && (
        <div className="row mark-files" role="group" aria-label="Download all marks">
          {(Object.keys(TOOLS) as Tool[]).filter((tool) => tool === "csv" || mayChange).map((tool) => (
            <a key={tool} className="button plain" href={`${serverRoot}/api/marks/files/${tool}`} download>{tool === "csv" ? "Download the table (CSV)" : `For ${TOOLS[tool]}`}</a>
          ))}
        </div>
      )}
      {mayChange ? <Upload /> : !hasMarks && <p className="quiet">There is nothing to download.</p>}
    </Card>
  );
}

function Upload() {
  const queries = useQueryClient();
  const [tool, setTool] = useState<Tool>("csv");
  const [file, setFile] = useState<File | null>(null);
  const reading = useMutation({
    mutationFn: (given: File) => {
      const form = new FormData();
      form.append("file", given);
      return unwrap(api.POST("/api/uploads/marks", { params: { query: { tool } }, body: { file: "" }, bodySerializer: () => form }));
    },
    onSettled: () => renewMarks(queries),
  });
  const read = reading.data;
  return (
    <Form className="stack" onSubmit={() => { if (file) reading.mutate(file); }}>
      <p className="quiet">A file that was downloaded here, or labels that people gave in another tool: what differs from the present label becomes a mark.</p>
      <div className="row mark-form">
        <label className="field"><span>Written by</span>
          <select value={tool} onChange={(event) => setTool(event.target.value as Tool)}>
            {(Object.keys(TOOLS) as Tool[]).filter((one) => one !== "cleanlab").map((one) => <option key={one} value={one}>{TOOLS[one]}</option>)}
          </select>
        </label>
        <label className="field"><span>File</span><input type="file" accept=".csv,.tsv,.json,.xml,.zip" onChange={(event) => setFile(event.target.files?.[0] ?? null)} /></label>
        <Button type="submit" disabled={!file || reading.isPending}>Read marks</Button>
      </div>
      <div role="status">
        {read && <p className="note">{counted(read.n_marked)} marks. {read.n_same > 0 && `${counted(read.n_same)} have that label already. `}{read.n_unknown > 0 && `${counted(read.n_unknown)} lines are about images or classes that are not here. `}{read.n_unseen > 0 && `${counted(read.n_unseen)} are about images that nobody may look at, and were left out.`}</p>}
      </div>
      {reading.isError && <ErrorNote error={reading.error} />}
    </Form>
  );
}
