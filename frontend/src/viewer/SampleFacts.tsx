import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { api, unwrap, type Schemas } from "../api/client";
import { isStatic } from "../api/static";
import { useSession } from "../app/session";
import { percent } from "../components/figures";
import { CopyButton } from "./CopyButton";

type Facts = Schemas["SampleFacts"];

/** Label, prediction, probabilities, slices, columns and the file of a sample. */
export function SampleFacts({ facts }: { facts: Facts }) {
  const kind = facts.is_failure === null ? "" : facts.is_failure ? "wrong" : "right";
  return (
    <>
      <p className={`viewer-verdict ${kind && `is-${kind}`}`}>
        {kind && <b>{facts.is_failure ? "✗ Wrong" : "✓ Right"}</b>} It is <strong>{facts.labels.join(", ") || "not labelled"}</strong>; the classifier says <strong>{facts.answers.join(", ") || "nothing"}</strong>.{facts.given_labels && <> The label was corrected; the source says <strong>{facts.given_labels.join(", ") || "nothing"}</strong>.</>}
      </p>
      <Probabilities facts={facts} />
      <dl className="facts">
        <FileLines facts={facts} />
        {facts.width > 0 && <><dt>Size</dt><dd className="figure">{facts.width} × {facts.height}</dd></>}
        <dt>Split</dt>
        <dd>{facts.split}</dd>
        {facts.slices.length > 0 && (
          <>
            <dt>In slices</dt>
            <dd>
              <ul className="plain-list">
                {facts.slices.map((one) => <li key={one.slice_id}><Link href={`/slices/${one.slice_id}`}>{one.title}</Link> <span className="quiet">{one.verdict}</span></li>)}
              </ul>
            </dd>
          </>
        )}
        {facts.columns.map((column) => <div key={column.name} className="fact"><dt>{column.name}</dt><dd>{column.value}</dd></div>)}
      </dl>
    </>
  );
}

function Probabilities({ facts }: { facts: Facts }) {
  if (facts.probabilities.length === 0) return null;
  return (
    <ul className="plain-list viewer-probabilities" aria-label="Probabilities">
      {facts.probabilities.map((one) => (
        <li key={one.class_name}>
          <span className={facts.labels.includes(one.class_name) ? "is-true" : ""}>{one.class_name}</span>
          <meter min={0} max={1} value={one.probability} aria-label={`${one.class_name}: ${percent(one.probability)}`} />
          <span className="figure">{percent(one.probability)}</span>
        </li>
      ))}
    </ul>
  );
}

/** Where the image is: owners see the whole path, others what lies below the project. */
function FileLines({ facts }: { facts: Facts }) {
  const { person } = useSession();
  const isOwner = person.role === "owner" && !isStatic();
  const file = useQuery({
    queryKey: ["sample file", facts.row, facts.tables],
    queryFn: () => unwrap(api.GET("/api/samples/{row}/file", { params: { path: { row: facts.row }, query: { tables: facts.tables } } })),
    enabled: isOwner,
    retry: false,
  });
  const path = file.data?.path ?? (facts.file === facts.name ? null : facts.file);
  return (
    <>
      <dt>File</dt>
      <dd>{facts.name}</dd>
      {path && <><dt>Path</dt><dd><code>{path}</code> <CopyButton text={path} what="path" />{file.data?.is_there === false && <p className="note warn">Nothing is there now. Was the folder moved? <code>weakspot doctor</code> says what to do.</p>}</dd></>}
    </>
  );
}
