import { useState } from "react";
import type { Schemas } from "../../api/client";
import { Button } from "../../components/Button";
import { Card } from "../../components/Card";
import { Form } from "../../components/Form";

type Choices = Schemas["ImageChoices"];
type Option = { value: string; title: string };
type Props = { choices: Choices; query: URLSearchParams; onChange: (query: URLSearchParams) => void };

const ORDERS: Option[] = [
  { value: "loss", title: "Largest loss first" },
  { value: "unsure", title: "Least sure first" },
  { value: "sure", title: "Surest first" },
];
const MARKS: Option[] = [
  { value: "any", title: "any mark" },
  { value: "none", title: "no mark" },
  { value: "label", title: "label is wrong" },
  { value: "unusable", title: "unusable" },
  { value: "note", title: "with a note" },
  { value: "tag", title: "with a tag" },
];
const SHOWN: Option[] = [
  { value: "outside", title: "rest of the class" },
  { value: "counter", title: "members that are right, failures outside" },
];

/** What to choose images by, and their order; whatever is chosen goes into the address. */
export function Filters({ choices, query, onChange }: Props) {
  const set = (changes: Record<string, string>) => {
    const made = new URLSearchParams(query);
    for (const [name, value] of Object.entries(changes)) {
      if (value) made.set(name, value);
      else made.delete(name);
    }
    onChange(made);
  };
  const classes = choices.classes.map((title) => ({ value: title, title }));
  const pick = (name: string, title: string, options: Option[]) => <Pick key={name} title={title} value={query.get(name) ?? ""} options={options} onPick={(value) => set({ [name]: value })} />;
  return (
    <Card className="images-filters">
      <div className="row">
        {pick("label", "Class", classes)}
        {choices.has_results && pick("answer", "Predicted as", classes)}
        {choices.has_results && pick("result", "Result", [{ value: "wrong", title: "wrong" }, { value: "right", title: "right" }])}
        {choices.parts.length > 1 && pick("part", "Split", choices.parts.map((part) => ({ value: part, title: part })))}
        {choices.slices.length > 0 && <Pick title="Slice" value={query.get("slice_id") ?? ""} options={choices.slices} onPick={(value) => set({ slice_id: value, shown: "", run: "" })} />}
        {query.has("slice_id") && <Pick title="Of the slice" any="members" value={query.get("shown") === "members" ? "" : (query.get("shown") ?? "")} options={SHOWN} onPick={(value) => set({ shown: value })} />}
        {pick("mark", "Mark", [...MARKS, ...choices.tags.map((tag) => ({ value: `tag:${tag}`, title: `tag: ${tag}` }))])}
        {choices.attributes.length > 0 && <Attribute key={query.get("attributes") ?? ""} choices={choices} query={query} onChange={onChange} />}
        {choices.has_probabilities && <Sureness query={query} onSet={set} />}
        <Typed key={`name ${query.get("name") ?? ""}`} title="File name contains" value={query.get("name") ?? ""} onTyped={(value) => set({ name: value })} />
        {choices.has_words && <Typed key={`words ${query.get("words") ?? ""}`} title="Most like the words" value={query.get("words") ?? ""} onTyped={(value) => set({ words: value, like: "" })} />}
        {choices.has_probabilities && <Pick title="Order" any={query.has("words") || query.has("like") ? "Most similar first" : "As in the data"} value={query.get("order") ?? ""} options={ORDERS} onPick={(value) => set({ order: value })} />}
      </div>
      {query.has("selection") && <p className="images-like">Of images that were picked out. <Button kind="quiet" onClick={() => set({ selection: "" })}>Of all images</Button></p>}
      {query.has("like") && <p className="images-like">By similarity to <a href={`#/image/${encodeURIComponent(query.get("like") ?? "")}`}>one image</a>. <Button kind="quiet" onClick={() => set({ like: "", similar_from: "" })}>Stop comparing</Button></p>}
    </Card>
  );
}

type PickProps = { title: string; value: string; options: Option[]; onPick: (value: string) => void; any?: string };

function Pick({ title, value, options, onPick, any = "all" }: PickProps) {
  const isKnown = value === "" || options.some((option) => option.value === value);
  return (
    <label className="field">
      <span>{title}</span>
      <select value={value} onChange={(event) => onPick(event.target.value)}>
        <option value="">{any}</option>
        {!isKnown && <option value={value}>{value}</option>}
        {options.map((option) => <option key={option.value} value={option.value}>{option.title}</option>)}
      </select>
    </label>
  );
}

/** Text that counts when it is finished: by Enter, or by going elsewhere. */
function Typed({ title, value, onTyped }: { title: string; value: string; onTyped: (value: string) => void }) {
  const [text, setText] = useState(value);
  const finish = () => {
    if (text.trim() !== value) onTyped(text.trim());
  };
  return (
    <Form onSubmit={finish}>
      <label className="field">
        <span>{title}</span>
        <input value={text} maxLength={200} onChange={(event) => setText(event.target.value)} onBlur={finish} />
      </label>
    </Form>
  );
}

function Attribute({ choices, query, onChange }: Props) {
  const [attribute, value] = [query.get("attributes") ?? "", query.get("values") ?? ""];
  const [chosen, setChosen] = useState(attribute);
  const found = choices.attributes.find((one) => one.value === chosen);
  const set = (values: string[], attributes: string[]) => {
    const made = new URLSearchParams(query);
    made.delete("attributes");
    made.delete("values");
    attributes.forEach((one) => made.append("attributes", one));
    values.forEach((one) => made.append("values", one));
    onChange(made);
  };
  return (
    <>
      <Pick title="Attribute" value={chosen} options={choices.attributes} onPick={(next) => { setChosen(next); if (attribute) set([], []); }} />
      {found && <Pick title="Value" value={value} options={found.values} onPick={(next) => set(next ? [next] : [], next ? [chosen] : [])} />}
    </>
  );
}

function Sureness({ query, onSet }: { query: URLSearchParams; onSet: (changes: Record<string, string>) => void }) {
  const shown = (name: string) => (query.has(name) ? String(Math.round(100 * Number(query.get(name)))) : "");
  const read = (text: string) => (text === "" || !Number.isFinite(Number(text)) ? "" : String(Math.min(100, Math.max(0, Number(text))) / 100));
  return (
    <>
      <Typed key={`from ${shown("sure_from")}`} title="Confidence from, %" value={shown("sure_from")} onTyped={(text) => onSet({ sure_from: read(text) })} />
      <Typed key={`to ${shown("sure_to")}`} title="Confidence to, %" value={shown("sure_to")} onTyped={(text) => onSet({ sure_to: read(text) })} />
    </>
  );
}
