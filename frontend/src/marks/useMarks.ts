/** Marks on samples: what is said of one, and how something is said of some. */
import { useMutation, useQuery, useQueryClient, type QueryClient } from "@tanstack/react-query";
import { askAgain, named } from "../api/askAgain";
import { api, unwrap, type Schemas } from "../api/client";
import { isStatic } from "../api/static";
import { useMayChange } from "../app/session";

export type Mark = Schemas["Mark"];
export type Kind = Mark["kind"];
/** Which samples are meant: rows of a page, or everything that a query chooses. */
export type Meant = { rows: number[]; tables: string } | { query: Record<string, string | string[]> };
export type Said = { kind: Kind; labels?: string[]; text?: string };

const SHOWN = ["marks", "marks of", "marked rows", "images", "image choices", "activity"];

/** Ask again for everything that shows marks. */
export function renewMarks(queries: QueryClient): void {
  void askAgain(queries, named(...SHOWN));
}

/** Return what people said of a sample. */
export function useMarksOf(sampleId: string) {
  return useQuery({
    queryKey: ["marks of", sampleId],
    queryFn: () => unwrap(api.GET("/api/sample-ids/{sample_id}/marks", { params: { path: { sample_id: sampleId } } })),
    enabled: sampleId !== "" && !isStatic(),
    retry: false,
  });
}

/** Return what there is to choose images by; it names the classes, and tags that were given before. */
export function useImageChoices() {
  return useQuery({ queryKey: ["image choices"], queryFn: () => unwrap(api.GET("/api/image-choices")), enabled: !isStatic() });
}

/** Say something of samples. */
export function useMarking() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ meant, said }: { meant: Meant; said: Said }) => unwrap(api.POST("/api/marks", { body: { rows: [], tables: "", labels: [], text: "", ...meant, ...said } as Schemas["MarkRequest"] })),
    onSettled: () => renewMarks(queries),
  });
}

/** Take marks back. */
export function useTakingBack() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ meant, kind, text }: { meant: Meant; kind?: Kind; text?: string }) =>
      unwrap(api.POST("/api/marks/removal", { body: { rows: [], tables: "", ...meant, ...(kind ? { kind } : {}), ...(text ? { text } : {}) } as Schemas["MarkRemoval"] })),
    onSettled: () => renewMarks(queries),
  });
}

/** Give rows a name that an address can hold. */
export async function pickOut(meant: Meant): Promise<string> {
  const found = await unwrap(api.POST("/api/selections", { body: { rows: [], tables: "", ...meant } as Schemas["MeantSamples"] }));
  return found.selection_id;
}

/** Return whether whoever is here may mark. */
export function useMayMark(): boolean {
  return useMayChange() && !isStatic();
}

/** Return a mark in a few words. */
export function markWords(mark: Pick<Mark, "kind" | "labels" | "text">): string {
  if (mark.kind === "label") return mark.labels.length > 0 ? `Label is wrong: it is ${mark.labels.join(", ")}` : "Label is wrong";
  if (mark.kind === "unusable") return "Unusable";
  return mark.kind === "tag" ? `Tag: ${mark.text}` : mark.text;
}
