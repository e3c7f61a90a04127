import { memo, useState } from "react";
import { imageAddress } from "../api/client";

export type Sample = { row: number; label: string; answer: string; is_failure: boolean; note?: string };
type Props = { sample: Sample; tables: string; side?: number; onOpen?: (sample: Sample) => void };

/** One sample: its image, what the classifier said, and whether that was a failure; without an image the words stand alone. */
export const ImageTile = memo(function ImageTile({ sample, tables, side = 112, onOpen }: Props) {
  const [isMissing, setMissing] = useState(false);
  const said = `${sample.label}, predicted as ${sample.answer}, ${sample.is_failure ? "wrong" : "right"}${sample.note ? `, ${sample.note}` : ""}`;
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
      <b>{sample.is_failure ? "✗" : "✓"}</b> {sample.answer}{sample.note ? ` · ${sample.note}` : ""}
    </span>
  );
  const kind = `tile ${sample.is_failure ? "is-wrong" : "is-right"}`;
  if (!onOpen) return <div className={kind}>{body}{caption}</div>;
  return <button type="button" className={kind} onClick={() => onOpen(sample)} aria-label={said}>{body}{caption}</button>;
}, isSameTile);

function isSameTile(one: Props, two: Props): boolean {
  const [left, right] = [one.sample, two.sample];
  return (
    left.row === right.row && left.label === right.label && left.answer === right.answer && left.note === right.note &&
    left.is_failure === right.is_failure && one.tables === two.tables && one.side === two.side && one.onOpen === two.onOpen
  );
}
