import type { Schemas } from "../../api/client";

export const COMPARE_ALL = "compare all";

type Slice = Schemas["ConfirmedSlice"];
type Strategy = Schemas["Strategy"];

/** Return the slices that are chosen at first: those of the address, else all that no other slice explains. */
export function preselected(slices: Slice[], asked: string | null): string[] {
  const wanted = (asked ?? "").split(",").filter(Boolean);
  const named = slices.filter((one) => wanted.includes(one.evidence.slice_id));
  return (named.length > 0 ? named : slices.filter((one) => !one.words.explained)).map((one) => one.evidence.slice_id);
}

/** Return the strategy that is chosen at first: the configured one if it is possible here. */
export function firstChoice(strategies: Strategy[]): string {
  const possible = strategies.filter((one) => !one.why_not);
  return (possible.find((one) => one.is_configured) ?? possible.find((one) => !one.is_baseline) ?? possible[0])?.name ?? COMPARE_ALL;
}

type Asked = { run: string; slices: string[]; strategy: string; budget: string; hasPool: boolean };

/** Return the arguments of the job. */
export function argumentsOf({ run, slices, strategy, budget, hasPool }: Asked): Record<string, unknown> {
  const how = strategy === COMPARE_ALL ? { is_comparison: true } : { strategy };
  const number = Number.parseInt(budget, 10);
  return { run, slice_ids: slices, ...how, ...(hasPool && Number.isFinite(number) ? { budget: Math.max(0, number) } : {}) };
}
