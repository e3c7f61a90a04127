import { useEffect, useImperativeHandle, useRef, useState, type RefObject } from "react";
import { imageAddress, originalAddress } from "../api/client";
import type { HeatOfClass } from "./heat";
import { HeatLayer } from "./HeatLayer";
import { useZoom, type ZoomHandle } from "./useZoom";
import { neededSide, type Size } from "./zoom";

export type StageHandle = Pick<ZoomHandle, "by" | "fit" | "full" | "pan">;
type Shown = Size & { row: number; tables: string; words: string };
type Props = { heat?: HeatOfClass | undefined; image: Shown | null; handle: RefObject<StageHandle | null>; onStep: (by: number) => void; hasPrevious: boolean; hasNext: boolean };

const UNKNOWN = { width: 0, height: 0 };
const PIXELS_SEEN = 3;

/** The image itself: as sharp as the screen shows it, moved and enlarged by hand. */
export function Stage({ heat, image, handle, onStep, hasPrevious, hasNext }: Props) {
  const frame = useRef<HTMLDivElement>(null);
  const [loaded, setLoaded] = useState<Size & { row: number }>({ ...UNKNOWN, row: -1 });
  const size = image?.width ? image : loaded.row === image?.row ? loaded : UNKNOWN;
  const { zoom, by, fit, full, pan } = useZoom(frame, size, onStep);
  useImperativeHandle(handle, () => ({ by, fit, full, pan }), [by, fit, full, pan]);
  return (
    <div className="viewer-stage" ref={frame} data-scale={zoom.scale.toFixed(3)}>
      {image && <Picture key={image.row} heat={heat} image={image} size={size} zoom={zoom} onSize={(found) => setLoaded({ ...found, row: image.row })} />}
      <button type="button" className="viewer-step is-previous" aria-label="Previous image" disabled={!hasPrevious} onClick={() => onStep(-1)}>‹</button>
      <button type="button" className="viewer-step is-next" aria-label="Next image" disabled={!hasNext} onClick={() => onStep(1)}>›</button>
    </div>
  );
}

type PictureProps = { heat: HeatOfClass | undefined; image: Shown; size: Size; zoom: ZoomHandle["zoom"]; onSize: (size: Size) => void };

function Picture({ heat, image, size, zoom, onSize }: PictureProps) {
  const [isMissing, setMissing] = useState(false);
  const [isLoaded, setLoaded] = useState(false);
  const wanted = size.width ? neededSide(zoom, size, window.devicePixelRatio || 1) : 512;
  const [side, setSide] = useState(wanted);
  useEffect(() => {
    setSide((old) => (old === null || (wanted !== null && wanted <= old) ? old : wanted));
  }, [wanted]);
  if (isMissing) return <p className="note warn">There is no image of this sample that can be read.</p>;
  const [width, height] = [Math.max(1, size.width * zoom.scale), Math.max(1, size.height * zoom.scale)];
  const looks = { width, height, transform: `translate(calc(-50% + ${zoom.x}px), calc(-50% + ${zoom.y}px))` };
  const kind = zoom.scale >= PIXELS_SEEN ? "viewer-image is-pixels" : "viewer-image";
  return (
    <>
      {!isLoaded && size.width > 0 && <img className={kind} src={imageAddress(image.row, image.tables, 160)} alt="" style={looks} draggable={false} />}
      <img
        className={kind}
        src={originalAddress(image.row, image.tables, side)}
        alt={image.words}
        style={looks}
        draggable={false}
        onLoad={({ currentTarget: found }) => {
          setLoaded(true);
          if (!size.width) onSize({ width: found.naturalWidth, height: found.naturalHeight });
        }}
        onError={() => setMissing(true)}
      />
      {heat && size.width > 0 && <HeatLayer map={heat} style={looks} />}
    </>
  );
}
