// @vitest-environment jsdom
import { describe, expect, it } from "vitest";
import { fitTitle } from "./PhraseResult";

describe("fitTitle", () => {
  it("praises words only where the line that is shown tells right from wrong", () => {
    expect(fitTitle("good", false, 0.6)).toEqual({ title: "Good words.", isGood: true });
    expect(fitTitle("good", true, 0.5).isGood).toBe(true);
    expect(fitTitle("good", true, 0.06)).toEqual({ title: "Not at this line: here the words do not tell right from wrong.", isGood: false });
    expect(fitTitle("cannot tell", true, 0.06).title).toBe("It cannot be told from these samples.");
  });
});
