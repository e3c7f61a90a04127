import { useQuery } from "@tanstack/react-query";
import { Link, useLocation, useParams } from "wouter";
import { api, unwrap, type Schemas } from "../../api/client";
import { isStatic } from "../../api/static";
import { Card } from "../../components/Card";
import { chance, counted, percent, points, range } from "../../components/figures";
import { ImageStrip } from "../../components/ImageStrip";
import { IntervalBar } from "../../components/IntervalBar";
import { Loaded } from "../../components/Loaded";
import { PageHead } from "../../components/PageHead";
import { openSample } from "../../viewer/imageSet";
import { useRun } from "./useRun";
import { VerdictBadge } from "./VerdictBadge";
import "./slices.css";

type Pair = Schemas["SlicePair"];
type Line = Schemas["SliceLine"];

/** Two slices beside each other: the images that both hold, those of each alone, and what sets them apart. */
export function PairPage() {
  const { id, other } = useParams<{ id: string; other: string }>();
  const { run, query } = useRun();
  const pair = useQuery({
    queryKey: ["slice pair", id, other, query.run ?? ""],
    queryFn: () => unwrap(api.GET("/api/slices/{slice_id}/beside/{other_id}", { params: { path: { slice_id: id, other_id: other }, query } })),
    enabled: !isStatic(),
  });
  return (
    <>
      <p className="slice-back"><Link href={`/slices/${id}`}>← Back to the slice</Link></p>
      <PageHead title="Two slices side by side" aside={<OtherChoice id={id} other={other} />}>
        {pair.data?.sentence ?? ""}{run ? ` Run ${run}.` : ""}
      </PageHead>
      {isStatic() ? <p className="note">This needs a server.</p> : <Loaded query={pair} what="the slices">{(data) => <Parts pair={data} />}</Loaded>}
    </>
  );
}

/** Choose the slice that is shown beside; the address follows. */
export function OtherChoice({ id, other = "" }: { id: string; other?: string }) {
  const { query } = useRun();
  const [, navigate] = useLocation();
  const table = useQuery({ queryKey: ["slices", query.run ?? ""], queryFn: () => unwrap(api.GET("/api/slices", { params: { query } })), enabled: !isStatic() });
  const others = (table.data?.slices ?? []).filter((line) => line.slice_id !== id);
  if (others.length === 0) return null;
  return (
    <label className="field slice-beside">
      <span>Beside</span>
      <select value={other} onChange={(event) => { if (event.target.value) navigate(`/slices/${id}/beside/${event.target.value}${query.run ? `?run=${query.run}` : ""}`); }}>
        {!other && <option value="">another slice …</option>}
        {others.map((line) => <option key={line.slice_id} value={line.slice_id}>{line.title} ({line.method})</option>)}
      </select>
    </label>
  );
}

function Parts({ pair }: { pair: Pair }) {
  const [both, first, second] = pair.parts;
  return (
    <div className="stack">
      <div className="slice-pair">
        <SliceHead line={pair.first} rule={pair.first_rule} />
        <SliceHead line={pair.second} rule={pair.second_rule} />
        {first && <Card title="In the first alone"><PartImages part={first} pair={pair} /></Card>}
        {second && <Card title="In the second alone"><PartImages part={second} pair={pair} /></Card>}
      </div>
      {both && <Card title="In both"><PartImages part={both} pair={pair} /></Card>}
      {pair.values.length > 0 && <Values pair={pair} />}
      <details className="card">
        <summary>How sure?</summary>
        <table>
          <caption className="unseen">What the tests of the two slices said</caption>
          <thead><tr><th scope="col">Slice</th><th scope="col">Verdict</th><th scope="col" className="number">Fails</th><th scope="col" className="number">Gap</th><th scope="col" className="number">p</th><th scope="col" className="number">q</th></tr></thead>
          <tbody>
            {[pair.first, pair.second].map((line) => (
              <tr key={line.slice_id}>
                <td>{line.title}</td><td>{line.verdict_words}</td>
                <td className="number">
                  {line.inside ? `${percent(line.inside.value)} (${range(line.inside.interval)}) of ${counted(line.inside.total)}` : "–"}
                  {line.inside && line.inside.total > 0 && <IntervalBar rate={line.inside.value} interval={line.inside.interval} label={`Failures in ${line.title}`} {...(line.outside?.total ? { other: line.outside.value } : {})} />}
                </td>
                <td className="number">{points(line.gap)}</td><td className="number">{chance(line.p_value)}</td><td className="number">{chance(line.q_value)}</td>
              </tr>
            ))}
          </tbody>
        </table>
        <p className="quiet">These figures are of samples that took no part in finding the slices; the images above are of those that people may look at.</p>
      </details>
    </div>
  );
}

function SliceHead({ line, rule }: { line: Line; rule: string }) {
  return (
    <section className="slice-pair-head">
      <h2><Link href={`/slices/${line.slice_id}`}>{line.title}</Link></h2>
      <p><VerdictBadge line={line} /> <span className="quiet">{rule}</span></p>
      {line.inside && line.inside.total > 0 && (
        <p>{percent(line.inside.value)} fail, {percent(line.outside?.value)} of the rest of the class.</p>
      )}
    </section>
  );
}

function PartImages({ part, pair }: { part: Schemas["SharedPart"]; pair: Pair }) {
  const rows = part.images.map((one) => one.row);
  const { failed } = part;
  return (
    <>
      <p className="quiet">{failed.total ? <>{counted(failed.total)} {failed.total === 1 ? "image" : "images"}, {percent(failed.value)} fail ({range(failed.interval)})</> : "None."}</p>
      <div className="slice-pair-images">
        <ImageStrip title="" samples={part.images} tables={pair.tables} side={112} isWrapped onOpen={(row, place) => openSample(row, pair.tables, {}, { count: rows.length, rowAt: (at) => rows[at], place })} />
      </div>
    </>
  );
}

function Values({ pair }: { pair: Pair }) {
  return (
    <Card title="What sets them apart">
      <div className="table-box">
        <table>
          <caption className="unseen">Values that members of one have more often</caption>
          <thead><tr><th scope="col">Attribute</th><th scope="col">Value</th><th scope="col" className="number">First</th><th scope="col" className="number">Second</th></tr></thead>
          <tbody>
            {pair.values.map((one) => (
              <tr key={`${one.column} ${one.value}`}>
                <td>{one.column}</td><td>{one.value}</td>
                <td className="number">{percent(one.first.value)} <span className="quiet">{range(one.first.interval)}</span></td>
                <td className="number">{percent(one.second.value)} <span className="quiet">{range(one.second.interval)}</span></td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}
