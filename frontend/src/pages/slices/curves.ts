/** Accuracy by closeness to a name, as points of a chart; the same axes as in the report: K logarithmic, accuracy from 0 to 100 %. */
import type { Schemas } from "../../api/client";

export type Name = Schemas["NameView"];
export type CurveLine = { label: string; isHard: boolean; points: { x: number; y: number; size: number; accuracy: number }[] };
export type Chart = { lines: CurveLine[]; sizes: number[]; place: (size: number) => number };

export const CHART = { width: 440, height: 210, left: 44, right: 14, top: 12, bottom: 34 };

/** Return where an accuracy lies in the chart. */
export function heightOf(accuracy: number): number {
  return CHART.top + (CHART.height - CHART.top - CHART.bottom) * (1 - accuracy);
}

/** Return the curves of the best name at either end, null if there is nothing to draw. */
export function curveChart(names: Name[], easyNames: Name[]): Chart | null {
  const chosen = [names, easyNames].map((ordered) => ordered.find((name) => name.curve.length >= 2));
  const sizes = [...new Set(chosen.flatMap((name) => (name?.curve ?? []).map(([size]) => size)))].sort((one, two) => one - two);
  const [fewest, most] = [Math.max(1, sizes[0] ?? 1), sizes[sizes.length - 1] ?? 1];
  if (!sizes.length) return null;
  const span = Math.log(most / fewest) || 1;
  const place = (size: number) => CHART.left + ((CHART.width - CHART.left - CHART.right) * Math.log(Math.max(size, 1) / fewest)) / span;
  const lines = chosen.flatMap((name, end) => (name ? [lineOf(name, end === 0, place)] : []));
  return { lines, sizes, place };
}

function lineOf(name: Name, isHard: boolean, place: (size: number) => number): CurveLine {
  const points = name.curve.map(([size, accuracy]) => ({ x: place(size), y: heightOf(accuracy), size, accuracy }));
  return { label: name.contrast, isHard, points };
}
