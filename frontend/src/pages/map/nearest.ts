/** The nearest point to a place, found through a grid: only a few cells are looked at. */

const CELLS = 128;

export type PointGrid = { positions: Float32Array; starts: Uint32Array; order: Uint32Array };

function cellOf(value: number): number {
  return Math.min(CELLS - 1, Math.max(0, Math.floor(((value + 1) / 2) * CELLS)));
}

/** Sort points into the cells of a grid. */
export function gridOf(positions: Float32Array): PointGrid {
  const count = positions.length / 2;
  const cells = new Uint32Array(count);
  const starts = new Uint32Array(CELLS * CELLS + 1);
  for (let place = 0; place < count; place += 1) {
    const cell = cellOf(positions[2 * place + 1] ?? 0) * CELLS + cellOf(positions[2 * place] ?? 0);
    cells[place] = cell;
    starts[cell + 1] = (starts[cell + 1] ?? 0) + 1;
  }
  for (let cell = 0; cell < CELLS * CELLS; cell += 1) starts[cell + 1] = (starts[cell + 1] ?? 0) + (starts[cell] ?? 0);
  const next = starts.slice();
  const order = new Uint32Array(count);
  for (let place = 0; place < count; place += 1) {
    const cell = cells[place] ?? 0;
    order[next[cell] ?? 0] = place;
    next[cell] = (next[cell] ?? 0) + 1;
  }
  return { positions, starts, order };
}

/** Return the nearest point that can be seen within a reach, or -1. */
export function nearest(grid: PointGrid, x: number, y: number, reach: number, isShown: Uint8Array): number {
  let best = -1;
  let least = reach * reach;
  for (let row = cellOf(y - reach); row <= cellOf(y + reach); row += 1) {
    const first = row * CELLS + cellOf(x - reach);
    const last = row * CELLS + cellOf(x + reach);
    for (let slot = grid.starts[first] ?? 0; slot < (grid.starts[last + 1] ?? 0); slot += 1) {
      const place = grid.order[slot] ?? 0;
      if (!isShown[place]) continue;
      const distance = ((grid.positions[2 * place] ?? 0) - x) ** 2 + ((grid.positions[2 * place + 1] ?? 0) - y) ** 2;
      if (distance <= least) [best, least] = [place, distance];
    }
  }
  return best;
}
