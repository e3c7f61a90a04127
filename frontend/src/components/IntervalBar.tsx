import { percent, range, type Interval } from "./figures";

type Props = { rate: number; interval: Interval; other?: number; label: string; kind?: "wrong" | "quiet" };

const HALF_POINT = 0.8;
const HALF_MARK = 0.4;

function kept(share: number, half: number): number {
  return Math.min(100 - 2 * half, Math.max(0, 100 * share - half));
}

/** A rate from 0 to 100 % with its interval, and a mark for what it is compared with. */
export function IntervalBar({ rate, interval, other, label, kind = "wrong" }: Props) {
  const said = `${label}: ${percent(rate)}, interval ${range(interval)}${other === undefined ? "" : `, compared with ${percent(other)}`}`;
  return (
    <svg className={`interval-bar ${kind}`} viewBox="0 0 100 12" preserveAspectRatio="none" role="img" aria-label={said}>
      <rect className="track" x="0" y="5" width="100" height="2" />
      <rect className="reach" x={100 * interval.low} y="3" width={Math.max(0.5, 100 * (interval.high - interval.low))} height="6" />
      {other !== undefined && <rect className="other" x={kept(other, HALF_MARK)} y="0" width={2 * HALF_MARK} height="12" />}
      <rect className="point" x={kept(rate, HALF_POINT)} y="1" width={2 * HALF_POINT} height="10" />
    </svg>
  );
}
