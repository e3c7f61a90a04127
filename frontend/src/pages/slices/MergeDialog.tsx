import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, unwrap, type Schemas } from "../../api/client";
import { Button } from "../../components/Button";
import { Form } from "../../components/Form";
import { Dialog } from "../../components/Dialog";
import { ErrorNote } from "../../components/ErrorNote";
import { Loaded } from "../../components/Loaded";
import { useRun } from "./useRun";
import { useSliceChange } from "./useSliceChange";

type Props = { slice: Schemas["SlicePageView"]; onClose: () => void };

/** Make one slice of this one and another of its class. */
export function MergeDialog({ slice, onClose }: Props) {
  const { query } = useRun();
  const table = useQuery({ queryKey: ["slices", query.run ?? ""], queryFn: () => unwrap(api.GET("/api/slices", { params: { query } })) });
  return (
    <Dialog title="Merge with another slice" onClose={onClose}>
      <Loaded query={table} what="the slices">
        {(data) => {
          const others = data.slices.filter((line) => line.class_title === slice.line.class_title && line.slice_id !== slice.line.slice_id);
          return others.length ? <MergeForm slice={slice} others={others} onClose={onClose} /> : <p className="note">There is no other slice of {slice.line.class_title}.</p>;
        }}
      </Loaded>
    </Dialog>
  );
}

function MergeForm({ slice, others, onClose }: Props & { others: Schemas["SliceLine"][] }) {
  const { query } = useRun();
  const first = slice.line.slice_id;
  const [second, setSecond] = useState(others[0]?.slice_id ?? "");
  const [how, setHow] = useState<Schemas["Merging"]["how"]>("either");
  const [words, setWords] = useState(slice.line.words);
  const change = useSliceChange(first, () => unwrap(api.POST("/api/slices/merge", { params: { query }, body: { first, second, how, words } })), onClose);
  return (
    <Form className="stack" onSubmit={() => change.mutate(undefined)}>
      <label className="field"><span>Other slice</span>
        <select value={second} onChange={(event) => setSecond(event.target.value)}>
          {others.map((line) => <option key={line.slice_id} value={line.slice_id}>{line.title} ({line.method}{line.dismissed ? ", dismissed" : ""})</option>)}
        </select>
      </label>
      <fieldset className="slice-choice-list">
        <legend>Members of the new slice</legend>
        <label><input type="radio" name="how" checked={how === "either"} onChange={() => setHow("either")} /> all that belong to either</label>
        <label><input type="radio" name="how" checked={how === "both"} onChange={() => setHow("both")} /> only those that belong to both</label>
      </fieldset>
      <label className="field"><span>Words</span><input value={words} maxLength={200} onChange={(event) => setWords(event.target.value)} /></label>
      <p className="quiet">The new slice takes the place of both and is proven again.</p>
      {change.error && <ErrorNote error={change.error} />}
      <div className="row">
        <Button kind="primary" type="submit" disabled={!words.trim() || change.isPending}>{change.isPending ? "Proving again …" : "Merge"}</Button>
        <Button onClick={onClose}>Cancel</Button>
      </div>
    </Form>
  );
}
