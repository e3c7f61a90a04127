// @vitest-environment jsdom
import { describe, expect, it } from "vitest";
import { largestFall, strengths } from "./heat";

const of = (heat: number[][]) => ({ class_name: "apple", probability: 0.9, heat });

describe("strengths", () => {
  it("is 1 where the answer falls most, and 0 where it rises", () => {
    expect(strengths(of([[0.4, 0.2], [-0.1, 0]]))).toEqual([1, 0.5, 0, 0]);
  });
  it("is 0 everywhere if no patch matters", () => {
    expect(strengths(of([[0.004, 0.001], [-0.2, 0]]))).toEqual([0, 0, 0, 0]);
    expect(largestFall(of([[-0.2]]))).toBe(0);
  });
});
