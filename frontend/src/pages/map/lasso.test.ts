import { describe, expect, it } from "vitest";
import { boxAround, isInside, pointsInBox, pointsInside, thinned } from "./lasso";

const square = [{ x: 0, y: 0 }, { x: 1, y: 0 }, { x: 1, y: 1 }, { x: 0, y: 1 }];
const hollow = [{ x: 0, y: 0 }, { x: 3, y: 0 }, { x: 3, y: 3 }, { x: 2, y: 3 }, { x: 2, y: 1 }, { x: 1, y: 1 }, { x: 1, y: 3 }, { x: 0, y: 3 }];

describe("lasso", () => {
  it("tells inside from outside", () => {
    expect(isInside(0.5, 0.5, square)).toBe(true);
    expect(isInside(1.5, 0.5, square)).toBe(false);
    expect(isInside(0.5, -0.1, square)).toBe(false);
  });

  it("leaves the hollow of an outline out", () => {
    expect(isInside(1.5, 2, hollow)).toBe(false);
    expect(isInside(0.5, 2, hollow)).toBe(true);
    expect(isInside(2.5, 2, hollow)).toBe(true);
  });

  it("gives what a slow way gives, whichever way round the outline goes", () => {
    const outline = Array.from({ length: 40 }, (_, step) => {
      const angle = (2 * Math.PI * step) / 40;
      const reach = 0.5 + 0.3 * Math.sin(5 * angle);
      return { x: reach * Math.cos(angle), y: reach * Math.sin(angle) };
    });
    const positions = Float32Array.from({ length: 2000 }, (_, place) => Math.sin(place * 12.9898) );
    const shown = new Uint8Array(1000).fill(1);
    const found = pointsInside(positions, shown, outline);
    const slow = [...shown.keys()].filter((place) => {
      const [x, y] = [positions[2 * place] ?? 0, positions[2 * place + 1] ?? 0];
      return Math.hypot(x, y) < 0.5 + 0.3 * Math.sin(5 * Math.atan2(y, x));
    });
    const different = found.filter((place) => !slow.includes(place)).length + slow.filter((place) => !found.includes(place)).length;
    expect(found.length).toBeGreaterThan(100);
    expect(different).toBeLessThan(20);
    expect(pointsInside(positions, shown, [...outline].reverse())).toEqual(found);
  });

  it("takes only points that are shown", () => {
    const positions = new Float32Array([0.5, 0.5, 0.2, 0.2, 5, 5]);
    expect(pointsInside(positions, new Uint8Array([1, 0, 1]), square)).toEqual([0]);
    expect(pointsInBox(positions, new Uint8Array([1, 1, 1]), boxAround(square))).toEqual([0, 1]);
  });

  it("selects nothing with a click or a line", () => {
    expect(pointsInside(new Float32Array([0, 0]), new Uint8Array([1]), [{ x: 0, y: 0 }])).toEqual([]);
    expect(pointsInside(new Float32Array([0, 0]), new Uint8Array([1]), [{ x: -1, y: 0 }, { x: 1, y: 0 }])).toEqual([]);
  });

  it("leaves out corners that hardly differ", () => {
    expect(thinned([{ x: 0, y: 0 }, { x: 1, y: 0 }, { x: 5, y: 0 }, { x: 6, y: 0 }], 4)).toEqual([{ x: 0, y: 0 }, { x: 5, y: 0 }]);
  });
});
