import { useSession } from "../app/session";
import { ImageTile, type Sample } from "./ImageTile";

type Props = { title: string; samples: Sample[]; tables: string; side?: number; isWrapped?: boolean; onOpen: (row: number, place: number) => void };

/** A few images in one line, or in as many as they need, with what they have in common above them. */
export function ImageStrip({ title, samples, tables, side = 84, isWrapped = false, onOpen }: Props) {
  const { has_images: hasImages } = useSession();
  if (!hasImages || samples.length === 0) return null;
  const hasNotes = samples.some((sample) => sample.note);
  return (
    <div className={hasNotes ? "image-strip has-notes" : "image-strip"}>
      {title && <p className="quiet">{title}</p>}
      <div {...(isWrapped ? {} : { style: { maxHeight: side + (hasNotes ? 47 : 27) } })}>{samples.map((sample, place) => <ImageTile key={sample.row} sample={sample} tables={tables} side={side} onOpen={() => onOpen(sample.row, place)} />)}</div>
    </div>
  );
}
