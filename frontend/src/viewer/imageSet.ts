/** The images that one goes through: asked for by a query, which is in the address, or those of the page that opened the first. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useRef, useState } from "react";
import { api, unwrap, type Schemas } from "../api/client";
import { isStatic } from "../api/static";
import { go, VIEWER } from "../app/hashLocation";

export type Page = Schemas["ImagePage"];
export type ImageQuery = NonNullable<NonNullable<Parameters<typeof imagesAt>[0]>>;

export const PAGE = 60;
const LISTS = ["attributes", "values"] as const;
const NAMES = ["label", "answer", "result", "part", "sure_from", "sure_to", "slice_id", "shown", "run", "name", "words", "like", "similar_from", "mark", "selection", "order"] as const;

/** Rows of a page, in its order, for as long as the page is open. */
export type RowsHere = { count: number; rowAt: (place: number) => number | undefined; place: number };

let here: RowsHere | null = null;

/** Return what of an address says which images are meant, in a fixed order: the same images have the same query. */
export function imageQuery(search: string | URLSearchParams): URLSearchParams {
  const given = new URLSearchParams(search);
  const found = new URLSearchParams();
  for (const name of NAMES) {
    const value = given.get(name);
    if (value) found.set(name, value);
  }
  for (const name of LISTS) for (const value of given.getAll(name)) found.append(name, value);
  return found;
}

/** Return a query as the server's client takes it. */
export function asked(query: URLSearchParams): Record<string, string | string[]> {
  return Object.fromEntries([...new Set(query.keys())].map((name) => [name, (LISTS as readonly string[]).includes(name) ? query.getAll(name) : (query.get(name) ?? "")]));
}

/** Ask for some of the images of a query. */
export function imagesAt(query: URLSearchParams, where: { offset?: number; around?: string; limit?: number }): Promise<Page> {
  return unwrap(api.GET("/api/images", { params: { query: { limit: PAGE, ...asked(query), ...where } } }));
}

/** Show one sample above the page. `query` says which images to go through; `rows` are those of the page itself, where no query does. */
export function openSample(row: number, tables: string, query: URLSearchParams | Record<string, string> = {}, rows: RowsHere | null = null): void {
  here = rows;
  const search = imageQuery(new URLSearchParams(query));
  search.set("tables", tables);
  go(`${VIEWER}${row}?${search.toString()}`, { state: { depth: depth() + 1 } });
}

/** Return how many steps of the browser's history lie between the image and the page below it. */
export function depth(): number {
  const state = window.history.state as { depth?: number } | null;
  return window.location.hash.replace(/^#?\/?/, "/").startsWith(VIEWER) ? (state?.depth ?? 0) : 0;
}

/** Go to another image, in the place of this one. */
export function showInstead(id: string | number, query: URLSearchParams): void {
  const search = query.toString();
  go(`${VIEWER}${encodeURIComponent(id)}${search ? `?${search}` : ""}`, { replace: true, state: window.history.state });
}

/** Forget the rows of the page; the next image may be opened from another. */
export function forgetRows(): void {
  here = null;
}

type Known = { query: string; id: string; place: number | null; total: number };

/** Return at which place to go on. What was just marked may have left the images of a filter: then the next one has moved into its place. */
export function following(page: Pick<Page, "images" | "offset">, from: { id: string; place: number }, by: number): number {
  const found = page.images.findIndex((one) => one.sample_id === from.id);
  if (found >= 0) return page.offset + found + by;
  return from.place + (by > 0 ? by - 1 : by);
}

export type Stepping = { place: number | null; total: number; step: (by: number) => void };

/** Return where a sample is among the images that one goes through, and how to go on. */
export function useStepping(sample: Schemas["SampleFacts"] | undefined, search: string, isAllowed: boolean): Stepping {
  const queries = useQueryClient();
  const query = imageQuery(search).toString();
  const id = sample?.sample_id ?? "";
  const [known, setKnown] = useState<Known | null>(null);
  const newest = useRef<Known | null>(null);
  const isOpen = useRef(true);
  const under = useRef(Promise.resolve());
  const remember = useCallback((now: Known) => {
    newest.current = now;
    setKnown(now);
  }, []);
  useEffect(() => {
    isOpen.current = true;
    return () => {
      isOpen.current = false;
    };
  }, []);
  const isServed = isAllowed && !isStatic() && !here;
  const isKnown = known?.query === query && known.id === id;
  const around = useQuery({
    queryKey: ["images", query, "around", id],
    queryFn: () => imagesAt(new URLSearchParams(query), { around: id }),
    enabled: isServed && id !== "" && !isKnown,
    retry: false,
  });
  useEffect(() => {
    if (around.data && id && !isKnown) remember({ query, id, place: around.data.place, total: around.data.total });
  }, [around.data, id, isKnown, query, remember]);
  const step = useCallback(
    (by: number) => {
      const params = new URLSearchParams(query);
      if (here) {
        const place = here.place + by;
        const row = here.rowAt(place);
        if (place < 0 || place >= here.count || row === undefined) return;
        here.place = place;
        params.set("tables", sample?.tables ?? "");
        showInstead(row, params);
        return;
      }
      const pageWith = (place: number) => {
        const offset = place - (place % PAGE);
        return queries.query({ queryKey: ["images", query, offset], queryFn: () => imagesAt(params, { offset }), staleTime: 60_000 });
      };
      // One after the other: a key that is pressed while a page is on its way is not lost, and goes on from there.
      under.current = under.current.then(async () => {
        const from = newest.current;
        if (from?.query !== query) return;
        const place = from.place === null ? 0 : following(await pageWith(from.place), { ...from, place: from.place }, by);
        if (place < 0) return;
        const page = await pageWith(place);
        const next = page.images[place - page.offset];
        if (!next || !isOpen.current) return;
        remember({ query, id: next.sample_id, place, total: page.total });
        showInstead(next.sample_id, params);
      }).catch(() => undefined);
    },
    [queries, query, remember, sample?.tables],
  );
  if (here) return { place: here.place, total: here.count, step };
  return { place: isKnown ? known.place : null, total: isKnown ? known.total : 0, step };
}
