import { describe, expect, it } from "vitest";
import { gridOf, nearest } from "./nearest";

const count = 3000;
const positions = Float32Array.from({ length: 2 * count }, (_, place) => Math.sin(place * 78.233) * (place % 7 === 0 ? 1 : 0.6));
const shown = Uint8Array.from({ length: count }, (_, place) => (place % 3 === 0 ? 0 : 1));

function slow(x: number, y: number, reach: number): number {
  let [best, least] = [-1, reach];
  for (let place = 0; place < count; place += 1) {
    const distance = Math.hypot((positions[2 * place] ?? 0) - x, (positions[2 * place + 1] ?? 0) - y);
    if (shown[place] && distance < least) [best, least] = [place, distance];
  }
  return best;
}

describe("nearest", () => {
  it("finds what looking at every point finds", () => {
    const grid = gridOf(positions);
    for (let step = 0; step < 200; step += 1) {
      const [x, y] = [1.1 * Math.cos(step * 3.1), 1.1 * Math.sin(step * 1.7)];
      expect(nearest(grid, x, y, 0.05, shown)).toBe(slow(x, y, 0.05));
      expect(nearest(grid, x, y, 0.5, shown)).toBe(slow(x, y, 0.5));
    }
  });

  it("finds points at the edge, and none where there is none", () => {
    const grid = gridOf(new Float32Array([1, 1, -1, -1]));
    expect(nearest(grid, 0.99, 1.01, 0.05, new Uint8Array([1, 1]))).toBe(0);
    expect(nearest(grid, -1.02, -1, 0.05, new Uint8Array([1, 1]))).toBe(1);
    expect(nearest(grid, 0, 0, 0.05, new Uint8Array([1, 1]))).toBe(-1);
    expect(nearest(gridOf(new Float32Array(0)), 0, 0, 1, new Uint8Array(0))).toBe(-1);
  });
});
