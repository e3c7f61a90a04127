import { useQuery } from "@tanstack/react-query";
import { Link, useSearchParams } from "wouter";
import { api, Problem, unwrap, type Schemas } from "../../api/client";
import { isStatic } from "../../api/static";
import { Card } from "../../components/Card";
import { ErrorNote } from "../../components/ErrorNote";
import { chance, counted, percent, range } from "../../components/figures";
import { ImageStrip } from "../../components/ImageStrip";
import { IntervalBar } from "../../components/IntervalBar";
import { Loading } from "../../components/Loading";
import { PageHead } from "../../components/PageHead";
import { openSample } from "../../viewer/imageSet";
import { Comparing } from "../slices/CompareCard";

type Two = Schemas["TwoModels"];

/** Two classifiers on the same samples: which failures they share, and where they differ. The other one is in the address. */
export function ModelsPage() {
  const [params, setParams] = useSearchParams();
  const models = useQuery({ queryKey: ["comparisons"], queryFn: () => unwrap(api.GET("/api/comparisons")), enabled: !isStatic() });
  const others = models.data?.others ?? [];
  const other = others.find((one) => one.name === params.get("other")) ?? others[0];
  const found = useQuery({
    queryKey: ["two models", other?.name, other?.n_samples],
    queryFn: () => unwrap(api.GET("/api/comparisons/models", { params: { query: { other: other?.name ?? "" } } })),
    enabled: Boolean(other && other.n_samples !== null),
    retry: false,
  });
  const isOld = found.error instanceof Problem && found.error.status === 422;
  return (
    <>
      <PageHead
        title="Two classifiers"
        aside={others.length > 1 && (
          <label className="field"><span>Compare with</span>
            <select value={other?.name} onChange={(event) => setParams({ other: event.target.value })}>{others.map((one) => <option key={one.name}>{one.name}</option>)}</select>
          </label>
        )}
      >
        Which failures they share, and where they differ, on the samples that both were measured on.
      </PageHead>
      {isStatic() && <p className="note">This needs a server.</p>}
      {models.error && <ErrorNote error={models.error} />}
      {models.data && !other && <NoOther own={models.data.name} />}
      {other && (
        <div className="stack">
          {found.isFetching && !found.data && <Loading what="the comparison" />}
          {found.data && <Parts two={found.data} />}
          {found.error && !isOld && <ErrorNote error={found.error} />}
          <Card title="The comparison">
            {isOld && <p className="quiet">It was made before images were kept with it; compare again to see them.</p>}
            <Comparing other={other} />
          </Card>
        </div>
      )}
    </>
  );
}

/** How to get a second classifier, where there is none. */
function NoOther({ own }: { own: string }) {
  return (
    <div className="note">
      <p>There is no second classifier here yet. It is a project of its own, on the same images:</p>
      <ol>
        <li><code>weakspot init OTHER --data DATA --classifier MODEL</code> names the other model: an older version, another architecture, or the repaired one that the page <Link href="/repair">Repair</Link> gives.</li>
        <li><code>weakspot run -p OTHER</code></li>
        <li><code>weakspot serve -p {own} --compare OTHER</code>, then press Compare on this page.</li>
      </ol>
    </div>
  );
}

function Parts({ two }: { two: Two }) {
  const titles: Record<string, string> = { both: "Both fail", own: `Only ${two.own} fails`, other: `Only ${two.other} fails` };
  return (
    <>
      <p className="slice-headline">
        {two.own} fails on {percent(two.own_failed.value)}, {two.other} on {percent(two.other_failed.value)} of {counted(two.own_failed.total)} samples{two.overlap === null ? "" : `; ${percent(two.overlap)} of the failures of either are failures of both`}.
      </p>
      {two.parts.map((part) => {
        const rows = part.images.map((one) => one.row);
        const samples = part.images.map((one) => ({ ...one, note: one.other_answer ? `${part.which === "own" ? "✓" : "✗"} ${two.other}: ${one.other_answer}` : "" }));
        return (
          <Card key={part.which} title={titles[part.which] ?? part.which} aside={<span className="quiet">{counted(part.n_samples)} samples, {counted(part.n_visible)} of them may be looked at</span>}>
            {rows.length ? (
              <ImageStrip title="" samples={samples} tables={two.tables} side={112} isWrapped onOpen={(row, place) => openSample(row, two.tables, {}, { count: rows.length, rowAt: (at) => rows[at], place })} />
            ) : <p className="quiet">No image that may be looked at.</p>}
          </Card>
        );
      })}
      {two.slices.length > 0 && <Slices two={two} />}
      <details className="card">
        <summary>How sure?</summary>
        <dl className="facts">
          <dt>{two.own} fails</dt><dd className="figure">{percent(two.own_failed.value)} ({range(two.own_failed.interval)}), {counted(two.own_failed.count)} of {counted(two.own_failed.total)}</dd>
          <dt>{two.other} fails</dt><dd className="figure">{percent(two.other_failed.value)} ({range(two.other_failed.interval)}), {counted(two.other_failed.count)} of {counted(two.other_failed.total)}</dd>
          <dt>One alone against the other alone</dt><dd className="figure">McNemar p = {chance(two.p_value)}</dd>
        </dl>
        {two.notes.map((note) => <p key={note} className="quiet">{note}</p>)}
      </details>
    </>
  );
}

function Slices({ two }: { two: Two }) {
  return (
    <Card title="Confirmed slices on both">
      <div className="table-box" tabIndex={0} role="region" aria-label="Confirmed slices on both">
        <table>
          <thead><tr><th scope="col">Slice</th><th scope="col">{two.own} fails</th><th scope="col">{two.other} fails</th><th scope="col">In words</th></tr></thead>
          <tbody>
            {two.slices.map(({ slice_id, title, compared }) => (
              <tr key={slice_id}>
                <td><Link href={`/slices/${slice_id}`}>{title}</Link></td>
                {[compared.own, compared.other].map((one) => (
                  <td key={one.model}>
                    {percent(one.inside.value)} <span className="quiet">{range(one.inside.interval)}</span>
                    <IntervalBar rate={one.inside.value} interval={one.inside.interval} label="Fails" other={one.outside.value} />
                  </td>
                ))}
                <td>{compared.sentence}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}
