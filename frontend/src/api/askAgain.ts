import type { Query, QueryClient, QueryKey } from "@tanstack/react-query";

/**
 * Ask again for what a change may have changed.
 *
 * A first answer that is still under way may be older than the change, and would be taken for the new one: it is dropped and asked for anew.
 */
export async function askAgain(queries: QueryClient, isMeant: (key: QueryKey) => boolean): Promise<void> {
  const predicate = (query: Query) => isMeant(query.queryKey);
  await queries.cancelQueries({ predicate: (query) => query.state.data === undefined && predicate(query) });
  await queries.invalidateQueries({ predicate });
}

/** Return a choice of queries by the first part of their key. */
export function named(...names: string[]): (key: QueryKey) => boolean {
  return (key) => names.includes(String(key[0]));
}

/** Return a choice of all queries but these. */
export function allBut(...names: string[]): (key: QueryKey) => boolean {
  return (key) => !names.includes(String(key[0]));
}
