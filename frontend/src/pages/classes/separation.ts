/** How similarity to a phrase parts wrong from right samples: everything that follows the threshold, without asking the server. */

export type Parted = {
  wrongInside: number;
  rightInside: number;
  wrongOutside: number;
  rightOutside: number;
  inside: number;
  outside: number;
  /** Error Score with this threshold: share of wrong samples at or above it minus share of right ones. */
  score: number;
};

export type Bins = { edges: number[]; right: number[]; wrong: number[] };

/** How many of ascending values are at least the threshold. */
function countFrom(sorted: Float32Array, threshold: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] ?? 0) >= threshold) high = middle;
    else low = middle + 1;
  }
  return sorted.length - low;
}

/** Places of values, largest first; equal ones in their order. Values and places are packed into exact doubles, which sort fast. */
function placesByValue(values: Float32Array): Uint32Array {
  const bits = new Int32Array(values.slice().buffer);
  const room = 2 ** Math.max(1, Math.ceil(Math.log2(values.length + 1)));
  const keys = new Float64Array(values.length);
  for (let place = 0; place < values.length; place += 1) {
    const raw = bits[place] ?? 0;
    const ordered = raw >= 0 ? raw : -(raw & 0x7fffffff);
    keys[place] = -ordered * room + place;
  }
  keys.sort();
  const places = new Uint32Array(values.length);
  for (let rank = 0; rank < keys.length; rank += 1) {
    const key = keys[rank] ?? 0;
    places[rank] = key - Math.floor(key / room) * room;
  }
  return places;
}

/** Similarities of samples to a phrase, sorted once; every threshold after that costs a few comparisons. */
export class Separation {
  /** Places of the samples, most similar first. */
  readonly nearest: Uint32Array;
  readonly lowest: number;
  readonly highest: number;
  private readonly wrong: Float32Array;
  private readonly right: Float32Array;

  constructor(
    readonly similarities: Float32Array,
    failed: Uint8Array,
  ) {
    const n = similarities.length;
    this.nearest = placesByValue(similarities);
    let nWrong = 0;
    for (let place = 0; place < n; place += 1) nWrong += failed[place] ? 1 : 0;
    this.wrong = new Float32Array(nWrong);
    this.right = new Float32Array(n - nWrong);
    let [atWrong, atRight] = [nWrong, n - nWrong];
    for (let rank = 0; rank < n; rank += 1) {
      const place = this.nearest[rank] ?? 0;
      const value = similarities[place] ?? 0;
      if (failed[place]) this.wrong[(atWrong -= 1)] = value;
      else this.right[(atRight -= 1)] = value;
    }
    this.lowest = n ? (similarities[this.nearest[n - 1] ?? 0] ?? 0) : 0;
    this.highest = n ? (similarities[this.nearest[0] ?? 0] ?? 0) : 1;
  }

  /** Count both sides of a threshold; without one nothing is inside. */
  at(threshold: number | null): Parted {
    const cut = threshold ?? Number.POSITIVE_INFINITY;
    const wrongInside = countFrom(this.wrong, cut);
    const rightInside = countFrom(this.right, cut);
    const [nWrong, nRight] = [this.wrong.length, this.right.length];
    return {
      wrongInside,
      rightInside,
      wrongOutside: nWrong - wrongInside,
      rightOutside: nRight - rightInside,
      inside: wrongInside + rightInside,
      outside: nWrong + nRight - wrongInside - rightInside,
      score: nWrong && nRight ? wrongInside / nWrong - rightInside / nRight : 0,
    };
  }

  /** Count right and wrong samples in equal steps of similarity. */
  bins(n: number): Bins {
    const width = (this.highest - this.lowest) / n || 1e-9;
    const edges = Array.from({ length: n + 1 }, (_, edge) => this.lowest + edge * width);
    const counts = (sorted: Float32Array) => {
      const found = new Array<number>(n).fill(0);
      for (const value of sorted) {
        const bin = Math.min(n - 1, Math.max(0, Math.floor((value - this.lowest) / width)));
        found[bin] = (found[bin] ?? 0) + 1;
      }
      return found;
    };
    return { edges, right: counts(this.right), wrong: counts(this.wrong) };
  }
}

/** An Error Score in a few words. */
export function meaning(score: number): string {
  if (score < 0.1) return "no better than guessing";
  if (score < 0.3) return "a weak hint";
  if (score < 0.5) return "a fair hint";
  if (score < 0.7) return "a good description";
  return "a very good description";
}
