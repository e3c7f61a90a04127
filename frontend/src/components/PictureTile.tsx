import { memo, useState } from "react";
import { pictureAddress } from "../api/client";

export type Sample = { row: number; label: string; answer: string; is_failure: boolean; note?: string };
type Props = { sample: Sample; tables: string; side?: number; onOpen?: (sample: Sample) => void };

/** One sample: its picture, what the classifier said, and whether that was a failure; without a picture the words stand alone. */
export const PictureTile = memo(function PictureTile({ sample, tables, side = 112, onOpen }: Props) {
  const [isMissing, setMissing] = useState(false);
  const said = `${sample.label}, taken for ${sample.answer}, ${sample.is_failure ? "wrong" : "right"}${sample.note ? `, ${sample.note}` : ""}`;
  const body = isMissing ? (
    <span className="no-picture" style={{ width: side, height: side }}>{sample.label}</span>
  ) : (
    <img
      src={pictureAddress(sample.row, tables, side > 128 ? 320 : 160)}
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
