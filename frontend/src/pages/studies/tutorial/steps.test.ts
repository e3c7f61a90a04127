import { describe, expect, it } from "vitest";
import { isDone, STEPS } from "./steps";

describe("isDone", () => {
  it("waits for words, good words and a moved line, and for nothing else", () => {
    const nothing = { score: null, hasMoved: false };
    expect(STEPS.filter((step) => !isDone(step.key, nothing)).map((step) => step.key)).toEqual(["say", "reword", "drag"]);
    expect(isDone("say", { score: 0, hasMoved: false })).toBe(true);
    expect(isDone("reword", { score: 0.2, hasMoved: false })).toBe(false);
    expect(isDone("reword", { score: 0.8, hasMoved: false })).toBe(true);
    expect(isDone("drag", { score: 0.8, hasMoved: true })).toBe(true);
  });
});
