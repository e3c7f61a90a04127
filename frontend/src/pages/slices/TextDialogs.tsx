import { useState, type ReactNode } from "react";
import { api, unwrap, type Schemas } from "../../api/client";
import { Button } from "../../components/Button";
import { Form } from "../../components/Form";
import { Dialog } from "../../components/Dialog";
import { ErrorNote } from "../../components/ErrorNote";
import { useRun } from "./useRun";
import { useSeenHere } from "./useSeenHere";
import { useSliceChange } from "./useSliceChange";

type Props = { slice: Schemas["SlicePageView"]; onClose: () => void };
type FormProps = { label: string; start: string; longest: number; act: string; isPending: boolean; error: Error | null; onSay: (text: string) => void; onClose: () => void; children: ReactNode };

/** Give a slice other words; who belongs to it stays. */
export function WordsDialog({ slice, onClose }: Props) {
  const { query } = useRun();
  const { slice_id, words } = slice.line;
  const seen = useSeenHere();
  const change = useSliceChange(slice_id, (text: string) => unwrap(api.POST("/api/slices/{slice_id}/words", { params: { path: { slice_id }, query }, headers: seen(), body: { words: text } })), onClose);
  return (
    <Dialog title="Edit words" onClose={onClose}>
      <TextForm label="The classifier is often wrong on images that have" start={words} longest={200} act="Keep these words" isPending={change.isPending} error={change.error} onSay={change.mutate} onClose={onClose}>
        Who belongs to the slice stays, so nothing is tested again. The words it had are kept below yours.
      </TextForm>
    </Dialog>
  );
}

/** Set a slice aside; a reason must be given. */
export function DismissDialog({ slice, onClose }: Props) {
  const { query } = useRun();
  const { slice_id } = slice.line;
  const seen = useSeenHere();
  const change = useSliceChange(slice_id, (reason: string) => unwrap(api.POST("/api/slices/{slice_id}/dismiss", { params: { path: { slice_id }, query }, headers: seen(), body: { reason } })), onClose);
  return (
    <Dialog title="Dismiss this slice" onClose={onClose}>
      <TextForm label="Reason" start="" longest={500} act="Dismiss" isPending={change.isPending} error={change.error} onSay={change.mutate} onClose={onClose}>
        It is no longer reported, repaired or compared. Its test was made and still counts. You can restore it at any time.
      </TextForm>
    </Dialog>
  );
}

function TextForm({ label, start, longest, act, isPending, error, onSay, onClose, children }: FormProps) {
  const [text, setText] = useState(start);
  const isEmpty = !text.trim() || text.trim() === start;
  return (
    <Form className="stack" onSubmit={() => { if (!isEmpty) onSay(text); }}>
      <label className="field"><span>{label}</span><input value={text} maxLength={longest} onChange={(event) => setText(event.target.value)} /></label>
      <p className="quiet">{children}</p>
      {error && <ErrorNote error={error} />}
      <div className="row">
        <Button kind="primary" type="submit" disabled={isEmpty || isPending}>{isPending ? "Working …" : act}</Button>
        <Button onClick={onClose}>Cancel</Button>
      </div>
    </Form>
  );
}
