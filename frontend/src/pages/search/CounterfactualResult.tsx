import { chance, isCertain, points, pointsRange } from "../../components/figures";
import { CaptionRow } from "./CaptionRow";
import type { Counterfactual, CounterfactualRate } from "./generation";

/** One series: the unchanged images first, then what every caption did. */
export function CounterfactualResult({ result, isOpen }: { result: Counterfactual; isOpen: boolean }) {
  const captions = result.rates.map((rate) => rate.caption).join(", ");
  return (
    <details className="generation-result" open={isOpen}>
      <summary><strong>{result.class_name}</strong>: {captions} <span className="quiet">{result.created.slice(0, 10)}, {result.generator_id.split("-")[0]}</span></summary>
      <RateRow rate={result.baseline} control={null} />
      {result.rates.map((rate) => <RateRow key={rate.caption} rate={rate} control={result.baseline} />)}
      {[...result.explanation, ...result.notes].map((line) => <p key={line} className="quiet">{line}</p>)}
    </details>
  );
}

function RateRow({ rate, control }: { rate: CounterfactualRate; control: CounterfactualRate | null }) {
  const title = rate.caption ? `“${rate.caption}”` : "Unchanged";
  if (rate.note) {
    return (
      <div className="caption-row">
        <h3>{title} cannot be generated</h3>
        <p>{rate.note.split(" Say only ")[0]}</p>
      </div>
    );
  }
  const change = rate.change_interval;
  return (
    <CaptionRow title={title} prompt={rate.prompt} rate={rate.share} baseline={control?.share ?? null} predictions={rate.wrong_labels} images={rate.images}>
      {control && (
        <span className="quiet">
          {points(change ? rate.change : null)} points{change && ` (${pointsRange(change.low, change.high)})`}, p {chance(change ? rate.p_after_looks : null)}
          {!(change && isCertain(rate.p_after_looks)) && ", which may be chance"}
        </span>
      )}
    </CaptionRow>
  );
}
