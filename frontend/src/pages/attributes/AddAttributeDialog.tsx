import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api, unwrap } from "../../api/client";
import { Button } from "../../components/Button";
import { Form } from "../../components/Form";
import { Dialog } from "../../components/Dialog";
import { ErrorNote } from "../../components/ErrorNote";
import { Field } from "./EditDialogs";
import { linesOf } from "./tables";
import { useEdit } from "./useAttributes";

type Draft = { title: string; phrases: string };
type Props = { version: number; onDone: () => void };

const EMPTY: Draft = { title: "", phrases: "" };

/** A new attribute: its name, and values with the phrases that describe them; values can be proposed. */
export function AddAttributeDialog({ version, onDone }: Props) {
  const [name, setName] = useState("");
  const [values, setValues] = useState<Draft[]>([EMPTY, EMPTY]);
  const edit = useEdit(version);
  const proposal = useMutation({
    mutationFn: () => unwrap(api.POST("/api/attributes/proposals", { body: { name } })),
    onSuccess: (found) => setValues(found.values.map((value) => ({ title: value.title, phrases: value.phrases.join("\n") }))),
  });
  const change = (place: number, draft: Partial<Draft>) => setValues(values.map((value, other) => (other === place ? { ...value, ...draft } : value)));
  const send = () => {
    const given = values.filter((value) => value.title.trim()).map((value) => ({ title: value.title, phrases: linesOf(value.phrases) }));
    edit.mutate({ kind: "add attribute", attribute: "", title: name, given, values: [], question: proposal.data?.question ?? "", to: "", target: 0 }, { onSuccess: onDone });
  };
  return (
    <Dialog title="Add an attribute" onClose={onDone}>
      <Form className="stack add-attribute" onSubmit={send}>
        <div className="row">
          <Field label="Name, for example “background”"><input value={name} onChange={(event) => setName(event.target.value)} maxLength={80} required /></Field>
          <Button disabled={!name.trim() || proposal.isPending} onClick={() => proposal.mutate()}>{proposal.isPending ? "Asking …" : "Propose values"}</Button>
        </div>
        {proposal.error && <ErrorNote error={proposal.error} />}
        {proposal.data?.notes.map((note) => <p key={note} className="quiet attribute-small">{note}</p>)}
        <fieldset className="value-drafts">
          <legend>Values and the phrases that describe them, one per line; without phrases some are made from the name</legend>
          {values.map((value, place) => (
            <div key={place} className="value-draft">
              <input aria-label={`Value ${place + 1}`} placeholder={`value ${place + 1}`} value={value.title} maxLength={80} onChange={(event) => change(place, { title: event.target.value })} />
              <textarea aria-label={`Phrases of value ${place + 1}`} rows={2} value={value.phrases} onChange={(event) => change(place, { phrases: event.target.value })} />
              <Button kind="quiet" aria-label={`Take out value ${place + 1}`} disabled={values.length <= 2} onClick={() => setValues(values.filter((_, other) => other !== place))}>✕</Button>
            </div>
          ))}
          <Button kind="quiet" disabled={values.length >= 50} onClick={() => setValues([...values, EMPTY])}>One more value</Button>
        </fieldset>
        {edit.error && <ErrorNote error={edit.error} />}
        <div className="row">
          <Button type="submit" kind="primary" disabled={edit.isPending}>Add</Button>
          <Button onClick={onDone}>Cancel</Button>
        </div>
      </Form>
    </Dialog>
  );
}
