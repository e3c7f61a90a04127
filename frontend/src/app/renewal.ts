/** What the server tells of the state of everything that pages show. */
export type Told = { version: number; mark: string; tables: string };

/** Return what is to be asked for again: nothing, what may have changed, or everything, because the samples are others. */
export function renewal(before: Told | null, now: Told, isOwn: boolean): "nothing" | "some" | "all" {
  if (!before || before.mark === now.mark) return "nothing";
  if (before.tables !== now.tables) return "all";
  return isOwn && now.version === before.version + 1 ? "nothing" : "some";
}
