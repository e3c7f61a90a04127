/** Pages without a server: answers were written beside them as scripts, because pages opened from a file may not fetch. */

/** What `weakspot export --static` wrote: answers by what was asked, and the rows whose images are there. */
export type StaticAnswers = { answers: Record<string, unknown>; images: number[]; notes: string[] };

declare global {
  // eslint-disable-next-line @typescript-eslint/consistent-type-definitions -- only an interface adds to a global one
  interface Window {
    weakspotStatic?: StaticAnswers;
  }
}

const NOT_THERE = encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 160 160"><rect width="160" height="160" fill="#8a96a5"/><text x="80" y="76" font-family="sans-serif" font-size="18" fill="#fff" text-anchor="middle">image not</text><text x="80" y="100" font-family="sans-serif" font-size="18" fill="#fff" text-anchor="middle">exported</text></svg>',
);
let rows: Set<number> | null = null;

/** Return whether these pages were exported and have no server behind them. */
export function isStatic(): boolean {
  return window.weakspotStatic !== undefined;
}

/** Return the name that an answer has in the export: path below the root, query by name, and the body of what is not a GET. */
export function answerKey(method: string, address: URL, body = ""): string {
  const path = decodeURIComponent(address.pathname.slice(address.pathname.indexOf("/api/")));
  address.searchParams.sort();
  const asked = [...address.searchParams].map(([name, value]) => `${name}=${value}`).join("&");
  const key = asked ? `${path}?${asked}` : path;
  return method === "GET" ? key : `${method} ${key} ${sortedJson(body)}`;
}

/** Answer a request from what was exported. */
export async function staticFetch(request: Request): Promise<Response> {
  const body = request.method === "GET" ? "" : await request.text();
  const found = window.weakspotStatic?.answers[answerKey(request.method, new URL(request.url), body)];
  if (found === undefined) {
    const problem = { what: "This is not part of the exported pages.", fix: "Open the project with `weakspot serve`." };
    return Response.json(problem, { status: 404 });
  }
  return Response.json(found);
}

/** Return the address of a sample's image in the export; where it was left out, an image that says so. */
export function staticImage(row: number): string {
  rows ??= new Set(window.weakspotStatic?.images ?? []);
  return rows.has(row) ? `images/${row}.jpg` : `data:image/svg+xml,${NOT_THERE}`;
}

function sortedJson(text: string): string {
  try {
    const fields = Object.entries(JSON.parse(text) as Record<string, unknown>).sort(([one], [two]) => (one < two ? -1 : 1));
    return JSON.stringify(Object.fromEntries(fields));
  } catch {
    return text;
  }
}
