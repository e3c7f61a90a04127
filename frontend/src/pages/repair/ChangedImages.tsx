import { useQuery } from "@tanstack/react-query";
import { api, unwrap } from "../../api/client";
import { Card } from "../../components/Card";
import { counted } from "../../components/figures";
import { ImageStrip } from "../../components/ImageStrip";
import { openSample } from "../../viewer/imageSet";

/** Say in words what a repair did to images. */
export function headline(nRight: number, nBroken: number): string {
  const right = nRight === 0 ? "None is right now that was wrong" : nRight === 1 ? "This one is right now" : `These ${counted(nRight)} are right now`;
  const broke = nBroken === 0 ? "none broke" : nBroken === 1 ? "this one broke" : `these ${counted(nBroken)} broke`;
  return `${right}, ${broke}`;
}

/** What the repair looks like: images that are right now, and images that broke. */
export function ChangedImages({ runId, made }: { runId: string; made: string }) {
  const { data } = useQuery({
    queryKey: ["repair-images", runId, made],
    queryFn: () => unwrap(api.GET("/api/repair/images", { params: { query: { run: runId } } })),
    enabled: runId !== "",
    retry: false,
  });
  if (!data) return null;
  if (data.note) return <p className="quiet">Images that it changed cannot be shown: {data.note}</p>;
  if (data.n_right_now + data.n_broken === 0) return null;
  const parts = [
    { title: `Right now: ${counted(data.n_right_now)} that ${data.n_right_now === 1 ? "was" : "were"} wrong`, samples: data.right_now.map((one) => ({ ...one, is_failure: false, answer: one.label, note: `was ${one.answer}` })) },
    { title: `Broken: ${counted(data.n_broken)} that ${data.n_broken === 1 ? "was" : "were"} right`, samples: data.broken.map((one) => ({ ...one, is_failure: true, answer: "wrong now" })) },
  ];
  return (
    <Card title={headline(data.n_right_now, data.n_broken)} aside={<span className="quiet">{data.half}</span>}>
      <p className="quiet">Images of the half that people may look at. The figures are of test samples, which nobody sees.</p>
      {parts.map(({ title, samples }) => (
        <ImageStrip key={title} title={title} samples={samples} tables={data.tables} side={96} onOpen={(row, place) => openSample(row, data.tables, {}, { count: samples.length, rowAt: (at) => samples[at]?.row, place })} />
      ))}
    </Card>
  );
}
