/** Numbers as people read them; the same words as in the report. */

export type Interval = { low: number; high: number };

/** 0.754 -> "75 %". */
export function percent(value: number | null | undefined): string {
  return value === null || value === undefined || !Number.isFinite(value) ? "–" : `${Math.round(100 * value)}\u00a0%`;
}

/** "51–90 %". */
export function range(interval: Interval): string {
  return `${Math.round(100 * interval.low)}–${Math.round(100 * interval.high)}\u00a0%`;
}

/** A p- or q-value: three figures at most, small ones by their power. */
export function chance(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value < 0.001) return value.toExponential(1).replace("e-", " × 10⁻").replace(/⁻(\d+)$/, (_, digits: string) => `⁻${raised(digits)}`);
  return value.toFixed(value < 0.1 ? 3 : 2);
}

function raised(digits: string): string {
  return [...digits].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(digit)]).join("");
}

/** 12345 -> "12,345". */
export function counted(value: number): string {
  return value.toLocaleString("en-GB");
}

/** 0.7034 -> "0.70"; scores from -1 to 1. */
export function score(value: number | null | undefined): string {
  return value === null || value === undefined || !Number.isFinite(value) ? "–" : value.toFixed(2).replace("-", "−");
}
