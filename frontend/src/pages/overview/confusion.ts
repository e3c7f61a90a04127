/** How strongly a cell of the confusion table is coloured. */

export type Cell = { count: number; kind: "right" | "wrong" | "none"; strength: number; share: number };

const STRONGEST = 50;
const FAINTEST = 8;

/** Return the cells of a table of counts: colour by the share of the line, so that rare classes are seen as well as common ones. */
export function cellsOf(counts: number[][], hasOthers: boolean): Cell[][] {
  const last = counts.length - 1;
  return counts.map((line, place) => {
    const total = line.reduce((sum, count) => sum + count, 0);
    return line.map((count, column) => {
      const share = total > 0 ? count / total : 0;
      // Among “all other classes” right and wrong answers are mixed, so that cell is neither.
      const isMixed = hasOthers && place === last && column === last;
      const kind = count === 0 || isMixed ? "none" : place === column ? "right" : "wrong";
      return { count, kind, share, strength: kind === "none" ? 0 : Math.round(FAINTEST + (STRONGEST - FAINTEST) * share) };
    });
  });
}
