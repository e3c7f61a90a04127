import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { api, unwrap, type Schemas } from "../../api/client";
import { Button } from "../../components/Button";
import { Form } from "../../components/Form";
import { Dialog } from "../../components/Dialog";
import { ErrorNote } from "../../components/ErrorNote";
import { counted, percent } from "../../components/figures";
import { Histogram } from "../../components/Histogram";
import { Loaded } from "../../components/Loaded";
import { binned, sidesAt, thresholdFor, unpacked } from "./thresholds";
import { useRun } from "./useRun";
import { useSliceChange } from "./useSliceChange";

type Slice = Schemas["SlicePageView"];
type Props = { slice: Slice; onClose: () => void };

/** Change who belongs to a slice: where membership begins, or which values of a column stay. */
export function MembershipDialog({ slice, onClose }: Props) {
  const { query } = useRun();
  const { slice_id } = slice.line;
  const params = { path: { slice_id }, query };
  const hasThreshold = slice.threshold !== null;
  const scores = useQuery({ queryKey: ["slice scores", slice_id, query.run ?? ""], queryFn: () => unwrap(api.GET("/api/slices/{slice_id}/scores", { params })), enabled: hasThreshold });
  const columns = useQuery({ queryKey: ["slice columns", slice_id, query.run ?? ""], queryFn: () => unwrap(api.GET("/api/slices/{slice_id}/columns", { params })) });
  return (
    <Dialog title="Change members" onClose={onClose} className="slice-wide">
      <p className="quiet">What you change becomes a new slice that takes the place of this one and is proven again on samples that you do not see. Counts here are of the {slice.half}.</p>
      {hasThreshold && <Loaded query={scores} what="the scores">{(data) => <ThresholdForm slice={slice} scores={data} onClose={onClose} />}</Loaded>}
      <Loaded query={columns} what="the columns">
        {(data) => (data.columns.length ? <ValuesForm slice={slice} columns={data.columns} onClose={onClose} /> : hasThreshold ? null : <p className="note">This slice has no threshold, and there are no columns to narrow it by.</p>)}
      </Loaded>
    </Dialog>
  );
}

function ThresholdForm({ slice, scores, onClose }: Props & { scores: Schemas["SliceScores"] }) {
  const { query } = useRun();
  const { slice_id } = slice.line;
  const ordered = useMemo(() => unpacked(scores), [scores]);
  const bins = useMemo(() => binned(ordered), [ordered]);
  const start = useMemo(() => sidesAt(ordered, scores.threshold).n, [ordered, scores.threshold]);
  const [n, setN] = useState(start);
  const threshold = n === start ? scores.threshold : thresholdFor(ordered, n);
  const sides = sidesAt(ordered, threshold);
  const change = useSliceChange(slice_id, () => unwrap(api.POST("/api/slices/{slice_id}/threshold", { params: { path: { slice_id }, query }, body: { threshold } })), onClose);
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
      {change.error && <ErrorNote error={change.error} />}
      <Button kind="primary" type="submit" disabled={sides.n === start || change.isPending}>{change.isPending ? "Proving again …" : "Move the threshold"}</Button>
    </Form>
  );
}

function ValuesForm({ slice, columns, onClose }: Props & { columns: Schemas["ColumnValues"][] }) {
  const { query } = useRun();
  const { slice_id } = slice.line;
  const [name, setName] = useState(columns[0]?.column ?? "");
  const [chosen, setChosen] = useState<string[]>([]);
  const [isKept, setKept] = useState(true);
  const column = columns.find((one) => one.column === name);
  const change = useSliceChange(slice_id, () => unwrap(api.POST("/api/slices/{slice_id}/values", { params: { path: { slice_id }, query }, body: { column: name, values: chosen, is_kept: isKept } })), onClose);
  const toggle = (value: string) => setChosen(chosen.includes(value) ? chosen.filter((one) => one !== value) : [...chosen, value]);
  return (
    <Form className="slice-edit-part" onSubmit={() => change.mutate(undefined)}>
      <h3>By an attribute</h3>
      <div className="row">
        <label className="field"><span>Attribute</span>
          <select value={name} onChange={(event) => { setName(event.target.value); setChosen([]); }}>{columns.map((one) => <option key={one.column}>{one.column}</option>)}</select>
        </label>
        <label className="field"><span>Members with these values</span>
          <select value={isKept ? "keep" : "leave"} onChange={(event) => setKept(event.target.value === "keep")}>
            <option value="keep">are kept, others leave</option>
            <option value="leave">leave, others are kept</option>
          </select>
        </label>
      </div>
      <fieldset className="slice-values">
        <legend className="unseen">Values of {name}</legend>
        {column?.values.map((value, place) => (
          <label key={value}><input type="checkbox" checked={chosen.includes(value)} onChange={() => toggle(value)} /> {value} <span className="quiet">{column.failed[place]} of {column.inside[place]} fail</span></label>
        ))}
      </fieldset>
      {change.error && <ErrorNote error={change.error} />}
      <Button kind="primary" type="submit" disabled={!chosen.length || change.isPending}>{change.isPending ? "Proving again …" : "Narrow the slice"}</Button>
    </Form>
  );
}
