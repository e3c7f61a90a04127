/** Numbers as people read them; the same words as in the report. */

export type Interval = { low: number; high: number };

/** 0.754 -> "75 %". */
export function percent(value: number | null | undefined): string {
  return value === null || value === undefined || !Number.isFinite(value) ? "–" : `${Math.round(100 * value)}\u00a0%`;
}

/** A sentence of the server in which no line ends before a percent sign. */
export function unbroken(sentence: string): string {
  return sentence.replaceAll(" %", "\u00a0%");
}

/** "51–90 %". */
export function range(interval: Interval): string {
  return `${Math.round(100 * interval.low)}–${Math.round(100 * interval.high)}\u00a0%`;
}

/** A p- or q-value: three figures at most, small ones by their power. */
export function chance(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value < 1e-300) return "< 10⁻³⁰⁰";
  if (value < 0.001) return value.toExponential(1).replace("e-", " × 10⁻").replace(/⁻(\d+)$/, (_, digits: string) => `⁻${raised(digits)}`);
  return value.toFixed(value < 0.1 ? 3 : 2);
}

function raised(digits: string): string {
  return digits.replace(/\d/g, (digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹".charAt(Number(digit)));
}

/** 12345 -> "12,345". */
export function counted(value: number): string {
  return value.toLocaleString("en-GB");
}

/** 0.7034 -> "0.70"; scores from -1 to 1. */
export function score(value: number | null | undefined): string {
  return value === null || value === undefined || !Number.isFinite(value) ? "–" : value.toFixed(2).replace("-", "−");
}

/** 0.123 -> "+12", 0.012 -> "+1.2", 0 -> "±0"; in percentage points, rounded as in the report. */
export function points(change: number | null): string {
  if (change === null) return "–";
  const size = Math.abs(100 * change);
  const words = Number(size.toFixed(1)) < 10 ? size.toFixed(1) : size.toFixed(0);
  return Number(words) === 0 ? "±0" : `${change > 0 ? "+" : "−"}${words}`;
}

/** "−1.2 to +20"; an interval of a change. */
export function pointsRange(low: number, high: number): string {
  return `${points(low)} to ${points(high)}`.replaceAll("±", "");
}

/** An ISO moment as people read it, in their own time zone. */
export function moment(iso: string, timeStyle: "short" | "medium" = "short"): string {
  const time = new Date(iso);
  return Number.isNaN(time.getTime()) ? iso : time.toLocaleString("en-GB", { dateStyle: "medium", timeStyle });
}

/** The same for moments that stand side by side: with seconds where two of them are of one minute. */
export function momentsApart(isos: string[]): string[] {
  const short = isos.map((iso) => moment(iso));
  return isos.map((iso, place) => (short.filter((one) => one === short[place]).length > 1 ? moment(iso, "medium") : short[place]!));
}

/** 200 -> "about 3 min"; how long something will still take. */
export function timeLeft(seconds: number): string {
  if (seconds < 10) return "a few seconds";
  if (seconds < 90) return `about ${Math.round(seconds / 10) * 10} s`;
  if (seconds < 5400) return `about ${Math.round(seconds / 60)} min`;
  return `about ${Math.round(seconds / 3600)} h`;
}

/** 2048 -> "2 kB". */
export function size(bytes: number | null): string {
  if (bytes === null) return "";
  const units = ["bytes", "kB", "MB", "GB"];
  const step = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  return `${Math.round(bytes / 1000 ** step)} ${units[step]}`;
}

export type Share = { count: number; total: number; value: number; interval: Interval };

/** So many of so many, with the interval that was measured. */
export function share(count: number, total: number, interval: Interval): Share {
  return { count, total, value: total ? count / total : 0, interval };
}

/** Whether a p-value says more than chance, as in the report. */
export function isCertain(pValue: number): boolean {
  return pValue <= 0.05;
}
