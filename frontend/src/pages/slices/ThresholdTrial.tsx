import { useQueries, useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { api, unwrap, type Schemas } from "../../api/client";
import { useMayChange, useSession } from "../../app/session";
import { Button } from "../../components/Button";
import { ErrorNote } from "../../components/ErrorNote";
import { counted, percent } from "../../components/figures";
import { Form } from "../../components/Form";
import { Histogram } from "../../components/Histogram";
import { ImageTile } from "../../components/ImageTile";
import { Loaded } from "../../components/Loaded";
import { PAGE, sampleIn, usePage } from "./sliceSamples";
import { binned, sidesAt, thresholdFor, unpacked } from "./thresholds";
import { useRun } from "./useRun";
import { useSliceChange } from "./useSliceChange";

const CROSSING = 8;

type Slice = Schemas["SlicePageView"];
type Props = { slice: Slice; onMoved: () => void };

/** Drag where membership begins and see who joins or leaves; owners can let it begin there. */
export function ThresholdTrial({ slice, onMoved }: Props) {
  const { query } = useRun();
  const { slice_id } = slice.line;
  const scores = useQuery({
    queryKey: ["slice scores", slice_id, query.run ?? ""],
    queryFn: () => unwrap(api.GET("/api/slices/{slice_id}/scores", { params: { path: { slice_id }, query } })),
  });
  return <Loaded query={scores} what="the scores">{(data) => <ThresholdForm slice={slice} scores={data} onMoved={onMoved} />}</Loaded>;
}

/** The same on the page of a slice, for everybody who may see it; asked for when it is opened. */
export function ThresholdCard({ slice }: { slice: Slice }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details className="card slice-figures" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Try another threshold</summary>
      {isOpen && <ThresholdTrial slice={slice} onMoved={() => undefined} />}
    </details>
  );
}

function ThresholdForm({ slice, scores, onMoved }: Props & { scores: Schemas["SliceScores"] }) {
  const mayChange = useMayChange();
  const { query } = useRun();
  const { slice_id } = slice.line;
  const ordered = useMemo(() => unpacked(scores), [scores]);
  const bins = useMemo(() => binned(ordered), [ordered]);
  const start = useMemo(() => sidesAt(ordered, scores.threshold).n, [ordered, scores.threshold]);
  const [n, setN] = useState(start);
  const threshold = n === start ? scores.threshold : thresholdFor(ordered, n);
  const sides = sidesAt(ordered, threshold);
  const change = useSliceChange(slice_id, () => unwrap(api.POST("/api/slices/{slice_id}/threshold", { params: { path: { slice_id }, query }, body: { threshold } })), onMoved);
  return (
    <Form className="slice-edit-part" onSubmit={() => change.mutate(undefined)}>
      <h3>How deep inside</h3>
      <Histogram {...bins} threshold={threshold} label="How deep the samples of the class lie in the slice; the line is where membership begins" />
      <label className="field"><span>Members, from the deepest on</span>
        <input type="range" min={1} max={Math.max(1, scores.n_samples - 1)} value={n} onChange={(event) => setN(Number(event.target.value))} />
      </label>
      <p role="status">
        <strong>{counted(sides.n)} members</strong>, {percent(sides.n ? sides.failed / sides.n : null)} fail; of {counted(sides.nOutside)} others {percent(sides.nOutside ? sides.failedOutside / sides.nOutside : null)}.
      </p>
      <Crossing slice={slice} start={start} n={sides.n} />
      {change.error && <ErrorNote error={change.error} />}
      {mayChange ? (
        <Button kind="primary" type="submit" disabled={sides.n === start || change.isPending}>{change.isPending ? "Proving again …" : "Move the threshold"}</Button>
      ) : (
        <p className="quiet">Only a look: nothing changes. Owners can move the threshold.</p>
      )}
    </Form>
  );
}

/** The images that join or leave as the line moves, those nearest to the new line first. */
function Crossing({ slice, start, n }: { slice: Slice; start: number; n: number }) {
  const { has_images: hasImages } = useSession();
  const [low, high] = [Math.min(start, n), Math.max(start, n)];
  const isJoining = n > start;
  const kind = isJoining ? "outside" : "members";
  const page = usePage(slice.line.slice_id, kind);
  // Members and the rest come deepest first: who joins are the first of the rest, who leaves are the last members.
  const places = Array.from({ length: Math.min(CROSSING, high - low) }, (_, step) => (isJoining ? n - start - 1 - step : n + step));
  const wanted = [...new Set(places.map((place) => Math.floor(place / PAGE)))];
  const pages = useQueries({ queries: wanted.map((number) => ({ ...page(number), enabled: hasImages })) });
  if (!hasImages) return null;
  const samples = places.flatMap((place) => sampleIn(pages[wanted.indexOf(Math.floor(place / PAGE))]?.data, place) ?? []);
  return (
    <div className="slice-crossing" aria-live="polite">
      <p className="quiet">{n === start ? "Drag, and the images that join or leave are shown here." : `${counted(high - low)} ${isJoining ? "join" : "leave"}, those nearest to the line first`}</p>
      <div>{samples.map((sample) => <ImageTile key={sample.row} sample={sample} tables={slice.tables} side={72} />)}</div>
    </div>
  );
}
