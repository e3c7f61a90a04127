import { useState } from "react";
import type { Schemas } from "../../api/client";
import { Button } from "../../components/Button";
import { Form } from "../../components/Form";

const GROUPS: [Schemas["MapColouringChoice"]["group"], string][] = [
  ["classifier", "What the classifier predicts"],
  ["samples", "Samples"],
  ["columns", "Columns and attributes"],
  ["slices", "Slices"],
];
const PHRASE = "phrase:";
type Props = { choices: Schemas["MapColouringsView"]; by: string; onChoose: (by: string) => void };

/** What points are coloured by: anything that is known of samples, or similarity to words. */
export function ColourChoice({ choices, by, onChoose }: Props) {
  const [words, setWords] = useState(by.startsWith(PHRASE) ? by.slice(PHRASE.length) : "");
  const choose = () => {
    if (words.trim()) onChoose(PHRASE + words.trim());
  };
  return (
    <div className="row">
      <label className="field">
        <span>Colour by</span>
        <select value={by} onChange={(event) => onChoose(event.target.value)}>
          {by.startsWith(PHRASE) && <option value={by}>Similarity to “{by.slice(PHRASE.length)}”</option>}
          {GROUPS.map(([group, title]) => {
            const own = choices.colourings.filter((choice) => choice.group === group);
            return own.length > 0 && (
              <optgroup key={group} label={title}>
                {own.map((choice) => <option key={choice.by} value={choice.by}>{choice.title}</option>)}
              </optgroup>
            );
          })}
        </select>
      </label>
      {choices.has_words && (
        <Form className="row" onSubmit={choose}>
          <label className="field">
            <span>or by similarity to words</span>
            <input value={words} maxLength={200} placeholder="for example: green" onChange={(event) => setWords(event.target.value)} />
          </label>
          <Button type="submit" disabled={!words.trim()}>Colour</Button>
        </Form>
      )}
    </div>
  );
}
