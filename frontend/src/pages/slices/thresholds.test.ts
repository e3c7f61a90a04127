import { expect, test } from "vitest";
import { binned, sidesAt, thresholdFor, unpacked } from "./thresholds";

function packed(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes));
}

function scores(values: number[], failed: number[]) {
  return unpacked({ scores: packed(new Uint8Array(new Float32Array(values).buffer)), failed: packed(Uint8Array.from(failed)), n_samples: values.length });
}

const FOUR = scores([0.5, -1, 2, 1], [1, 0, 1, 1]);

test("sidesAt: counts samples and failures on both sides, equal scores inside", () => {
  expect(sidesAt(FOUR, 1)).toEqual({ n: 2, failed: 2, nOutside: 2, failedOutside: 1 });
  expect(sidesAt(FOUR, 3)).toEqual({ n: 0, failed: 0, nOutside: 4, failedOutside: 3 });
  expect(sidesAt(FOUR, -9)).toEqual({ n: 4, failed: 3, nOutside: 0, failedOutside: 0 });
});

test("thresholdFor: lets exactly so many in", () => {
  for (const n of [0, 1, 2, 3, 4]) expect(sidesAt(FOUR, thresholdFor(FOUR, n)).n).toBe(n);
});

test("binned: every sample is in one bin, the deepest in the last", () => {
  const { right, wrong, edges } = binned(FOUR, 3);
  expect(edges).toHaveLength(4);
  expect(right).toEqual([1, 0, 0]);
  expect(wrong).toEqual([0, 1, 2]);
});

test("binned: scores that are all the same or no numbers do not matter", () => {
  expect(binned(scores([1, 1], [0, 1]), 2).right.reduce((one, two) => one + two)).toBe(1);
  expect(binned(scores([1, -Infinity, 2], [0, 1, 0]), 2).wrong).toEqual([0, 0]);
});

test("sidesAt: of many samples, every one is on one side", () => {
  const many = scores(Array.from({ length: 1000 }, (_, place) => Math.sin(place)), Array.from({ length: 1000 }, (_, place) => place % 2));
  expect(sidesAt(many, 0).n + sidesAt(many, 0).nOutside).toBe(1000);
});
