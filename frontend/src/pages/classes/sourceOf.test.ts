// @vitest-environment jsdom
import { describe, expect, it } from "vitest";
import { sourceOf } from "./ClassWorkbench";

describe("sourceOf", () => {
  it("tells typed words from clicked and edited ones", () => {
    expect([sourceOf("green", null), sourceOf("green", "green"), sourceOf("green skin", "green")]).toEqual(["own", "suggestion", "edited"]);
  });
});
