/** Moving the threshold of a slice on the page: scores come once, deepest first, and every question is answered from them. */
import type { Schemas } from "../../api/client";
import { bytes, floats } from "../../components/packed";

export type Scores = { values: Float32Array; failuresBefore: Uint32Array };
export type Sides = { n: number; failed: number; nOutside: number; failedOutside: number };

/** Unpack scores and order them, deepest first; `failuresBefore[k]` counts the failures among the first k. */
export function unpacked(packed: Pick<Schemas["SliceScores"], "scores" | "failed" | "n_samples">): Scores {
  const given = floats(packed.scores);
  const failed = bytes(packed.failed);
  const order = Uint32Array.from(given.keys()).sort((one, two) => (given[two] ?? 0) - (given[one] ?? 0));
  const values = Float32Array.from(order, (place) => given[place] ?? 0);
  const failuresBefore = new Uint32Array(values.length + 1);
  order.forEach((place, rank) => { failuresBefore[rank + 1] = (failuresBefore[rank] ?? 0) + (failed[place] ?? 0); });
  return { values, failuresBefore };
}

/** Return how many samples and failures lie inside and outside a threshold. */
export function sidesAt({ values, failuresBefore }: Scores, threshold: number): Sides {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((values[middle] ?? 0) >= threshold) low = middle + 1;
    else high = middle;
  }
  const all = failuresBefore[values.length] ?? 0;
  const failed = failuresBefore[low] ?? 0;
  return { n: low, failed, nOutside: values.length - low, failedOutside: all - failed };
}

/** Return counts of right and wrong samples in equal bins, and their edges; scores that are no numbers are left out. */
export function binned({ values, failuresBefore }: Scores, nBins = 40): { edges: number[]; right: number[]; wrong: number[] } {
  const finite = values.filter(Number.isFinite);
  const [most, least] = [finite[0] ?? 1, finite[finite.length - 1] ?? 0];
  const width = (most - least) / nBins || 1;
  const [right, wrong] = [new Array<number>(nBins).fill(0), new Array<number>(nBins).fill(0)];
  finite.forEach((value, rank) => {
    const bin = Math.min(nBins - 1, Math.floor((value - least) / width));
    const isWrong = (failuresBefore[rank + 1] ?? 0) > (failuresBefore[rank] ?? 0);
    const counts = isWrong ? wrong : right;
    counts[bin] = (counts[bin] ?? 0) + 1;
  });
  return { edges: Array.from({ length: nBins + 1 }, (_, edge) => least + edge * width), right, wrong };
}

/** Return a threshold between two samples, so that exactly the `n` deepest are inside as far as equal scores allow. */
export function thresholdFor({ values }: Scores, n: number): number {
  const last = values[n - 1];
  const next = values[n];
  if (last === undefined) return (values[0] ?? 0) + 1;
  return next === undefined ? last : (last + next) / 2;
}
