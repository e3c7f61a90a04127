import { useEffect, useRef, useState } from "react";
import { Button } from "../components/Button";
import { Form } from "../components/Form";
import { useImageChoices, type Kind, type Said } from "./useMarks";
import "./marks.css";

/** What is being said; nothing before a button was pressed. */
export type Saying = Exclude<Kind, "unusable"> | null;
type Props = { saying: Saying; isPending: boolean; onSay: (said: Said) => void; onCancel: () => void };

/** The field that a mark needs: the right label, or words. */
export function MarkForm({ saying, isPending, onSay, onCancel }: Props) {
  if (saying === null) return null;
  return saying === "label" ? (
    <LabelForm isPending={isPending} onSay={onSay} onCancel={onCancel} />
  ) : (
    <WordsForm key={saying} kind={saying} isPending={isPending} onSay={onSay} onCancel={onCancel} />
  );
}

type FormProps = Omit<Props, "saying">;

function useFocus<Field extends HTMLElement>() {
  const field = useRef<Field>(null);
  useEffect(() => field.current?.focus(), []);
  return field;
}

/** Nothing is suggested: whoever would see the classifier's answer first would be drawn to it. */
function LabelForm({ isPending, onSay, onCancel }: FormProps) {
  const { data } = useImageChoices();
  const field = useFocus<HTMLSelectElement>();
  const [chosen, setChosen] = useState<string[]>([]);
  const isMulti = data?.is_multi_label === true;
  return (
    <Form className="mark-form" onSubmit={() => onSay({ kind: "label", labels: chosen })} onKeyDown={(event) => { if (event.key === "Enter" && (event.target as Element).tagName === "SELECT") { event.preventDefault(); onSay({ kind: "label", labels: chosen }); } if (event.key === "Escape") { event.preventDefault(); event.stopPropagation(); onCancel(); } }}>
      <label className="field">
        <span>The right label</span>
        <select
          ref={field}
          multiple={isMulti}
          value={isMulti ? chosen : (chosen[0] ?? "")}
          onChange={({ target }) => setChosen([...target.selectedOptions].map((one) => one.value).filter(Boolean))}
        >
          {!isMulti && <option value="">not known</option>}
          {data?.classes.map((name) => <option key={name}>{name}</option>)}
        </select>
      </label>
      <Button type="submit" kind="primary" disabled={isPending}>Mark as wrong</Button>
      <Button onClick={onCancel}>Cancel</Button>
    </Form>
  );
}

function WordsForm({ kind, isPending, onSay, onCancel }: FormProps & { kind: "note" | "tag" }) {
  const { data } = useImageChoices();
  const field = useFocus<HTMLInputElement>();
  const [text, setText] = useState("");
  return (
    <Form className="mark-form" onSubmit={() => { if (text.trim()) onSay({ kind, text: text.trim() }); }} onKeyDown={(event) => { if (event.key === "Escape") { event.preventDefault(); event.stopPropagation(); onCancel(); } }}>
      <label className="field">
        <span>{kind === "tag" ? "Tag" : "Note"}</span>
        <input ref={field} value={text} maxLength={kind === "tag" ? 100 : 500} list={kind === "tag" ? "known-tags" : undefined} onChange={(event) => setText(event.target.value)} />
      </label>
      {kind === "tag" && <datalist id="known-tags">{data?.tags.map((tag) => <option key={tag} value={tag} />)}</datalist>}
      <Button type="submit" kind="primary" disabled={isPending || !text.trim()}>Keep the {kind}</Button>
      <Button onClick={onCancel}>Cancel</Button>
    </Form>
  );
}
