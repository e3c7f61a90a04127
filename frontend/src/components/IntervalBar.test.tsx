// @vitest-environment jsdom
import { render } from "@testing-library/react";
import { expect, test } from "vitest";
import { IntervalBar } from "./IntervalBar";

test("IntervalBar: says rate, interval and what it is compared with, and stays inside its box", () => {
  const { container } = render(<IntervalBar rate={1} interval={{ low: 0.61, high: 1 }} other={0} label="Fails" />);
  expect(container.querySelector("[role=img]")?.getAttribute("aria-label")).toBe("Fails: 100\u00a0%, interval 61–100\u00a0%, compared with 0\u00a0%");
  for (const part of container.querySelectorAll("rect")) {
    const [start, width] = [Number(part.getAttribute("x")), Number(part.getAttribute("width"))];
    expect(start).toBeGreaterThanOrEqual(0);
    expect(start + width).toBeLessThanOrEqual(100.01);
  }
});
