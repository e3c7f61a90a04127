import { useMemo, useRef, type KeyboardEvent, type PointerEvent } from "react";
import { counted, percent } from "../../components/figures";
import { Histogram } from "../../components/Histogram";
import type { Parted, Separation } from "./separation";

const BINS = 48;
const STEPS = 100;
const LARGE_STEP = 10;

type Props = { separation: Separation; threshold: number | null; parted: Parted; onMove: (threshold: number) => void };

/** How similar right and wrong images are to the words, with a line that can be dragged or moved with the arrow keys. */
export function ThresholdHistogram({ separation, threshold, parted, onMove }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const bins = useMemo(() => separation.bins(BINS), [separation]);
  const { lowest, highest } = separation;
  const span = highest - lowest || 1e-9;
  const shown = Math.min(highest + span / STEPS, Math.max(lowest, threshold ?? highest + span / STEPS));
  const move = (value: number) => onMove(Math.min(highest + span / STEPS, Math.max(lowest, value)));
  const fromPointer = (event: PointerEvent<HTMLDivElement>) => {
    const area = box.current?.getBoundingClientRect();
    if (area?.width) move(lowest + (span * (event.clientX - area.left)) / area.width);
  };
  const fromKey = (event: KeyboardEvent<HTMLDivElement>) => {
    const step = (event.shiftKey ? LARGE_STEP : 1) * (span / STEPS);
    const moves: Record<string, number> = {
      ArrowLeft: shown - step, ArrowDown: shown - step, ArrowRight: shown + step, ArrowUp: shown + step,
      PageDown: shown - LARGE_STEP * (span / STEPS), PageUp: shown + LARGE_STEP * (span / STEPS), Home: lowest, End: highest,
    };
    const next = moves[event.key];
    if (next === undefined) return;
    event.preventDefault();
    move(next);
  };
  const said = `${counted(parted.inside)} images fit the words, the AI is wrong on ${percent(parted.inside ? parted.wrongInside / parted.inside : 0)} of them`;
  return (
    <div className="threshold-histogram">
      <div ref={box} className="threshold-area" onPointerDown={(event) => { event.currentTarget.setPointerCapture(event.pointerId); fromPointer(event); }} onPointerMove={(event) => { if (event.buttons === 1) fromPointer(event); }}>
        <Histogram {...bins} isShare label="How well the words fit right images (above) and wrong images (below)" height={112} />
        <div
          className="threshold-handle"
          role="slider"
          tabIndex={0}
          aria-label="From here on an image fits the words"
          aria-valuemin={0}
          aria-valuemax={STEPS}
          aria-valuenow={Math.min(STEPS, Math.round((STEPS * (shown - lowest)) / span))}
          aria-valuetext={said}
          data-line={threshold ?? undefined}
          onKeyDown={fromKey}
          style={{ left: `${Math.min(100, (100 * (shown - lowest)) / span)}%` }}
        />
      </div>
      <p className="axis-words quiet"><span>← fits the words less</span><span>drag the line</span><span>fits the words more →</span></p>
    </div>
  );
}
