import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { api, unwrap, type Schemas } from "../../api/client";
import { Card } from "../../components/Card";
import { chance, percent, range, share } from "../../components/figures";
import { IntervalBar } from "../../components/IntervalBar";
import { ImageStrip } from "../../components/ImageStrip";
import { openSample } from "../../viewer/imageSet";

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
    <Card title="What fails" aside={aside}>
      {run.worst.length === 0 && <p>No slice is confirmed in this run. Look into a class and say what you see, or look with other methods.</p>}
      <ul className="worst">
        {run.worst.map((slice) => <WorstSlice key={slice.evidence.slice_id} slice={slice} images={images.data} />)}
      </ul>
    </Card>
  );
}

/** One of them. */
function WorstSlice({ slice: { title, evidence, words }, images }: { slice: Schemas["ConfirmedSlice"]; images: Schemas["WorstImages"] | undefined }) {
  const strips = images?.slices[evidence.slice_id];
  const tables = images?.tables ?? "";
  const open = (row: number, shown: string) => openSample(row, tables, { slice_id: evidence.slice_id, shown });
  const inside = share(evidence.failures_inside, evidence.n_inside, evidence.interval_inside);
  const outside = share(evidence.failures_outside, evidence.n_outside, evidence.interval_outside);
  return (
    <li>
      <h3><Link href={`/slices/${evidence.slice_id}`}>{title}</Link> <span className="worst-fails">{percent(inside.value)} wrong</span> <span className="quiet">{percent(outside.value)} in the rest of the class</span></h3>
      <div className="worst-strips">
        <ImageStrip title="Fails" samples={strips?.fails ?? []} tables={tables} side={104} isWrapped onOpen={(row) => open(row, "members")} />
        <ImageStrip title="Rest of the class" samples={strips?.rest ?? []} tables={tables} side={104} isWrapped onOpen={(row) => open(row, "outside")} />
      </div>
      <p className="quiet">{words.cause[0]}</p>
      {words.explained && <p className="note warn">{words.explained}</p>}
      <details>
        <summary>How sure?</summary>
        <p>{inside.count} of {inside.total} members failed, interval {range(inside.interval)}; corrected p {chance(evidence.q_value)}. The dark mark is the rest of the class.</p>
        <IntervalBar rate={inside.value} interval={inside.interval} other={outside.value} label={`Failures in ${title}`} />
      </details>
    </li>
  );
}
