import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef, useState } from "react";
import { useSession } from "../app/session";
import { counted } from "./figures";
import { ImageTile, type Picking, type Sample } from "./ImageTile";
import { SampleLine } from "./SampleLine";

type Props = {
  count: number;
  sampleAt: (place: number) => Sample | undefined;
  onNeed?: (first: number, last: number) => void;
  tables: string;
  label: string;
  side?: number;
  height?: number | string;
  onOpen?: (sample: Sample) => void;
  picking?: Picking;
  picked?: ReadonlySet<number>;
};

const GAP = 8;
const WORDS = 22;
const LINE = 44;
/** What the frame takes above and below the images, and how high it is without any. */
const FRAME = 26;
const LEAST = 64;
/** Browsers draw nothing that is taller than about 33 million pixels. */
const TALLEST = 30_000_000;

/** Any number of samples, as images or as rows of a table without images, of which only those in sight exist as elements; `onNeed` is told which places come into sight. */
export function ImageGrid({ count, sampleAt, onNeed, tables, label, side = 112, height = 420, onOpen, picking, picked }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const { has_images: hasImages } = useSession();
  const [width, setWidth] = useState(4 * (side + GAP) - GAP);
  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => {
      if (entry) setWidth(entry.contentRect.width);
    });
    if (box.current) watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  const columns = hasImages ? Math.max(1, Math.floor((width + GAP) / (side + GAP))) : 1;
  const fitted = Math.max(side, Math.floor((width + GAP) / columns) - GAP);
  const line = (hasImages ? fitted + WORDS : LINE) + GAP;
  const reachable = Math.min(count, Math.floor(TALLEST / line) * columns);
  const lines = useVirtualizer({
    count: Math.ceil(reachable / columns),
    getScrollElement: () => box.current,
    estimateSize: () => line,
    overscan: 2,
  });
  const items = lines.getVirtualItems();
  const first = (items[0]?.index ?? 0) * columns;
  const last = Math.min(reachable, ((items[items.length - 1]?.index ?? 0) + 1) * columns);
  useEffect(() => onNeed?.(first, last), [first, last, onNeed]);
  useEffect(() => lines.measure(), [fitted, lines]);
  return (
    <div ref={box} className="image-grid" style={{ height: `min(${typeof height === "number" ? `${height}px` : height}, ${Math.max(LEAST, lines.getTotalSize() + FRAME)}px)` }} tabIndex={0} role="region" aria-label={`${label}, ${count} samples`}>
      {count === 0 && <p className="quiet">None.</p>}
      {reachable < count && <p className="quiet">The first {counted(reachable)} can be reached by scrolling; smaller images show more, a filter shows others.</p>}
      <div style={{ height: lines.getTotalSize(), position: "relative" }}>
        {items.map((item) => (
          <div key={item.key} className="image-row" style={{ transform: `translateY(${item.start}px)`, gap: GAP }}>
            {Array.from({ length: columns }, (_, column) => item.index * columns + column)
              .filter((place) => place < reachable)
              .map((place) => {
                const sample = sampleAt(place);
                if (sample && !hasImages) return <SampleLine key={sample.row} sample={sample} tables={tables} isPicked={picked?.has(sample.row) ?? false} {...(onOpen ? { onOpen } : {})} {...(picking ? { picking } : {})} />;
                return sample ? (
                  <ImageTile key={sample.row} sample={sample} tables={tables} side={fitted} isPicked={picked?.has(sample.row) ?? false} {...(onOpen ? { onOpen } : {})} {...(picking ? { picking } : {})} />
                ) : (
                  <span key={place} className="tile waiting" style={{ width: fitted, height: hasImages ? fitted + WORDS : LINE }} />
                );
              })}
          </div>
        ))}
      </div>
    </div>
  );
}
