import { useId } from "react";
import { score } from "../../components/figures";
import { meaning } from "./separation";

type Props = { title: string; value: number; explained?: string; isOld?: boolean };

/** A score from 0 to 1 as a half circle, with what it means in words. */
export function ScoreDial({ title, value, explained, isOld = false }: Props) {
  const id = useId();
  const part = Math.min(1, Math.max(0, value));
  const length = Math.PI * 40;
  return (
    <div className={isOld ? "dial old" : "dial"}>
      <svg viewBox="0 0 100 56" role="meter" aria-valuemin={0} aria-valuemax={1} aria-valuenow={Number(part.toFixed(2))} aria-valuetext={`${score(value)}, ${meaning(value)}`} aria-labelledby={id}>
        <path className="dial-track" d="M 10 52 A 40 40 0 0 1 90 52" />
        <path className="dial-value" d="M 10 52 A 40 40 0 0 1 90 52" strokeDasharray={`${part * length} ${length}`} />
        <text x="50" y="50" textAnchor="middle">{score(value)}</text>
      </svg>
      <p id={id} className="dial-title">{title}</p>
      <p className="dial-meaning">{meaning(value)}</p>
      {explained && <p className="quiet small-words">{explained}</p>}
    </div>
  );
}
