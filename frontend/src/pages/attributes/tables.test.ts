import { describe, expect, test } from "vitest";
import { barParts, cellKey, heat, heatTable, linesOf, worstValue, type Attribute, type Combination, type Value } from "./tables";

const share = (count: number, total: number, low = 0) => ({ count, total, value: total ? count / total : 0, interval: { low, high: 1, level: 0.95 } });
const value = (id: string, count: number, total: number, low = 0): Value => ({ value_id: id, title: id, failures: share(count, total, low), training: null, phrases: [], merged: [] });
const attribute = (id: string, values: Value[]): Attribute => ({
  attribute_id: id, name: id, source: "given", state: "assigned", note: "", is_worded: true, values,
  unknown: share(0, 0), unsure_share: 0, missing_share: 0, agreement: null,
});
const pair = (one: string, two: string): Combination => ({
  values: [
    { attribute_id: "colour", value_id: one, attribute: "colour", value: one },
    { attribute_id: "place", value_id: two, attribute: "place", value: two },
  ],
  failures: share(1, 5), lift: 1, coverage: share(1, 5),
});

describe("figures of attributes", () => {
  test("barParts: the longest bar is full", () => {
    expect(barParts(value("green", 3, 10), 10)).toEqual({ right: 70, wrong: 30 });
    expect(barParts(value("none", 0, 0), 0)).toEqual({ right: 0, wrong: 0 });
  });

  test("worstValue: one failure of one sample is not the worst", () => {
    const found = attribute("colour", [value("odd", 1, 1, 0.2), value("green", 5, 10, 0.24), value("red", 1, 50, 0.01)]);
    expect(worstValue(found)?.value_id).toBe("green");
    expect(worstValue(attribute("colour", [value("red", 0, 9)]))).toBeNull();
  });

  test("heatTable: rows and columns are in the order of the attributes and hold no empty ones", () => {
    const colour = attribute("colour", [value("red", 0, 9), value("green", 1, 9), value("blue", 0, 1)]);
    const place = attribute("place", [value("sand", 0, 9), value("grass", 1, 9)]);
    const table = heatTable([pair("green", "grass"), pair("red", "grass")], colour, place);
    expect([table.rows, table.columns]).toEqual([["red", "green"], ["grass"]]);
    expect(table.cells.get(cellKey("green", "grass"))).toBeDefined();
  });

  test("heat: nothing below the usual rate, and all five steps above it", () => {
    expect([0.1, 0.2, 0.21, 0.6, 1].map((rate) => heat(rate, 0.2))).toEqual([0, 0, 1, 3, 5]);
    expect(heat(1, 1)).toBe(0);
  });

  test("linesOf: empty lines are none", () => {
    expect(linesOf(" on sand \n\n on a beach")).toEqual(["on sand", "on a beach"]);
  });
});
