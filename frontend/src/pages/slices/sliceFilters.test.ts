import { expect, test } from "vitest";
import { choices, chosenSlices, NO_FILTER, standingOf, type SliceLine } from "./sliceFilters";
import { line } from "./sliceLine.testing";

const dismissed = { slice_id: "c", kind: "dismissed" as const, by: "Ada", time: "2026-01-01T00:00:00+00:00", reason: "known flaw" };
const LINES = [
  line({ slice_id: "a" }),
  line({ slice_id: "b", verdict: "not confirmed", verdict_words: "not confirmed", method: "keywords", title: "pear: on a shelf", class_title: "pear" }),
  line({ slice_id: "c", dismissed }),
];
const ids = (lines: SliceLine[]) => lines.map((one) => one.slice_id).join("");

test("standingOf: a dismissed slice is dismissed whatever its test said", () => {
  expect(LINES.map(standingOf)).toEqual(["confirmed", "unconfirmed", "dismissed"]);
});

test("chosenSlices: by standing", () => {
  expect(ids(chosenSlices(LINES, NO_FILTER))).toBe("ab");
  expect(ids(chosenSlices(LINES, { ...NO_FILTER, standing: "all" }))).toBe("abc");
  expect(ids(chosenSlices(LINES, { ...NO_FILTER, standing: "dismissed" }))).toBe("c");
  expect(ids(chosenSlices(LINES, { ...NO_FILTER, standing: "unconfirmed" }))).toBe("b");
  const tree = [line({ slice_id: "a", kind: "finding" }), line({ slice_id: "b", kind: "explained" }), line({ slice_id: "c", kind: "worse" })];
  expect(ids(chosenSlices(tree, { ...NO_FILTER, standing: "findings" }))).toBe("ac");
});

test("chosenSlices: by class, method and all of the words, in any case", () => {
  expect(ids(chosenSlices(LINES, { ...NO_FILTER, title: "pear" }))).toBe("b");
  expect(ids(chosenSlices(LINES, { ...NO_FILTER, method: "directions" }))).toBe("a");
  expect(ids(chosenSlices(LINES, { ...NO_FILTER, text: " SHELF  pear " }))).toBe("b");
  expect(ids(chosenSlices(LINES, { ...NO_FILTER, standing: "all", text: "known flaw" }))).toBe("c");
});

test("choices: each once, ordered", () => {
  expect(choices(LINES, (one) => one.class_title)).toEqual(["apple", "pear"]);
});
