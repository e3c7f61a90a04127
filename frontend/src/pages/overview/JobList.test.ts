// @vitest-environment jsdom
import { describe, expect, it } from "vitest";
import type { Schemas } from "../../api/client";
import { stageTitle } from "../../components/jobs";
import { isShown } from "./JobList";

function job(id: string, state: Schemas["JobView"]["state"], kind = "run"): Schemas["JobView"] {
  return { job_id: id, kind, state, arguments: {}, stage: "", done: 0, total: null, message: "", result: {}, started_by: "", created: "", finished: null, seconds_left: null };
}

describe("isShown", () => {
  it("shows what is under way, and what was stopped last", () => {
    const jobs = [job("3", "cancelled"), job("2", "running", "repair"), job("1", "failed"), job("0", "done", "report")];
    expect(jobs.filter((one) => isShown(one, jobs)).map((one) => one.job_id)).toEqual(["3", "2"]);
  });

  it("does not show an old failure when the same was done since", () => {
    const jobs = [job("2", "done"), job("1", "failed")];
    expect(jobs.some((one) => isShown(one, jobs))).toBe(false);
  });
});

describe("stageTitle", () => {
  it("names what is under way in words, and what it does not know by its own name", () => {
    expect(["discover", "describe", "verify", "index"].map(stageTitle)).toEqual(["looking for slices", "finding words", "testing on samples that took no part", "index"]);
  });
});
