import { IntervalBar } from "../../components/IntervalBar";
import { chance, percent, range } from "../../components/figures";
import { DrawnPictures } from "./DrawnPictures";
import { points, type Counterfactual, type CounterfactualRate } from "./drawings";

/** One series: the unchanged pictures first, then what every caption did. */
export function CounterfactualResult({ result, isOpen }: { result: Counterfactual; isOpen: boolean }) {
  const captions = result.rates.map((rate) => rate.caption).join(", ");
  return (
    <details className="drawing-result" open={isOpen}>
      <summary><strong>{result.class_name}</strong>: {captions} <span className="quiet">{result.created.slice(0, 10)}, {result.generator.split("-")[0]}</span></summary>
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
        <h3>{title} cannot be drawn</h3>
        <p>{rate.note.split(" Say only ")[0]}</p>
      </div>
    );
  }
  return (
    <div className="caption-row">
      <h3>{title} <span className="badge">generated</span></h3>
      <p className="quiet">{rate.prompt}</p>
      <div className="rate-line">
        <span><strong>{percent(rate.rate.value)}</strong> fail <span className="quiet">({rate.rate.count} of {rate.rate.total}, {range(rate.rate)})</span></span>
        <IntervalBar rate={rate.rate.value} interval={rate.rate} label={`failure rate of ${title}`} {...(control ? { other: control.rate.value } : {})} />
        {control && (
          <span className="quiet">
            {points(rate.change)}{rate.change_low !== null && rate.change_high !== null && ` (${points(rate.change_low).replace(" points", "")} to ${points(rate.change_high)})`}, p {chance(rate.p_after_looks)}
            {(rate.p_after_looks ?? 1) > 0.05 && ", which may be chance"}
          </span>
        )}
      </div>
      {rate.taken_for.length > 0 && <p className="quiet">Taken for {rate.taken_for.map((one) => `${one.label} (${one.count})`).join(", ")}.</p>}
      <DrawnPictures pictures={rate.pictures} what={title} />
    </div>
  );
}
