import { useState, type ReactNode } from "react";
import { Button } from "../../components/Button";
import { Form } from "../../components/Form";
import { Dialog } from "../../components/Dialog";
import { ErrorNote } from "../../components/ErrorNote";
import { linesOf, type Attribute, type EditBody, type Value } from "./tables";
import { useEdit } from "./useAttributes";

/** What is being changed, if anything. */
export type Editing =
  | { kind: "rename attribute" | "delete attribute" | "add value"; attribute: Attribute }
  | { kind: "rename value" | "change phrases" | "move value" | "delete value"; attribute: Attribute; value: Value }
  | { kind: "merge values"; attribute: Attribute; values: Value[] };

type Props = { editing: Editing; attributes: Attribute[]; version: number; onDone: () => void };

const TITLES: Record<Editing["kind"], string> = {
  "rename attribute": "Rename the attribute",
  "delete attribute": "Delete the attribute",
  "add value": "Add a value",
  "rename value": "Rename the value",
  "change phrases": "Words for the value",
  "move value": "Move the value",
  "delete value": "Delete the value",
  "merge values": "Merge values",
};

/** The window for one change of what is there; adding an attribute has a window of its own. */
export function EditDialog({ editing, attributes, version, onDone }: Props) {
  const edit = useEdit(version);
  const { attribute, kind } = editing;
  const only = "value" in editing ? editing.value : null;
  const meant = "values" in editing ? editing.values : only ? [only] : [];
  const targets = attributes.filter((one) => one.is_worded && one.attribute_id !== attribute.attribute_id);
  const [name, setName] = useState(kind === "rename attribute" ? attribute.name : kind === "add value" ? "" : (meant[0]?.title ?? ""));
  const [phrases, setPhrases] = useState(kind === "change phrases" ? (only?.phrases ?? []).join("\n") : "");
  const [to, setTo] = useState(targets[0]?.attribute_id ?? "");
  const send = () => {
    const given = kind === "add value" || kind === "change phrases" ? [{ title: name, phrases: linesOf(phrases) }] : [];
    const body: EditBody = {
      kind,
      attribute: attribute.attribute_id,
      values: meant.map((value) => value.value_id),
      title: ["rename attribute", "rename value", "merge values"].includes(kind) ? name : "",
      given,
      to: kind === "move value" ? to : "",
    };
    edit.mutate(body, { onSuccess: onDone });
  };
  const hasName = ["rename attribute", "rename value", "merge values", "add value"].includes(kind);
  const isDeleting = kind === "delete attribute" || kind === "delete value";
  return (
    <Dialog title={TITLES[kind]} onClose={onDone}>
      <Form className="stack" onSubmit={send}>
        <p>{explained(editing)}</p>
        {hasName && <Field label="Name"><input value={name} onChange={(event) => setName(event.target.value)} maxLength={80} required /></Field>}
        {(kind === "add value" || kind === "change phrases") && (
          <Field label={`Phrases, one per line${kind === "add value" ? " (may stay empty)" : ""}`}>
            <textarea rows={4} value={phrases} onChange={(event) => setPhrases(event.target.value)} placeholder={"a photo on a beach\nan image with sand"} required={kind === "change phrases"} />
          </Field>
        )}
        {kind === "move value" && (
          <Field label="To the attribute">
            <select value={to} onChange={(event) => setTo(event.target.value)}>
              {targets.map((one) => <option key={one.attribute_id} value={one.attribute_id}>{one.name}</option>)}
            </select>
          </Field>
        )}
        {edit.error && <ErrorNote error={edit.error} />}
        <div className="row">
          <Button type="submit" kind={isDeleting ? "danger" : "primary"} disabled={edit.isPending || (kind === "move value" && !to)}>{isDeleting ? "Delete" : "Save"}</Button>
          <Button onClick={onDone}>Cancel</Button>
        </div>
      </Form>
    </Dialog>
  );
}

/** A labelled input. */
export function Field({ label, children }: { label: string; children: ReactNode }) {
  return <label className="field"><span>{label}</span>{children}</label>;
}

function explained(editing: Editing): string {
  const { attribute } = editing;
  const again = " Its samples are assigned again afterwards.";
  switch (editing.kind) {
    case "rename attribute":
      return "Only the name changes. Slices that were found keep working.";
    case "delete attribute":
      return `“${attribute.name}” is no longer shown or looked at. Slices that were found keep working, and you can undo it.`;
    case "add value":
      return `A new value of “${attribute.name}”. Two phrases in different words make it surer.${again}`;
    case "rename value":
      return "Only the name changes. Slices that were found keep working.";
    case "change phrases":
      return `Images are compared with these phrases. Two in different words make “${editing.value.title}” surer.${again}`;
    case "move value":
      return `“${editing.value.title}” is then distinguished from the values of the other attribute. Both are assigned again afterwards.`;
    case "delete value":
      return attribute.is_worded
        ? `Samples of “${editing.value.title}” get one of the other values, or none where that is unsure.${again}`
        : `Samples of “${editing.value.title}” then count as not known.`;
    case "merge values":
      return `${editing.values.map((value) => `“${value.title}”`).join(", ")} become one value. Nothing has to be assigned again.`;
  }
}
