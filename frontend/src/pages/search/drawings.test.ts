import { expect, test } from "vitest";
import { captionsOf, MOST_CAPTIONS, picturesOf, points, withCaption } from "./drawings";

test("captions are lines, trimmed, each once, and not too many", () => {
  expect(captionsOf(" on grass \n\ngreen\non grass\n")).toEqual(["on grass", "green"]);
  const many = Array.from({ length: 40 }, (_, place) => `caption ${place}`).join("\n");
  expect(captionsOf(many)).toHaveLength(MOST_CAPTIONS);
  expect(captionsOf("x".repeat(999))[0]).toHaveLength(300);
});

test("a caption is added once", () => {
  expect(withCaption("green", "on grass")).toBe("green\non grass");
  expect(withCaption("green", "green")).toBe("green");
});

test("a change is said in points with its sign", () => {
  expect(points(0.123)).toBe("+12 points");
  expect(points(-0.4)).toBe("−40 points");
  expect(points(0.001)).toBe("±0 points");
  expect(points(null)).toBe("–");
});

test("a series draws the unchanged pictures, too", () => {
  expect(picturesOf(["green", "on grass"], 24)).toBe(72);
});
