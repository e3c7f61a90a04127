import { describe, expect, it } from "vitest";
import { meaning, Separation } from "./separation";

function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1664525 + 1013904223) % 4294967296;
    return state / 4294967296;
  };
}

function world(n: number, seed: number) {
  const draw = random(seed);
  const failed = new Uint8Array(n).map(() => (draw() < 0.3 ? 1 : 0));
  const similarities = new Float32Array(n).map((_, place) => Math.round(200 * (draw() - 0.5 + 0.2 * (failed[place] ?? 0))) / 400);
  return { failed, similarities };
}

/** The server's `score_at`, word for word. */
function serverScore(similarities: Float32Array, failed: Uint8Array, threshold: number): number {
  const inside = [...similarities].map((value) => value >= threshold);
  const share = (side: number) => {
    const own = inside.filter((_, place) => failed[place] === side);
    return own.filter(Boolean).length / own.length;
  };
  return share(1) - share(0);
}

describe("Separation", () => {
  it("equals the server's score at every threshold, ties and ends included", () => {
    const { failed, similarities } = world(400, 7);
    const parted = new Separation(similarities, failed);
    const cuts = [...similarities, ...[...similarities].map((value) => value + 1e-4), -2, 2];
    for (const cut of cuts) expect(parted.at(cut).score).toBeCloseTo(serverScore(similarities, failed, cut), 12);
  });

  it("knows the example of the server's own documentation", () => {
    const parted = new Separation(new Float32Array([0.1, 0.2, 0.3, 0.4]), new Uint8Array([0, 1, 1, 1]));
    expect(parted.at(0.25).score).toBeCloseTo(0.667, 3);
    expect(parted.at(0.25)).toMatchObject({ wrongInside: 2, rightInside: 0, wrongOutside: 1, rightOutside: 1, inside: 2, outside: 2 });
  });

  it("lists samples most similar first, negative similarities too, equal ones in their order", () => {
    const parted = new Separation(new Float32Array([-0.5, 0.25, -0.1, 0.25, 0]), new Uint8Array([0, 1, 0, 0, 1]));
    expect([...parted.nearest]).toEqual([1, 3, 4, 2, 0]);
    expect([parted.lowest, parted.highest]).toEqual([-0.5, 0.25]);
  });

  it("puts the samples at or above a threshold first in that list", () => {
    const { failed, similarities } = world(1000, 3);
    const parted = new Separation(similarities, failed);
    const { inside } = parted.at(0.05);
    const order = [...parted.nearest].map((place) => similarities[place] ?? 0);
    expect(order.slice(0, inside).every((value) => value >= 0.05)).toBe(true);
    expect(order.slice(inside).every((value) => value < 0.05)).toBe(true);
  });

  it("counts every sample in exactly one bin", () => {
    const { failed, similarities } = world(1000, 5);
    const { right, wrong, edges } = new Separation(similarities, failed).bins(30);
    const sum = (counts: number[]) => counts.reduce((one, two) => one + two, 0);
    expect(sum(right) + sum(wrong)).toBe(1000);
    expect(sum(wrong)).toBe(failed.reduce((one, two) => one + two, 0));
    expect(edges).toHaveLength(31);
  });

  it("holds when there is nothing, or only one kind of sample", () => {
    const none = new Separation(new Float32Array(0), new Uint8Array(0));
    expect(none.at(0).score).toBe(0);
    expect(none.bins(4).right).toEqual([0, 0, 0, 0]);
    const same = new Separation(new Float32Array([0.2, 0.2]), new Uint8Array([1, 1]));
    expect(same.at(0.1)).toMatchObject({ score: 0, inside: 2 });
    expect(same.at(null).inside).toBe(0);
  });

  it("keeps exact places among 200,000 samples", () => {
    const { failed, similarities } = world(200_000, 11);
    const { nearest } = new Separation(similarities, failed);
    expect(new Set(nearest).size).toBe(200_000);
    let last = Number.POSITIVE_INFINITY;
    let isSorted = true;
    for (const place of nearest) {
      isSorted = isSorted && (similarities[place] ?? 0) <= last;
      last = similarities[place] ?? 0;
    }
    expect(isSorted).toBe(true);
  });
});

describe("meaning", () => {
  it("says more for higher scores", () => {
    expect(meaning(-0.2)).toBe("no better than guessing");
    expect(meaning(0.65)).toBe("a good description");
  });
});
