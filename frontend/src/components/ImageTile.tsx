import { memo, useContext, useState, type MouseEvent } from "react";
import { imageAddress, type Schemas } from "../api/client";
import { MarkedContext } from "../marks/markedRows";

type Listed = Schemas["ListedImage"];
/** A sample as the server lists it, and what a page adds: a note below it, and its place among others. */
export type Sample = Pick<Listed, "row" | "label" | "answer" | "is_failure"> & Partial<Pick<Listed, "name" | "marks">> & { note?: string; place?: number };
export type Picking = { isOn: boolean; onPick: (sample: Sample, isRange: boolean) => void };
type Props = { sample: Sample; tables: string; side?: number; onOpen?: (sample: Sample) => void; picking?: Picking; isPicked?: boolean };

/** One sample: its image, what the classifier said, and whether that was a failure; without an image the words stand alone. */
export const ImageTile = memo(function ImageTile({ sample, tables, side = 112, onOpen, picking, isPicked = false }: Props) {
  const [isMissing, setMissing] = useState(false);
  const marked = useContext(MarkedContext);
  const isMarked = sample.marks ? sample.marks.length > 0 : marked.tables === tables && marked.rows.has(sample.row);
  const marks = sample.marks?.length ? ` · marked: ${sample.marks.join(", ")}` : isMarked ? " · marked" : "";
  const said = `${sample.name ? `${sample.name}: ` : ""}${sample.label}, ${resultWord(sample)}, predicted as ${sample.answer}${sample.note ? `, ${sample.note}` : ""}${marks}`;
  const body = isMissing ? (
    <span className="no-image" style={{ width: side, height: side }}>{sample.label}</span>
  ) : (
    <img
      src={imageAddress(sample.row, tables, side > 128 ? 320 : 160)}
      alt={onOpen ? "" : said}
      width={side}
      height={side}
      loading="lazy"
      decoding="async"
      onError={() => setMissing(true)}
    />
  );
  const caption = (
    <span className="tile-words" style={{ maxWidth: side }} aria-hidden="true">
      <b>{resultSign(sample)}</b>{isMarked ? " ⚑" : ""} {sample.answer}{sample.note && <> <span className="tile-note">{sample.note}</span></>}
    </span>
  );
  const kind = `tile is-${resultWord(sample).replace(" ", "-")}`;
  if (!onOpen) return <div className={kind}>{body}{caption}</div>;
  const press = (event: MouseEvent) => {
    if (picking && (picking.isOn || event.shiftKey || event.ctrlKey || event.metaKey)) picking.onPick(sample, event.shiftKey);
    else onOpen(sample);
  };
  const pressed = picking && (picking.isOn || isPicked) ? { "aria-pressed": isPicked } : {};
  return <button type="button" className={`${kind} ${isPicked ? "is-picked" : ""}`} onClick={press} aria-label={said} {...pressed} {...(sample.name ? { title: sample.name } : {})}>{body}{caption}</button>;
}, isSameTile);

/** Say whether the classifier is right on a sample. */
export function resultWord(sample: Sample): "wrong" | "right" | "not known" {
  return sample.is_failure === null ? "not known" : sample.is_failure ? "wrong" : "right";
}

/** The same as a sign. */
export function resultSign(sample: Sample): string {
  return sample.is_failure === null ? "" : sample.is_failure ? "✗" : "✓";
}

function isSameTile(one: Props, two: Props): boolean {
  const [left, right] = [one.sample, two.sample];
  return (
    left.row === right.row && left.label === right.label && left.answer === right.answer && left.note === right.note &&
    left.is_failure === right.is_failure && left.place === right.place && left.marks?.join() === right.marks?.join() &&
    one.picking === two.picking && one.isPicked === two.isPicked && one.tables === two.tables && one.side === two.side && one.onOpen === two.onOpen
  );
}
