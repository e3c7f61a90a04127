/** Where one is, all of it behind the #: path and query. So an address can be copied, opened again, and is never sent to a server. */
import { useSyncExternalStore } from "react";

function listen(changed: () => void): () => void {
  window.addEventListener("hashchange", changed);
  return () => window.removeEventListener("hashchange", changed);
}

function parts(): [string, string] {
  const [path = "", query = ""] = window.location.hash.replace(/^#?\/?/, "").split("?", 2);
  return [`/${path}`, query];
}

function go(to: string, { replace = false }: { replace?: boolean } = {}): void {
  const address = `${window.location.pathname}${window.location.search}#/${to.replace(/^#?\/?/, "")}`;
  window.history[replace ? "replaceState" : "pushState"](null, "", address);
  window.dispatchEvent(new HashChangeEvent("hashchange"));
}

/** Return the path behind the #, and how to go elsewhere. */
export function useHashLocation(): [string, typeof go] {
  return [useSyncExternalStore(listen, () => parts()[0]), go];
}

/** Return the query behind the #. */
export function useHashSearch(): string {
  return useSyncExternalStore(listen, () => parts()[1]);
}

useHashLocation.hrefs = (href: string) => `#${href}`;
useHashLocation.searchHook = useHashSearch;
