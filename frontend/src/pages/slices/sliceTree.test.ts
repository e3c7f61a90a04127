import { expect, test } from "vitest";
import { line } from "./sliceLine.testing";
import { treeLines } from "./sliceTree";

const LINES = [
  line({ slice_id: "night", kind: "worse", parent: "red", gap: 0.8, coverage: 0.1, excess: 0.05 }),
  line({ slice_id: "wet", kind: "explained", parent: "red", gap: 0.2, coverage: 0.6, excess: 0.4 }),
  line({ slice_id: "cut", kind: "finding", gap: 0.7, coverage: 0.2, excess: 0.1 }),
  line({ slice_id: "red", kind: "finding", gap: 0.5, coverage: 0.7, excess: 0.5 }),
  line({ slice_id: "old", verdict: "not confirmed" }),
];
const shown = (order: "severity" | "coverage" | "both") => treeLines(LINES, order).map((one) => `${one.depth}${one.line.slice_id}`).join(" ");

test("treeLines: findings by the chosen figure, worse parts before what is explained, unconfirmed ones last", () => {
  expect(shown("both")).toBe("0red 1night 1wet 0cut 0old");
  expect(shown("coverage")).toBe("0red 1night 1wet 0cut 0old");
  expect(shown("severity")).toBe("0cut 0red 1night 1wet 0old");
});

test("treeLines: without its parent a slice is on top", () => {
  const alone = treeLines(LINES.filter((one) => one.slice_id !== "red"), "severity");
  expect(alone.map((one) => one.depth)).toEqual([0, 0, 0, 0]);
});
