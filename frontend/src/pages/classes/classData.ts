/** What the class view reads from the server. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { allBut, askAgain } from "../../api/askAgain";
import { api, unwrap, type Schemas } from "../../api/client";
import { bytes, floats, integers } from "../../components/packed";
import type { Sample } from "../../components/ImageTile";

const DELAY = 120;
const AT_ONCE = 200_000;

/** The samples of a class that people look at, as columns. */
export type ClassColumns = {
  title: string;
  tables: string;
  total: number;
  comparable: number;
  rows: Int32Array;
  failed: Uint8Array;
  right: Uint32Array;
  wrong: Uint32Array;
  sampleAt: (place: number) => Sample;
};

type Page = Schemas["ClassSamples"];
export type PhraseScore = Schemas["PhraseScore"];
export type Scored = PhraseScore & { values: Float32Array };

function query(title: string, studyId: string | undefined) {
  return studyId === undefined ? { title } : { title, study: studyId };
}

function joined<Column extends Int32Array | Uint8Array | Float32Array>(parts: Column[], empty: Column): Column {
  const whole = new (empty.constructor as new (length: number) => Column)(parts.reduce((sum, part) => sum + part.length, 0));
  let place = 0;
  for (const part of parts) {
    whole.set(part, place);
    place += part.length;
  }
  return whole;
}

function columns(pages: Page[]): ClassColumns {
  const [first] = pages;
  if (!first) throw new Error("There are no samples.");
  const rows = joined(pages.map((page) => integers(page.rows)), new Int32Array());
  const failed = joined(pages.map((page) => bytes(page.failed)), new Uint8Array());
  const answer = joined(pages.map((page) => integers(page.answer)), new Int32Array());
  const places = (side: number) => Uint32Array.from(failed.keys()).filter((place) => failed[place] === side);
  return {
    title: first.title,
    tables: first.tables,
    total: first.total,
    comparable: first.n_comparable,
    rows,
    failed,
    right: places(0),
    wrong: places(1),
    sampleAt: (place) => ({
      row: rows[place] ?? 0,
      label: first.title,
      answer: first.answers[answer[place] ?? -1] ?? "unknown",
      is_failure: failed[place] === 1,
    }),
  };
}

/** All samples of a class; very large classes come in several pieces. */
export function useClassColumns(title: string, studyId?: string) {
  return useQuery({
    queryKey: ["class samples", title, studyId ?? null],
    queryFn: async () => {
      const wanted = query(title, studyId);
      const pages = [await unwrap(api.GET("/api/classes/samples", { params: { query: wanted } }))];
      const total = pages[0]?.total ?? 0;
      for (let offset = AT_ONCE; offset < total; offset += AT_ONCE) {
        pages.push(await unwrap(api.GET("/api/classes/samples", { params: { query: { ...wanted, offset } } })));
      }
      return columns(pages);
    },
    staleTime: Infinity,
  });
}

/** The value as it was when it last rested for a moment. */
export function useRested(value: string): string {
  const [rested, setRested] = useState(value);
  useEffect(() => {
    const waiting = window.setTimeout(() => setRested(value), DELAY);
    return () => window.clearTimeout(waiting);
  }, [value]);
  return rested;
}

async function scored(title: string, phrase: string, studyId: string | undefined, signal: AbortSignal): Promise<Scored> {
  const body = { ...query(title, studyId), phrase, source: "own" as const, is_submitted: false, offset: 0, limit: AT_ONCE };
  const first = await unwrap(api.POST("/api/classes/phrase", { body, signal }));
  const parts = [floats(first.similarities)];
  for (let offset = AT_ONCE; offset < first.n_samples; offset += AT_ONCE) {
    const next = await unwrap(api.POST("/api/classes/phrase", { body: { ...body, offset }, signal }));
    parts.push(floats(next.similarities));
  }
  return { ...first, values: joined(parts, new Float32Array()) };
}

/** The score of a phrase while it is typed; an outdated request is cancelled. */
export function usePhraseScore(title: string, phrase: string, studyId?: string) {
  const rested = useRested(phrase.trim());
  return useQuery<Scored>({
    queryKey: ["phrase", title, studyId ?? null, rested],
    queryFn: ({ signal }) => scored(title, rested, studyId, signal),
    enabled: rested !== "",
    placeholderData: (before) => (before?.title === title && rested !== "" ? before : undefined),
    staleTime: 60_000,
    gcTime: 60_000,
    retry: false,
  });
}

/** Words to start from; asked again while something better is being worked out. */
export function useSuggestions(title: string, studyId?: string) {
  return useQuery({
    queryKey: ["suggestions", title, studyId ?? null],
    queryFn: () => unwrap(api.GET("/api/classes/suggestions", { params: { query: query(title, studyId) } })),
    refetchInterval: (state) => (state.state.data && !state.state.data.is_complete ? 3000 : false),
    staleTime: Infinity,
  });
}

/** What was said of a class so far, newest first. */
export function useHistory(title: string, studyId?: string) {
  return useQuery({
    queryKey: ["phrases", title, studyId ?? null],
    queryFn: () => unwrap(api.GET("/api/classes/history", { params: { query: query(title, studyId) } })),
  });
}

export type Source = "own" | "suggestion" | "edited";
type Said = { phrase: string; threshold: number | null; source: Source };

/** What one can do with a phrase: keep it, check it on held-out samples, make it a slice. */
export function usePhraseActions(title: string, studyId?: string) {
  const queries = useQueryClient();
  const renew = () => void askAgain(queries, (key) => key[0] === "phrases" && key[1] === title && key[2] === (studyId ?? null));
  const renewAll = () => void askAgain(queries, allBut("class samples", "phrase", "suggestions", "session"));
  const keep = useMutation({
    mutationFn: (said: Said) => unwrap(api.POST("/api/classes/phrase", { body: { ...query(title, studyId), ...said, is_submitted: true, offset: 0, limit: 0 } })),
    onSuccess: renew,
  });
  const check = useMutation({
    mutationFn: (said: Said) => unwrap(api.POST("/api/classes/check", { body: { ...query(title, studyId), ...said } })),
    onSuccess: renew,
  });
  const accept = useMutation({
    mutationFn: (said: Said) => unwrap(api.POST("/api/classes/accept", { body: { ...query(title, studyId), ...said, reason: "" } })),
    onSuccess: renewAll,
  });
  return { keep, check, accept };
}
