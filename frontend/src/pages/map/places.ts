/** Return the places of points whose rows are asked for. */
export function placesOf(rows: Int32Array, wanted: Int32Array): number[] {
  const meant = new Set(wanted);
  return [...rows.keys()].filter((place) => meant.has(rows[place] ?? -1));
}
