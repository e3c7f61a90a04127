import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { api, unwrap, type Schemas } from "../api/client";
import { ImageTile, type Sample } from "../components/ImageTile";
import { openSample } from "./imageSet";

const SIDE = 76;

/** The images that look most like one: wrong ones and right ones. */
export function Nearest({ facts }: { facts: Schemas["SampleFacts"] }) {
  const { data, error } = useQuery({
    queryKey: ["nearest", facts.row, facts.tables],
    queryFn: () => unwrap(api.GET("/api/samples/{row}/nearest", { params: { path: { row: facts.row }, query: { tables: facts.tables } } })),
    retry: false,
    staleTime: Infinity,
  });
  if (error || (data && data.right.length + data.wrong.length === 0)) return <p className="quiet">{data?.note ?? "Similar images cannot be shown."}</p>;
  const open = (sample: Sample) => openSample(sample.row, facts.tables, { like: facts.sample_id });
  return (
    <section aria-label="Images that look like it">
      {(["wrong", "right"] as const).map((result) => data && data[result].length > 0 && (
        <div key={result}>
          <h3>Most similar, {result}</h3>
          <div className="viewer-nearest">
            {data[result].map((one) => <ImageTile key={one.row} sample={one} tables={facts.tables} side={SIDE} onOpen={open} />)}
          </div>
        </div>
      ))}
      {data && <p><Link href={`/images?like=${encodeURIComponent(facts.sample_id)}`}>All images by similarity to this one</Link></p>}
    </section>
  );
}
