import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { api, unwrap, type Schemas } from "../../api/client";
import { useSession } from "../../app/session";
import { Card } from "../../components/Card";
import { chance, percent, range, share } from "../../components/figures";
import { IntervalBar } from "../../components/IntervalBar";
import { ImageTile } from "../../components/ImageTile";

type Run = Schemas["RunFacts"];

/** The confirmed slices with the largest gaps, with images from the discovery half. */
export function WorstSlices({ run }: { run: Run }) {
  const images = useQuery({
    queryKey: ["worst-images", run.run_id],
    queryFn: () => unwrap(api.GET("/api/runs/{run_id}/images", { params: { path: { run_id: run.run_id } } })),
    enabled: run.worst.length > 0,
  });
  const aside = run.n_published > run.worst.length ? <Link href="/slices">All {run.n_published} slices</Link> : <Link href="/slices">All slices</Link>;
  return (
    <Card title="Worst slices" aside={aside}>
      {run.worst.length === 0 && <p>No slice is confirmed in this run. Look into a class and say what you see, or look with other methods.</p>}
      <ul className="worst">
        {run.worst.map((slice) => <WorstSlice key={slice.evidence.slice_id} slice={slice} images={images.data} />)}
      </ul>
    </Card>
  );
}

/** One of them. */
function WorstSlice({ slice: { title, evidence, words }, images }: { slice: Schemas["ConfirmedSlice"]; images: Schemas["WorstImages"] | undefined }) {
  const { has_images: hasImages } = useSession();
  const inside = share(evidence.failures_inside, evidence.n_inside, evidence.interval_inside);
  const outside = share(evidence.failures_outside, evidence.n_outside, evidence.interval_outside);
  return (
    <li>
      <h3><Link href={`/slices/${evidence.slice_id}`}>{title}</Link></h3>
      <div className="worst-rate">
        <span className="big-figure">{percent(inside.value)}</span>
        <span className="quiet">fail, interval {range(inside.interval)}<br />{percent(outside.value)} in the rest of the class</span>
      </div>
      <IntervalBar rate={inside.value} interval={inside.interval} other={outside.value} label={`Failures in ${title}`} />
      <p className="quiet">{inside.count} of {inside.total} members failed; corrected p {chance(evidence.q_value)}. {words.cause[0]}</p>
      {hasImages && (
        <div className="row">
          {(images?.slices[evidence.slice_id] ?? []).map((sample) => <ImageTile key={sample.row} sample={sample} tables={images?.tables ?? ""} side={92} />)}
        </div>
      )}
      {words.explained && <p className="note warn">{words.explained}</p>}
    </li>
  );
}
