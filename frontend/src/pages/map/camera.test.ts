import { describe, expect, it } from "vitest";
import { clipTransform, inView, panned, toMap, toScreen, WHOLE, zoomed } from "./camera";

const size = { width: 900, height: 600 };

describe("camera", () => {
  it("puts the whole map on the screen, upwards", () => {
    expect(toScreen({ x: 0, y: 0 }, WHOLE, size)).toEqual({ x: 450, y: 300 });
    const top = toScreen({ x: 0, y: 1 }, WHOLE, size);
    expect(top.y).toBeGreaterThan(0);
    expect(top.y).toBeLessThan(30);
  });

  it("finds its way back from the screen", () => {
    const camera = { x: 0.3, y: -0.2, zoom: 7 };
    const point = toMap(toScreen({ x: 0.11, y: 0.22 }, camera, size), camera, size);
    expect(point.x).toBeCloseTo(0.11, 10);
    expect(point.y).toBeCloseTo(0.22, 10);
  });

  it("keeps the point under the pointer where it is when zooming", () => {
    const camera = { x: 0.1, y: 0.2, zoom: 2 };
    const at = { x: 700, y: 120 };
    const before = toMap(at, camera, size);
    const after = toMap(at, zoomed(camera, 1.7, at, size), size);
    expect(after.x).toBeCloseTo(before.x, 10);
    expect(after.y).toBeCloseTo(before.y, 10);
  });

  it("does not zoom or move without end", () => {
    let camera = WHOLE;
    for (let step = 0; step < 200; step += 1) camera = zoomed(camera, 2, { x: 0, y: 0 }, size);
    expect(camera.zoom).toBeLessThanOrEqual(400);
    expect(panned(WHOLE, 1e9, -1e9, size).x).toBeGreaterThanOrEqual(-1.2);
  });

  it("moves what is seen with the pointer", () => {
    const moved = panned(WHOLE, 30, 10, size);
    const place = toScreen({ x: 0, y: 0 }, moved, size);
    expect(place.x).toBeCloseTo(480, 8);
    expect(place.y).toBeCloseTo(310, 8);
  });

  it("says the same to the graphics card", () => {
    const camera = { x: 0.3, y: -0.2, zoom: 3 };
    const [wide, high, right, up] = clipTransform(camera, size);
    const screen = toScreen({ x: 0.4, y: 0.1 }, camera, size);
    expect(((0.4 * wide + right + 1) / 2) * size.width).toBeCloseTo(screen.x, 8);
    expect(((1 - (0.1 * high + up)) / 2) * size.height).toBeCloseTo(screen.y, 8);
    const view = inView(camera, size);
    expect(view.left).toBeLessThan(camera.x);
    expect(view.top).toBeGreaterThan(view.bottom);
  });
});
