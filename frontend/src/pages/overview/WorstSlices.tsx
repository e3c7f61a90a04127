import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { api, told, type Schemas } from "../../api/client";
import { Card } from "../../components/Card";
import { chance, percent, range } from "../../components/figures";
import { IntervalBar } from "../../components/IntervalBar";
import { PictureTile } from "../../components/PictureTile";

type Run = Schemas["RunFacts"];

/** The confirmed slices with the largest gaps, with pictures from the discovery half. */
export function WorstSlices({ run }: { run: Run }) {
  const pictures = useQuery({
    queryKey: ["worst-pictures", run.run_id],
    queryFn: () => told(api.GET("/api/runs/{run_id}/pictures", { params: { path: { run_id: run.run_id } } })),
    enabled: run.worst.length > 0,
  });
  const aside = run.n_published > run.worst.length ? <Link href="/slices">All {run.n_published} slices</Link> : <Link href="/slices">All slices</Link>;
  return (
    <Card title="Worst slices" aside={aside}>
      {run.worst.length === 0 && <p>No slice is confirmed in this run. Look into a class and say what you see, or look with other methods.</p>}
      <ul className="worst">
        {run.worst.map((slice) => (
          <li key={slice.slice_id}>
            <h3><Link href={`/slices/${slice.slice_id}`}>{slice.title}</Link></h3>
            <div className="worst-rate">
              <span className="big-figure">{percent(slice.inside.value)}</span>
              <span className="quiet">fail, interval {range(slice.inside)}<br />{percent(slice.outside.value)} in the rest of the class</span>
            </div>
            <IntervalBar rate={slice.inside.value} interval={slice.inside} other={slice.outside.value} label={`Failures in ${slice.title}`} />
            <p className="quiet">{slice.inside.count} of {slice.inside.total} members failed; corrected p {chance(slice.q_value)}. {slice.cause}</p>
            <div className="row">
              {(pictures.data?.slices[slice.slice_id] ?? []).map((sample) => (
                <PictureTile key={sample.row} sample={sample} tables={pictures.data?.tables ?? ""} side={92} />
              ))}
            </div>
            {slice.explained && <p className="note warn">{slice.explained}</p>}
          </li>
        ))}
      </ul>
    </Card>
  );
}
