import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "wouter";
import { api, unwrap, type Schemas } from "../../api/client";
import { isStatic } from "../../api/static";
import { useMayChange } from "../../app/session";
import { Card } from "../../components/Card";
import { Loaded } from "../../components/Loaded";
import { PageHead } from "../../components/PageHead";
import { CompareCard } from "./CompareCard";
import { ConfusionCard } from "./ConfusionCard";
import { EvidenceCard } from "./EvidenceCard";
import { NamesCard } from "./NamesCard";
import { OtherChoice } from "./PairPage";
import { SliceActions } from "./SliceActions";
import { SliceImages } from "./SliceImages";
import { ThresholdCard } from "./ThresholdTrial";
import { useRun } from "./useRun";
import { VerdictBadge } from "./VerdictBadge";
import "./slices.css";

/** One slice: what it says, how it was proven, what it looks like, and what can be done about it. */
export function SlicePage() {
  const { id } = useParams<{ id: string }>();
  const { query } = useRun();
  const slice = useQuery({
    queryKey: ["slice", id, query.run ?? ""],
    queryFn: () => unwrap(api.GET("/api/slices/{slice_id}", { params: { path: { slice_id: id }, query } })),
  });
  return (
    <>
      <p className="slice-back"><Link href="/slices">← All slices</Link></p>
      <Loaded query={slice} what="the slice">{(data) => <SliceParts key={data.line.slice_id} slice={data as Schemas["SlicePageView"]} />}</Loaded>
    </>
  );
}

function SliceParts({ slice }: { slice: Schemas["SlicePageView"] }) {
  const mayChange = useMayChange();
  const { line, words } = slice;
  return (
    <div className="stack">
      <PageHead title={line.title} aside={mayChange && <SliceActions slice={slice} />}>
        <VerdictBadge line={line} /> found by {line.method}{line.accepted_by ? `, accepted by ${line.accepted_by}` : ""}. {slice.rule}
      </PageHead>
      {line.dismissed && (
        <p className="note warn">Dismissed by {line.dismissed.by}: {line.dismissed.reason}. Its test still counts.</p>
      )}
      {line.has_suspect_labels && <p className="note warn">Look at the labels first: {words.labels}</p>}
      <p className="slice-headline">{words.sentence || "This slice was not tested yet."}</p>
      <div className="row slice-links">
        <Link className="button plain" href={`/classes/${encodeURIComponent(line.class_title)}`}>Open in class view</Link>
        <OtherChoice id={line.slice_id} />
        {line.verdict === "confirmed" && !line.dismissed && <Link className="button plain" href={`/repair?slices=${line.slice_id}`}>Repair this</Link>}
      </div>
      <SliceImages slice={slice} />
      {slice.threshold !== null && !line.dismissed && !isStatic() && <ThresholdCard slice={slice} />}
      <div className="columns">
        <CauseCard slice={slice} />
        <ConfusionCard slice={slice} />
      </div>
      <details className="card slice-figures">
        <summary>How sure?</summary>
        <div className="columns">
          <EvidenceCard slice={slice} />
          <NamesCard slice={slice} />
        </div>
      </details>
      <CompareCard slice={slice} />
      <HistoryCard slice={slice} />
    </div>
  );
}

function CauseCard({ slice }: { slice: Schemas["SlicePageView"] }) {
  const { words, line } = slice;
  const said = [...words.cause, words.confused_with, words.labels].filter(Boolean);
  return (
    <Card title="Why">
      {said.length ? said.map((sentence) => <p key={sentence}>{sentence}</p>) : <p className="quiet">Nothing is known of the cause yet.</p>}
      {words.explained && <p>{words.explained} {line.explained_by && <Link href={`/slices/${line.explained_by.slice_id}`}>Go there</Link>}</p>}
      {line.stands_for && <p>Has nearly the same members as <Link href={`/slices/${line.stands_for.slice_id}`}>{line.stands_for.title} ({line.stands_for.method})</Link>, which was tested in its place.</p>}
      {line.also_found.length > 0 && (
        <>
          <h3>Also found as</h3>
          <ul className="slice-plain-list">
            {line.also_found.map((other) => <li key={other.slice_id}><Link href={`/slices/${other.slice_id}`}>{other.title}</Link> <span className="quiet">{other.method}</span></li>)}
          </ul>
        </>
      )}
      {slice.elsewhere.length > 0 && (
        <>
          <h3>On other data</h3>
          {slice.elsewhere.map((sentence) => <p key={sentence}>{sentence}</p>)}
        </>
      )}
    </Card>
  );
}

function HistoryCard({ slice }: { slice: Schemas["SlicePageView"] }) {
  if (!slice.repairs.length && !slice.decisions.length) return null;
  return (
    <div className="columns">
      {slice.repairs.length > 0 && (
        <Card title="Repairs">
          <table>
            <caption className="unseen">Members that were right before and after each repair</caption>
            <thead><tr><th scope="col">Strategy</th><th scope="col" className="number">Right before</th><th scope="col" className="number">Right after</th><th scope="col">Looked for again</th></tr></thead>
            <tbody>
              {slice.repairs.map((repair, place) => (
                <tr key={place}>
                  <td>{repair.strategy}</td>
                  <td className="number">{repair.right_before} of {repair.n_samples}</td>
                  <td className="number">{repair.right_after} of {repair.n_samples}</td>
                  <td>{repair.status || "–"}</td>
                </tr>
              ))}
            </tbody>
          </table>
          <p className="quiet">Measured on {slice.repairs[0]?.measured_on}, which nothing was trained or chosen on.</p>
        </Card>
      )}
      {slice.decisions.length > 0 && (
        <Card title="What people decided">
          <ol className="slice-plain-list">
            {slice.decisions.map((decision, place) => (
              <li key={place}><strong>{decision.kind}</strong> by {decision.by}, <time dateTime={decision.time}>{decision.time.slice(0, 16).replace("T", " ")}</time>{decision.reason && `: ${decision.reason}`}</li>
            ))}
          </ol>
        </Card>
      )}
    </div>
  );
}
