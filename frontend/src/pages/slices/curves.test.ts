import { expect, test } from "vitest";
import { CHART, curveChart, heightOf, type Name } from "./curves";

function name(sizes: number[], accuracies: number[]): Name {
  return { phrase: "p", contrast: "green", score: 1, describer: "d", accuracy_nearest: null, curve: sizes.map((size, place) => [size, accuracies[place] ?? 0]), witness: "", witness_score: null, witness_sentence: "", is_doubtful: false, n_true: null, n_told: 0, title: "", measured: null, held: null, is_unsure: false, doubt: "", held_sentence: "" };
}

test("curveChart: nothing to draw without two points", () => {
  expect(curveChart([name([5], [0.5])], [])).toBeNull();
  expect(curveChart([], [])).toBeNull();
});

test("curveChart: K is on a logarithmic axis, accuracy from bottom to top", () => {
  const chart = curveChart([name([10, 20, 40], [0, 0.5, 1])], [name([10, 40], [1, 1])])!;
  const [hard, easy] = chart.lines;
  expect([hard?.isHard, easy?.isHard]).toEqual([true, false]);
  const [first, second, third] = hard!.points;
  expect(first!.x).toBeCloseTo(CHART.left);
  expect(third!.x).toBeCloseTo(CHART.width - CHART.right);
  expect(second!.x - first!.x).toBeCloseTo(third!.x - second!.x);
  expect([first!.y, third!.y]).toEqual([heightOf(0), heightOf(1)]);
  expect(first!.y).toBeGreaterThan(third!.y);
});

test("curveChart: the first name that has a curve is drawn", () => {
  expect(curveChart([name([], []), name([5, 10], [0.2, 0.4])], [])?.lines).toHaveLength(1);
});
