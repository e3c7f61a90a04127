/** The server's routes, typed by its own schema. Addresses are relative, so that any sub-path of a proxy works. */
import createClient from "openapi-fetch";
import type { components, paths } from "./schema";
import { rememberOwnChange, SEEN, seenChange } from "./changes";
import { isStatic, staticFetch, staticImage } from "./static";

export type Schemas = components["schemas"];

/** What the server says when it refuses: what, where, what was given, what to do. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly what: string,
    readonly fix: string | null = null,
  ) {
    super(fix ? `${what} ${fix}` : what);
  }
}

let csrfToken = "";

/** Remember the token that the session gave, for requests that change something. */
export function rememberCsrfToken(token: string): void {
  csrfToken = token;
}

export const serverRoot = new URL("./", document.baseURI.split("#")[0]).href.replace(/\/$/, "");

export const api = createClient<paths>({ baseUrl: serverRoot, ...(isStatic() ? { fetch: staticFetch } : {}) });

api.use({
  onRequest({ request }) {
    if (request.method === "GET") return request;
    request.headers.set("X-CSRF-Token", csrfToken);
    const seen = seenChange();
    if (seen !== null && !request.headers.has(SEEN)) request.headers.set(SEEN, String(seen));
    return request;
  },
  onResponse({ response }) {
    const made = Number(response.headers.get("X-Change"));
    if (made > 0) rememberOwnChange(made);
    return response;
  },
});

type Answer<Data> = { data?: Data; error?: unknown; response: Response };

/** Return the data of an answer, or throw what the server said. */
export async function unwrap<Data>(answer: Promise<Answer<Data>>): Promise<Data> {
  let found: Answer<Data>;
  try {
    found = await answer;
  } catch {
    throw new Problem(0, "The server does not answer.", "Is `weakspot serve` still running? What you did so far is kept.");
  }
  if (found.data !== undefined && found.response.ok) return found.data;
  const said = (found.error ?? {}) as { what?: string; fix?: string | null };
  throw new Problem(found.response.status, said.what ?? `The server answered ${found.response.status}.`, said.fix ?? null);
}

/** Return the address of a sample's image. */
export function imageAddress(row: number, tables: string, side = 160): string {
  if (isStatic()) return staticImage(row);
  return `${serverRoot}/api/images/${row}?tables=${encodeURIComponent(tables)}&side=${side}`;
}

/** Return the address of the image itself, upright: as large as it is, or with no side longer than `side`. */
export function originalAddress(row: number, tables: string, side: number | null): string {
  if (isStatic()) return staticImage(row);
  return `${serverRoot}/api/images/${row}/original?tables=${encodeURIComponent(tables)}${side ? `&side=${side}` : ""}`;
}
