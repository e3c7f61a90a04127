/** Where one is, all of it behind the #: path and query. So an address can be copied, opened again, and is never sent to a server. */
import { useSyncExternalStore } from "react";

/** Addresses of single images: they are shown above the page that one was on, which stays as it was. */
export const VIEWER = "/image/";

type Place = [path: string, query: string];

let below: Place | null = null;

function listen(changed: () => void): () => void {
  window.addEventListener("hashchange", changed);
  return () => window.removeEventListener("hashchange", changed);
}

function parts(): Place {
  const [path = "", query = ""] = window.location.hash.replace(/^#?\/?/, "").split("?", 2);
  return [`/${path}`, query];
}

/** Return the page that one is on, also while an image is shown above it; no page if the image was opened by its own address. */
function pageParts(): Place {
  const now = parts();
  if (!now[0].startsWith(VIEWER)) below = now;
  return below ?? [VIEWER, ""];
}

/** Go to an address of the app; `state` is kept by the browser with this step of its history. */
export function go(to: string, { replace = false, state = null }: { replace?: boolean; state?: unknown } = {}): void {
  const address = `${window.location.pathname}${window.location.search}#/${to.replace(/^#?\/?/, "")}`;
  window.history[replace ? "replaceState" : "pushState"](state, "", address);
  window.dispatchEvent(new HashChangeEvent("hashchange"));
}

/** Return the path of the page, and how to go elsewhere. */
export function useHashLocation(): [string, typeof go] {
  return [useSyncExternalStore(listen, () => pageParts()[0]), go];
}

/** Return the query of the page. */
export function useHashSearch(): string {
  return useSyncExternalStore(listen, () => pageParts()[1]);
}

/** Return path and query of the image that is shown above the page; null if there is none. */
export function useViewerAddress(): { id: string; query: string } | null {
  const path = useSyncExternalStore(listen, () => parts()[0]);
  const query = useSyncExternalStore(listen, () => parts()[1]);
  if (!path.startsWith(VIEWER)) return null;
  try {
    return { id: decodeURIComponent(path.slice(VIEWER.length)), query };
  } catch {
    return { id: path.slice(VIEWER.length), query };
  }
}

useHashLocation.hrefs = (href: string) => `#${href}`;
useHashLocation.searchHook = useHashSearch;
