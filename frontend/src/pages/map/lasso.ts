/** Which points lie inside an outline or a box. Positions are pairs of numbers, one pair a point. */
import type { Box, Point } from "./camera";

const LEAST_CORNERS = 3;

/** Return whether a point lies inside an outline; the outline is closed by itself and may cross itself (odd-even rule). */
export function isInside(x: number, y: number, outline: readonly Point[]): boolean {
  let inside = false;
  for (let here = 0, before = outline.length - 1; here < outline.length; before = here, here += 1) {
    const [one, two] = [outline[here], outline[before]];
    if (one && two && one.y > y !== two.y > y && x < ((two.x - one.x) * (y - one.y)) / (two.y - one.y) + one.x) inside = !inside;
  }
  return inside;
}

/** Return the smallest box around an outline. */
export function boxAround(outline: readonly Point[]): Box {
  const box = { left: Infinity, right: -Infinity, bottom: Infinity, top: -Infinity };
  for (const point of outline) {
    box.left = Math.min(box.left, point.x);
    box.right = Math.max(box.right, point.x);
    box.bottom = Math.min(box.bottom, point.y);
    box.top = Math.max(box.top, point.y);
  }
  return box;
}

/** Return the places of the points that can be seen and lie inside an outline. */
export function pointsInside(positions: Float32Array, isShown: Uint8Array, outline: readonly Point[]): number[] {
  if (outline.length < LEAST_CORNERS) return [];
  const found = pointsInBox(positions, isShown, boxAround(outline));
  return found.filter((place) => isInside(positions[2 * place] ?? 0, positions[2 * place + 1] ?? 0, outline));
}

/** Return the places of the points that can be seen and lie in a box, its edges included. */
export function pointsInBox(positions: Float32Array, isShown: Uint8Array, box: Box): number[] {
  const found: number[] = [];
  for (let place = 0; place < isShown.length; place += 1) {
    if (!isShown[place]) continue;
    const x = positions[2 * place] ?? 0;
    const y = positions[2 * place + 1] ?? 0;
    if (x >= box.left && x <= box.right && y >= box.bottom && y <= box.top) found.push(place);
  }
  return found;
}

/** Return an outline without points that hardly differ from the one before. */
export function thinned(outline: readonly Point[], least: number): Point[] {
  const kept: Point[] = [];
  for (const point of outline) {
    const last = kept[kept.length - 1];
    if (!last || Math.hypot(point.x - last.x, point.y - last.y) >= least) kept.push(point);
  }
  return kept;
}
