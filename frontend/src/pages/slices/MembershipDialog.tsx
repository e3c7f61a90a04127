import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, unwrap, type Schemas } from "../../api/client";
import { Button } from "../../components/Button";
import { Form } from "../../components/Form";
import { Dialog } from "../../components/Dialog";
import { ErrorNote } from "../../components/ErrorNote";
import { Loaded } from "../../components/Loaded";
import { ThresholdTrial } from "./ThresholdTrial";
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
  const columns = useQuery({ queryKey: ["slice columns", slice_id, query.run ?? ""], queryFn: () => unwrap(api.GET("/api/slices/{slice_id}/columns", { params })) });
  return (
    <Dialog title="Change members" onClose={onClose} className="slice-wide">
      <p className="quiet">What you change becomes a new slice that takes the place of this one and is proven again on samples that you do not see. Counts here are of the {slice.half}.</p>
      {hasThreshold && <ThresholdTrial slice={slice} onMoved={onClose} />}
      <Loaded query={columns} what="the columns">
        {({ columns = [] }) => (columns.length ? <ValuesForm slice={slice} columns={columns} onClose={onClose} /> : hasThreshold ? null : <p className="note">This slice has no threshold, and there are no columns to narrow it by.</p>)}
      </Loaded>
    </Dialog>
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
