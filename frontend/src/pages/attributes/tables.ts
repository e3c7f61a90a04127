/** Figures of the attributes page, worked out from what the server counted. */
import type { Schemas } from "../../api/client";

export type Attribute = Schemas["AttributeView"];
export type Value = Schemas["AttributeValueView"];
export type Attributes = Schemas["AttributesView"];
export type Combination = Schemas["CombinationView"];
export type Chosen = { attribute: string; value: string };
export type EditBody = Pick<Schemas["EditRequest"], "kind"> & Partial<Omit<Schemas["EditRequest"], "version" | "kind">>;

export const MOST_CHOSEN = 3;
export const LEAST_SUPPORT = 5;

export const SOURCE_WORDS: Record<Attribute["source"], string> = {
  "built-in": "told by built-in words",
  proposed: "told by proposed words",
  property: "measured in the images",
  metadata: "your own column",
  given: "told by your words",
};

export const SHORT_SOURCES: Record<Attribute["source"], string> = {
  "built-in": "built-in words",
  proposed: "proposed words",
  property: "measured",
  metadata: "your column",
  given: "your words",
};

/** The widths of the right and the wrong part of a bar, in per cent of the longest bar. */
export function barParts(value: Value, longest: number): { right: number; wrong: number } {
  const scale = longest > 0 ? 100 / longest : 0;
  return { right: scale * (value.failures.total - value.failures.count), wrong: scale * value.failures.count };
}

/** The value that fails most often among those with enough samples, judged by the lower end of its interval. */
export function worstValue(attribute: Attribute): Value | null {
  const enough = attribute.values.filter((value) => value.failures.total >= LEAST_SUPPORT && value.failures.count > 0);
  return enough.reduce<Value | null>((worst, value) => (worst && worst.failures.interval.low >= value.failures.interval.low ? worst : value), null);
}

export type HeatTable = { rows: string[]; columns: string[]; cells: Map<string, Combination> };

/** The key of a cell of the heat table. */
export function cellKey(row: string, column: string): string {
  return JSON.stringify([row, column]);
}

/** Arrange combinations of two attributes as a table; values that are in no combination are left out. */
export function heatTable(combinations: Combination[], first: Attribute, second: Attribute): HeatTable {
  const cells = new Map<string, Combination>();
  const used = [new Set<string>(), new Set<string>()] as const;
  for (const combination of combinations) {
    const [one, two] = combination.values;
    if (!one || !two) continue;
    cells.set(cellKey(one.value_id, two.value_id), combination);
    used[0].add(one.value_id);
    used[1].add(two.value_id);
  }
  const inOrder = (attribute: Attribute, seen: Set<string>) => attribute.values.map((value) => value.value_id).filter((id) => seen.has(id));
  return { rows: inOrder(first, used[0]), columns: inOrder(second, used[1]), cells };
}

/** How deep the colour of a cell is, 0 to 5, by how far its rate lies above that of the class. */
export function heat(rate: number, usual: number): number {
  if (rate <= usual) return 0;
  return Math.min(5, 1 + Math.floor((4.999 * (rate - usual)) / Math.max(1 - usual, 1e-9)));
}

/** The values of a combination as they are asked for. */
export function chosenOf(combination: Combination): Chosen[] {
  return combination.values.map((value) => ({ attribute: value.attribute_id, value: value.value_id }));
}

/** A text of several lines as a list of phrases. */
export function linesOf(text: string): string[] {
  return text.split("\n").map((line) => line.trim()).filter(Boolean);
}
