/** Pages without a server: answers were written beside them as scripts, because pages opened from a file may not fetch. */

declare global {
  interface Window {
    weakspotStatic?: { answers: Record<string, unknown> };
  }
}

/** Return whether these pages were exported and have no server behind them. */
export function isStatic(): boolean {
  return window.weakspotStatic !== undefined;
}

/** Answer a request from what was exported: the path below the root with its query, keys sorted. */
export function staticFetch(request: Request): Promise<Response> {
  const address = new URL(request.url);
  const start = address.pathname.indexOf("/api/");
  address.searchParams.sort();
  const key = address.pathname.slice(start) + address.search;
  const found = request.method === "GET" ? window.weakspotStatic?.answers[key] : undefined;
  if (found === undefined) {
    const problem = { what: "This is not part of the exported pages.", fix: "Open the project with `weakspot serve`." };
    return Promise.resolve(Response.json(problem, { status: 404 }));
  }
  return Promise.resolve(Response.json(found));
}
