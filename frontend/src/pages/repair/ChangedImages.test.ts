// @vitest-environment jsdom
import { describe, expect, it } from "vitest";
import { headline } from "./ChangedImages";

describe("headline", () => {
  it("counts as people do", () => {
    expect(headline(16, 1)).toBe("These 16 are right now, this one broke");
    expect(headline(1, 0)).toBe("This one is right now, none broke");
    expect(headline(0, 2)).toBe("None is right now that was wrong, these 2 broke");
  });
});
