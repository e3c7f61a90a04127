import { describe, expect, it } from "vitest";
import { fitScale, fitted, isEnlarged, moved, neededSide, zoomed } from "./zoom";

const frame = { width: 1000, height: 800 };
const photo = { width: 4000, height: 2000 };

describe("zoom", () => {
  it("shows the whole image at first, and enlarges small ones so that pixels can be counted", () => {
    expect(fitScale(frame, photo)).toBe(0.25);
    expect(fitScale(frame, { width: 32, height: 32 })).toBe(12);
  });

  it("keeps the point under the pointer where it is", () => {
    const first = zoomed(fitted(frame, photo), 4, { x: 0, y: 0 }, frame, photo);
    const at = { x: 200, y: -100 };
    const second = zoomed(first, 2, at, frame, photo);
    expect((at.x - second.x) / second.scale).toBeCloseTo((at.x - first.x) / first.scale);
    expect((at.y - second.y) / second.scale).toBeCloseTo((at.y - first.y) / first.scale);
  });

  it("never makes an image smaller than the frame, nor moves it out of sight", () => {
    expect(zoomed(fitted(frame, photo), 0.1, { x: 0, y: 0 }, frame, photo).scale).toBe(0.25);
    expect(moved({ scale: 1, x: 0, y: 0 }, { x: 99999, y: 0 }, frame, photo).x).toBe(1500);
    expect(moved(fitted(frame, photo), { x: 50, y: 50 }, frame, photo)).toEqual({ scale: 0.25, x: 0, y: 0 });
    expect(isEnlarged(fitted(frame, photo), frame, photo)).toBe(false);
  });

  it("asks for as many pixels as the screen shows, and for the image itself when that is not less", () => {
    expect(neededSide({ scale: 0.25, x: 0, y: 0 }, photo, 1)).toBe(1024);
    expect(neededSide({ scale: 0.25, x: 0, y: 0 }, photo, 2)).toBe(2048);
    expect(neededSide({ scale: 1, x: 0, y: 0 }, photo, 1)).toBe(null);
    expect(neededSide({ scale: 12, x: 0, y: 0 }, { width: 32, height: 32 }, 1)).toBe(null);
  });
});
