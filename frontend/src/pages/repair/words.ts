/** Changes as people read them; the same rounding as in the report. */

const FINE = 10;

/** 0.123 -> "+12", 0.012 -> "+1.2", 0 -> "±0"; in percentage points. */
export function points(change: number): string {
  const size = Math.abs(100 * change);
  const words = Number(size.toFixed(1)) < FINE ? size.toFixed(1) : size.toFixed(0);
  return Number(words) === 0 ? "±0" : `${change > 0 ? "+" : "−"}${words}`;
}

/** "−1.2 to +20"; an interval of a change. */
export function pointsRange(low: number, high: number): string {
  return `${points(low)} to ${points(high)}`.replaceAll("±", "");
}

/** 2048 -> "2 kB". */
export function size(bytes: number | null): string {
  if (bytes === null) return "";
  const units = ["bytes", "kB", "MB", "GB"];
  const step = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  return `${Math.round(bytes / 1000 ** step)} ${units[step]}`;
}
