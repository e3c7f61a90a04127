import { percent, range, type Interval } from "./figures";

type Props = { rate: number; interval: Interval; other?: number; label: string };

/** A rate from 0 to 100 % with its interval, and a mark for what it is compared with. */
export function IntervalBar({ rate, interval, other, label }: Props) {
  const said = `${label}: ${percent(rate)}, interval ${range(interval)}${other === undefined ? "" : `, compared with ${percent(other)}`}`;
  return (
    <svg className="interval-bar" viewBox="0 0 100 12" preserveAspectRatio="none" role="img" aria-label={said}>
      <rect className="track" x="0" y="5" width="100" height="2" />
      <rect className="reach" x={100 * interval.low} y="3" width={Math.max(0.5, 100 * (interval.high - interval.low))} height="6" />
      {other !== undefined && <rect className="other" x={100 * other - 0.4} y="0" width="0.8" height="12" />}
      <rect className="point" x={Math.min(98.6, 100 * rate - 0.7)} y="1" width="1.4" height="10" />
    </svg>
  );
}
