import { percent, range, type Share } from "../../components/figures";

type Props = { before: Share; after: Share | null; label: string };

const PLACE = 100;

/** Accuracy before (hollow) and after (filled) on one line from 0 to 100 %, each with its interval. */
export function PairedDots({ before, after, label }: Props) {
  const said = `${label}: before ${percent(before.value)}, interval ${range(before.interval)}${after ? `; after ${percent(after.value)}, interval ${range(after.interval)}` : ""}`;
  const isUp = after !== null && after.value >= before.value;
  return (
    <svg className="paired-dots" role="img" aria-label={said} height="26">
      <line className="axis" x1="0" x2="100%" y1="13" y2="13" />
      <Reach share={before} y={8} kind="before" />
      {after && <Reach share={after} y={18} kind={isUp ? "after" : "after fell"} />}
    </svg>
  );
}

/** One dot with its interval. */
function Reach({ share, y, kind }: { share: Share; y: number; kind: string }) {
  return (
    <g className={kind}>
      <line x1={`${PLACE * share.interval.low}%`} x2={`${PLACE * share.interval.high}%`} y1={y} y2={y} />
      <circle cx={`${Math.min(98.5, Math.max(1.5, PLACE * share.value))}%`} cy={y} r="4.5" />
    </g>
  );
}
