import { describe, expect, it } from "vitest";
import type { Schemas } from "../../api/client";
import { argumentsOf, COMPARE_ALL, firstChoice, preselected } from "./choices";

function slice(id: string, isFinding = true): Schemas["ConfirmedSlice"] {
  return { title: id, evidence: { slice_id: id }, words: { explained: isFinding ? "" : "by another" } } as Schemas["ConfirmedSlice"];
}

function strategy(name: string, more: Partial<Schemas["Strategy"]> = {}): Schemas["Strategy"] {
  return { name, title: name, sentence: "", is_configured: false, is_baseline: false, why_not: "", ...more };
}

describe("preselected", () => {
  it("takes the slices of the address, and findings without one", () => {
    expect(preselected([slice("a"), slice("b", false)], "b,unknown")).toEqual(["b"]);
    expect(preselected([slice("a"), slice("b", false)], null)).toEqual(["a"]);
    expect(preselected([slice("a"), slice("b", false)], "unknown")).toEqual(["a"]);
  });
});

describe("firstChoice", () => {
  it("takes the configured strategy only where it is possible", () => {
    expect(firstChoice([strategy("a"), strategy("b", { is_configured: true })])).toBe("b");
    expect(firstChoice([strategy("a"), strategy("b", { is_configured: true, why_not: "no pool" })])).toBe("a");
    expect(firstChoice([])).toBe(COMPARE_ALL);
  });
});

describe("argumentsOf", () => {
  it("says a budget only where there is a pool, and a strategy only where one is chosen", () => {
    const asked = { run: "r", slices: ["a"], strategy: "b", budget: "50", hasPool: false };
    expect(argumentsOf(asked)).toEqual({ run: "r", slice_ids: ["a"], strategy: "b" });
    expect(argumentsOf({ ...asked, hasPool: true, strategy: COMPARE_ALL })).toEqual({ run: "r", slice_ids: ["a"], is_comparison: true, budget: 50 });
    expect(argumentsOf({ ...asked, hasPool: true, budget: "" })).toEqual({ run: "r", slice_ids: ["a"], strategy: "b" });
  });
});
