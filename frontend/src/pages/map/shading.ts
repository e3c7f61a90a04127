/** From what is known of points to their colours, which of them are shown, and in which order they are drawn. */
import { legendColour, rampColour, unknownColour, type Colour, type Ground } from "./palette";

export type LegendEntry = { value: string; count: number; meaning: string };
export type Colouring = { codes: Uint16Array | null; values: Float32Array | null; legend: LegendEntry[]; low: number; high: number };

const SHADES = 256;
const FULL = 255;
const SURROUNDINGS = 150;
const NOT_SELECTED = 42;

/** Return which points are shown: of a part that is switched on, and of a value that is not hidden. */
export function shownPoints(parts: Uint8Array, shownParts: ReadonlySet<number>, colouring: Colouring, hidden: ReadonlySet<number>): Uint8Array {
  const shown = new Uint8Array(parts.length);
  for (let place = 0; place < parts.length; place += 1) {
    const isHidden = colouring.codes !== null && hidden.has(colouring.codes[place] ?? 0);
    shown[place] = shownParts.has(parts[place] ?? 0) && !isHidden ? 1 : 0;
  }
  return shown;
}

/** Return the colours of all points, four bytes each; points that are not shown are wholly transparent. */
export function pointColours(colouring: Colouring, parts: Uint8Array, isShown: Uint8Array, selected: Uint8Array | null, ground: Ground): Uint8Array {
  const table = colourTable(colouring, ground);
  const unknown = unknownColour(ground);
  const colours = new Uint8Array(4 * parts.length);
  const scale = (SHADES - 1) / (colouring.high - colouring.low || 1);
  for (let place = 0; place < parts.length; place += 1) {
    if (!isShown[place]) continue;
    let colour: Colour | undefined;
    if (colouring.codes) colour = table[colouring.codes[place] ?? 0];
    else {
      const value = colouring.values?.[place] ?? Number.NaN;
      colour = Number.isNaN(value) ? unknown : table[Math.round((value - colouring.low) * scale)];
    }
    const [red, green, blue] = colour ?? unknown;
    colours[4 * place] = red;
    colours[4 * place + 1] = green;
    colours[4 * place + 2] = blue;
    colours[4 * place + 3] = selected ? (selected[place] ? FULL : NOT_SELECTED) : (parts[place] ?? 0) === 0 ? FULL : SURROUNDINGS;
  }
  return colours;
}

/** Return the points that are shown in the order in which they are drawn: what is rare, high or selected comes on top. */
export function drawingOrder(colouring: Colouring, parts: Uint8Array, isShown: Uint8Array, selected: Uint8Array | null): Uint32Array {
  const rank = rankOf(colouring);
  const keys = new Float64Array(parts.length);
  let count = 0;
  for (let place = 0; place < parts.length; place += 1) {
    if (!isShown[place]) continue;
    const level = (selected?.[place] ? 4096 : 0) + ((parts[place] ?? 0) === 0 ? 2048 : 0) + rank(place);
    keys[count] = level * 4_194_304 + place;
    count += 1;
  }
  const sorted = keys.subarray(0, count).sort();
  const order = new Uint32Array(count);
  for (let slot = 0; slot < count; slot += 1) order[slot] = (sorted[slot] ?? 0) % 4_194_304;
  return order;
}

/** Return how many points that are shown have each value of the legend. */
export function shownCounts(colouring: Colouring, isShown: Uint8Array): number[] {
  const counts = new Array<number>(colouring.legend.length).fill(0);
  if (!colouring.codes) return counts;
  for (let place = 0; place < isShown.length; place += 1) {
    const code = colouring.codes[place] ?? 0;
    if (isShown[place]) counts[code] = (counts[code] ?? 0) + 1;
  }
  return counts;
}

function colourTable(colouring: Colouring, ground: Ground): Colour[] {
  if (colouring.codes) return colouring.legend.map((entry, place) => legendColour(place, entry.meaning, ground));
  return Array.from({ length: SHADES }, (_, shade) => rampColour(shade / (SHADES - 1), ground));
}

function rankOf(colouring: Colouring): (place: number) => number {
  const { codes, values } = colouring;
  if (codes) {
    const rarestLast = colouring.legend.map((_, code) => code).sort((one, two) => order(colouring, one) - order(colouring, two));
    const ranks = new Float64Array(colouring.legend.length);
    rarestLast.forEach((code, rank) => { ranks[code] = rank; });
    return (place) => ranks[codes[place] ?? 0] ?? 0;
  }
  const scale = 1023 / (colouring.high - colouring.low || 1);
  return (place) => {
    const value = values?.[place] ?? Number.NaN;
    return Number.isNaN(value) ? 0 : Math.round((value - colouring.low) * scale);
  };
}

function order(colouring: Colouring, code: number): number {
  const entry = colouring.legend[code];
  return entry?.meaning === "unknown" ? -Infinity : -(entry?.count ?? 0);
}
