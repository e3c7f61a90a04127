/** Confirmed slices as a tree: findings in the order that the reader chose, each followed by what belongs to it. */
import type { Schemas } from "../../api/client";
import type { SliceLine } from "./sliceFilters";

export type SliceOrder = Schemas["SliceTable"]["order"];
export type TreeLine = { line: SliceLine; depth: number };

/** What slices are ordered by, largest first. */
const FIGURES: Record<SliceOrder, (line: SliceLine) => number> = {
  severity: (line) => line.gap ?? 0,
  coverage: (line) => line.coverage ?? 0,
  both: (line) => line.excess ?? 0,
};

/** Return lines in the order of the tree, with their depth; a line whose parent is not among them is on top, unconfirmed ones come last. */
export function treeLines(lines: SliceLine[], order: SliceOrder): TreeLine[] {
  const known = new Set(lines.filter((line) => line.kind).map((line) => line.slice_id));
  const below = new Map<string, SliceLine[]>();
  for (const line of lines.filter((one) => one.kind)) {
    const parent = known.has(line.parent) ? line.parent : "";
    below.set(parent, [...(below.get(parent) ?? []), line]);
  }
  const figure = FIGURES[order];
  const ordered = (parent: string, depth: number): TreeLine[] =>
    [...(below.get(parent) ?? [])]
      .sort((left, right) => Number(left.kind === "explained") - Number(right.kind === "explained") || figure(right) - figure(left))
      .flatMap((line) => [{ line, depth }, ...ordered(line.slice_id, depth + 1)]);
  return [...ordered("", 0), ...lines.filter((line) => !line.kind).map((line) => ({ line, depth: 0 }))];
}
