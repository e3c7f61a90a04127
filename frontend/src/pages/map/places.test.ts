import { describe, expect, it } from "vitest";
import { placesOf } from "./places";

describe("placesOf", () => {
  it("finds points by their rows, and leaves out rows that are not on the map", () => {
    expect(placesOf(new Int32Array([7, 3, 9]), new Int32Array([9, 7, 1]))).toEqual([0, 2]);
  });
});
