import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { api, imageAddress, unwrap, type Schemas } from "../api/client";
import { useSession } from "../app/session";
import { Dialog } from "./Dialog";
import { counted, percent } from "./figures";
import { Loaded } from "./Loaded";

type Props = { row: number; tables: string; onClose: () => void };

/** One sample in large, with what is known of it. */
export function SampleDialog({ row, tables, onClose }: Props) {
  const { has_images: hasImages } = useSession();
  const query = useQuery({
    queryKey: ["sample", row, tables],
    queryFn: () => unwrap(api.GET("/api/samples/{row}", { params: { path: { row }, query: { tables } } })),
    retry: false,
  });
  return (
    <Dialog title={`Sample ${counted(row)}`} onClose={onClose}>
      <div className="sample-facts">
        {hasImages && <LargeImage row={row} tables={tables} />}
        <Loaded query={query} what="what is known of it">{(facts) => <Facts facts={facts} onFollow={onClose} />}</Loaded>
      </div>
    </Dialog>
  );
}

/** The image as large as thumbnails go, or a word that there is none. */
function LargeImage({ row, tables }: { row: number; tables: string }) {
  const [isMissing, setMissing] = useState(false);
  if (isMissing) return <p className="quiet">There is no image of this sample that can be read.</p>;
  return <img className="large-image" src={imageAddress(row, tables, 512)} alt="The sample" onError={() => setMissing(true)} />;
}

/** Label, answer, probabilities, columns and slices. */
function Facts({ facts, onFollow }: { facts: Schemas["SampleFacts"]; onFollow: () => void }) {
  const verdict = facts.is_failure === null ? "" : facts.is_failure ? " (wrong)" : " (right)";
  return (
    <dl className="facts">
      <dt>It is</dt>
      <dd>{facts.labels.join(", ") || "not labelled"}</dd>
      <dt>The AI says</dt>
      <dd>{(facts.answers.join(", ") || "nothing") + verdict}</dd>
      {facts.probabilities.length > 0 && (
        <>
          <dt>How sure it is</dt>
          <dd>
            <ul className="plain-list">
              {facts.probabilities.map((one) => <li key={one.class_name}>{one.class_name} <span className="figure">{percent(one.probability)}</span></li>)}
            </ul>
          </dd>
        </>
      )}
      <dt>Used for</dt>
      <dd>{facts.split}</dd>
      {facts.width > 0 && <><dt>Size</dt><dd className="figure">{facts.width} × {facts.height}</dd></>}
      {facts.slices.length > 0 && (
        <>
          <dt>Slices it is in</dt>
          <dd>
            <ul className="plain-list">
              {facts.slices.map((one) => <li key={one.slice_id}><Link href={`/slices/${one.slice_id}`} onClick={onFollow}>{one.title}</Link> <span className="quiet">{one.verdict}</span></li>)}
            </ul>
          </dd>
        </>
      )}
      {facts.columns.map((column) => (
        <div key={column.name} className="fact"><dt>{column.name}</dt><dd>{column.value}</dd></div>
      ))}
      <dt>Id</dt>
      <dd><code>{facts.sample_id}</code></dd>
    </dl>
  );
}
