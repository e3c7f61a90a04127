// @vitest-environment jsdom
import { expect, test } from "vitest";
import { captionsOf, MOST_CAPTIONS, imagesOf, withCaption } from "./generation";

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

test("a series generates the unchanged images, too", () => {
  expect(imagesOf(["green", "on grass"], 24)).toBe(72);
});
