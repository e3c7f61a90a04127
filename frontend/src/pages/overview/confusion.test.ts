import { describe, expect, it } from "vitest";
import { cellsOf } from "./confusion";

describe("cellsOf", () => {
  it("tells right from wrong and colours by the share of the line", () => {
    const [first, second] = cellsOf([[8, 2], [0, 1]], false);
    expect(first?.map((cell) => cell.kind)).toEqual(["right", "wrong"]);
    expect(first?.[0]?.share).toBe(0.8);
    expect(first?.[0]?.strength).toBeGreaterThan(first?.[1]?.strength ?? 0);
    expect(second?.map((cell) => cell.kind)).toEqual(["none", "right"]);
    expect(second?.[1]?.strength).toBe(50);
  });

  it("does not colour how all other classes are confused among themselves", () => {
    expect(cellsOf([[1, 1], [1, 9]], true)[1]?.[1]).toMatchObject({ kind: "none", strength: 0, count: 9 });
  });

  it("survives an empty line", () => {
    expect(cellsOf([[0, 0], [0, 0]], false).flat().every((cell) => cell.strength === 0)).toBe(true);
  });
});
