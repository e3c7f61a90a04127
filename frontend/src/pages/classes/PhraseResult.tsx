import { useNoun } from "../../app/session";
import { counted, percent, score } from "../../components/figures";
import type { PhraseScore } from "./classData";
import { ScoreDial } from "./ScoreDial";
import type { Parted, Separation } from "./separation";
import { ThresholdHistogram } from "./ThresholdHistogram";

type Props = {
  answer: PhraseScore;
  separation: Separation;
  threshold: number | null;
  parted: Parted;
  isOwn: boolean;
  isOld: boolean;
  onMove: (threshold: number) => void;
  onReset: () => void;
};

const FIT_TITLES: Record<PhraseScore["fit"], string> = {
  good: "Good words.",
  "separates but does not match": "It separates, but the words hardly fit anything.",
  "matches but does not separate": "The words fit, but they do not tell right from wrong.",
  "cannot tell": "It cannot be told from these samples.",
};

const GUESSING = 0.1;

/** Return what to say of the words at the line that is shown: a line that was moved to where they tell nothing makes no good words. */
export function fitTitle(fit: PhraseScore["fit"], isOwn: boolean, shown: number | null): { title: string; isGood: boolean } {
  const isLost = fit === "good" && isOwn && (shown ?? 0) < GUESSING;
  return isLost ? { title: "Not at this line: here the words do not tell right from wrong.", isGood: false } : { title: FIT_TITLES[fit], isGood: fit === "good" };
}

/** What became of a phrase: two scores, the histogram with its line, and advice on the words. */
export function PhraseResult({ answer, separation, threshold, parted, isOwn, isOld, onMove, onReset }: Props) {
  const noun = useNoun();
  const fit = fitTitle(answer.fit, isOwn, parted.score);
  const rate = (wrong: number, all: number) => `${percent(all ? wrong / all : 0)} of ${counted(all)}`;
  return (
    <div className="phrase-result" aria-busy={isOld}>
      <div className="result-columns">
        <ScoreDial title="Error Score" value={parted.score} isOld={isOld} />
        <ScoreDial title="Held-out Error Score" value={answer.held_out_score} isOld={isOld} />
        <div>
          <ThresholdHistogram separation={separation} threshold={threshold} parted={parted} onMove={onMove} />
          <div className="legend">
            <span className="right"><i />right {noun}</span>
            <span className="wrong"><i />wrong {noun}</span>
            {isOwn && <button type="button" className="link" onClick={onReset}>Back to the best line</button>}
          </div>
        </div>
      </div>
      <p className="quiet small-words">
        The Error Score says how well your words tell wrong {noun} from right ones: 0 is guessing, 1 is perfect.
        For the held-out one the line is chosen on other {noun} each time, so trust it more.
      </p>
      <p role="status" className="unseen">{isOld ? "" : `Error Score ${score(parted.score)}, held out ${score(answer.held_out_score)}. ${fit.title}`}</p>
      <div className={fit.isGood ? "note" : "note warn"}>
        <p>
          <strong>{fit.title}</strong> Where your words fit, the AI is wrong on <b className="wrong-words">{rate(parted.wrongInside, parted.inside)}</b> {noun},
          elsewhere on <b>{rate(parted.wrongOutside, parted.outside)}</b>. {fit.isGood || answer.fit !== "good" ? answer.advice : ""}
        </p>
      </div>
    </div>
  );
}
