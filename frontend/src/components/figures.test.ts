import { describe, expect, it } from "vitest";
import { chance, isCertain, moment, momentsApart, points, pointsRange, share, size, timeLeft, unbroken } from "./figures";

describe("points", () => {
  it("has a decimal where the change is small, and a sign always", () => {
    expect([0.0123, -0.004, 0, 0.25, -0.0995, null].map(points)).toEqual(["+1.2", "−0.4", "±0", "+25", "−10", "–"]);
    expect(pointsRange(-0.012, 0.2)).toBe("−1.2 to +20");
  });
});

describe("chance", () => {
  it("is never zero, however small", () => {
    expect([0, 1e-310, 3.1e-48, 0.0312, 0.5, null].map(chance)).toEqual(["< 10⁻³⁰⁰", "< 10⁻³⁰⁰", "3.1 × 10⁻⁴⁸", "0.031", "0.50", "–"]);
  });
});

describe("momentsApart", () => {
  it("says seconds only where two moments are of one minute", () => {
    const of = ["2026-11-18T19:54:02", "2026-11-18T19:54:40", "2026-11-18T19:55:00", ""];
    const [first, second, third, none] = momentsApart(of);
    expect([first, second]).toEqual([`${moment(of[0]!)}:02`, `${moment(of[1]!)}:40`]);
    expect([third, none]).toEqual([moment(of[2]!), ""]);
  });
});

describe("size", () => {
  it("is rounded to the unit that fits", () => {
    expect([null, 0, 999, 2048, 5_400_000].map(size)).toEqual(["", "0 bytes", "999 bytes", "2 kB", "5 MB"]);
  });
});

describe("share", () => {
  const interval = { low: 0, high: 1 };
  it("is 0 of nothing", () => {
    expect(share(3, 4, interval)).toEqual({ count: 3, total: 4, value: 0.75, interval });
    expect(share(0, 0, interval).value).toBe(0);
    expect([0.05, 0.051].map(isCertain)).toEqual([true, false]);
  });
});

describe("timeLeft", () => {
  it("is as exact as a guess can be", () => {
    expect([3, 44, 200, 9000].map(timeLeft)).toEqual(["a few seconds", "about 40 s", "about 3 min", "about 3 h"]);
  });
});

describe("unbroken", () => {
  it("keeps a figure and its percent sign in one line", () => {
    expect(unbroken("79 % right (72-84 %)")).toBe("79\u00a0% right (72-84\u00a0%)");
  });
});
