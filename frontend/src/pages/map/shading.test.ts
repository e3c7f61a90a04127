import { describe, expect, it } from "vitest";
import { bins } from "./MapSummary";
import { legendColour, parsed, rampColour } from "./palette";
import { drawingOrder, pointColours, shownCounts, shownPoints, type Colouring } from "./shading";

const colouring: Colouring = {
  codes: new Uint16Array([0, 0, 1, 2, 0]),
  values: null,
  legend: [{ value: "right", count: 3, meaning: "right" }, { value: "wrong", count: 1, meaning: "wrong" }, { value: "not known", count: 1, meaning: "unknown" }],
  low: 0,
  high: 1,
};
const numbers: Colouring = { codes: null, values: new Float32Array([0, 0.5, 1, Number.NaN, 0.2]), legend: [], low: 0, high: 1 };
const parts = new Uint8Array([0, 0, 0, 0, 1]);

describe("shading", () => {
  it("shows parts that are on and values that are not hidden", () => {
    expect([...shownPoints(parts, new Set([0]), colouring, new Set())]).toEqual([1, 1, 1, 1, 0]);
    expect([...shownPoints(parts, new Set([0, 1]), colouring, new Set([0]))]).toEqual([0, 0, 1, 1, 0]);
  });

  it("paints right blue, wrong orange, hidden points not at all", () => {
    const painted = pointColours(colouring, parts, new Uint8Array([1, 0, 1, 1, 1]), null, "light");
    expect([...painted.slice(0, 4)]).toEqual([...parsed("#2f78b0"), 255]);
    expect(painted[7]).toBe(0);
    expect([...painted.slice(8, 12)]).toEqual([...parsed("#c2570c"), 255]);
    expect(painted[19]).toBeLessThan(255);
  });

  it("paints numbers along the ramp, and what is not known otherwise", () => {
    const painted = pointColours(numbers, parts, new Uint8Array(5).fill(1), null, "dark");
    expect([...painted.slice(0, 3)]).toEqual([...rampColour(0, "dark")]);
    expect([...painted.slice(8, 11)]).toEqual([...rampColour(1, "dark")]);
    expect([...painted.slice(12, 15)]).toEqual([...legendColour(0, "unknown", "dark")]);
  });

  it("dims what is not selected", () => {
    const painted = pointColours(colouring, parts, new Uint8Array(5).fill(1), new Uint8Array([1, 0, 0, 0, 0]), "light");
    expect(painted[3]).toBe(255);
    expect(painted[7]).toBeLessThan(80);
  });

  it("draws what is rare, high or selected last", () => {
    const shown = new Uint8Array(5).fill(1);
    expect([...drawingOrder(colouring, parts, shown, null)]).toEqual([4, 3, 0, 1, 2]);
    expect([...drawingOrder(numbers, parts, shown, null)]).toEqual([4, 0, 3, 1, 2]);
    expect([...drawingOrder(numbers, parts, new Uint8Array([1, 0, 1, 0, 0]), new Uint8Array([1, 0, 0, 0, 0]))]).toEqual([2, 0]);
  });

  it("counts what is shown", () => {
    expect(shownCounts(colouring, new Uint8Array([1, 0, 1, 1, 1]))).toEqual([2, 1, 1]);
    expect(bins(numbers, new Uint8Array(5).fill(1)).map((line) => line.count)).toEqual([1, 1, 1, 1, 1]);
  });

  it("has a colour of its own for every value of a long legend", () => {
    for (const ground of ["light", "dark"] as const) {
      const colours = Array.from({ length: 100 }, (_, place) => legendColour(place, "", ground).join(" "));
      expect(new Set(colours).size).toBe(100);
      for (const colour of colours) for (const channel of colour.split(" ").map(Number)) expect(channel >= 0 && channel <= 255).toBe(true);
    }
  });
});
