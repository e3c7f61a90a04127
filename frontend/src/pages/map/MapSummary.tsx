import { counted, percent } from "../../components/figures";
import type { Colouring } from "./shading";

const BINS = 5;
type Props = { title: string; colouring: Colouring; counts: number[]; isShown: Uint8Array };

/** How many shown samples have each value: the map for those who cannot see it. */
export function MapSummary({ title, colouring, counts, isShown }: Props) {
  const lines = colouring.codes
    ? colouring.legend.map((entry, code) => ({ value: entry.value || "(empty)", count: counts[code] ?? 0 })).filter((line) => line.count > 0).sort((one, two) => two.count - one.count)
    : bins(colouring, isShown);
  const total = lines.reduce((sum, line) => sum + line.count, 0);
  return (
    <div className="table-box map-summary" tabIndex={0} role="region" aria-label={`Samples by ${title}`}>
      <table>
        <caption>Shown samples by: {title}</caption>
        <thead><tr><th scope="col">Value</th><th scope="col" className="number">Samples</th><th scope="col" className="number">Share</th></tr></thead>
        <tbody>
          {lines.map((line) => (
            <tr key={line.value}><th scope="row">{line.value}</th><td className="number">{counted(line.count)}</td><td className="number">{percent(line.count / (total || 1))}</td></tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Return how many shown samples lie in each of a few bins of numbers. */
export function bins(colouring: Colouring, isShown: Uint8Array): { value: string; count: number }[] {
  const counts = new Array<number>(BINS + 1).fill(0);
  const width = (colouring.high - colouring.low) / BINS || 1;
  for (let place = 0; place < isShown.length; place += 1) {
    if (!isShown[place]) continue;
    const value = colouring.values?.[place] ?? Number.NaN;
    const bin = Number.isNaN(value) ? BINS : Math.min(BINS - 1, Math.floor((value - colouring.low) / width));
    counts[bin] = (counts[bin] ?? 0) + 1;
  }
  const figure = (value: number) => Number(value.toPrecision(3)).toString().replace("-", "−");
  return counts
    .map((count, bin) => ({ count, value: bin === BINS ? "not known" : `${figure(colouring.low + bin * width)} to ${figure(colouring.low + (bin + 1) * width)}` }))
    .filter((line) => line.count > 0);
}
