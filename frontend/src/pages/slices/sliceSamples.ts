/** The samples of a slice's class, page by page: members, extremes, counter-examples, and the rest. */
import type { UseQueryOptions } from "@tanstack/react-query";
import { api, unwrap, type Schemas } from "../../api/client";
import type { Sample } from "../../components/ImageTile";
import { useRun } from "./useRun";

export type Kind = Schemas["Shown"];
export type Page = Schemas["SliceSamplePage"];

export const PAGE = 60;

export function usePage(sliceId: string, kind: Kind) {
  const { query } = useRun();
  return (page: number): UseQueryOptions<Page> => ({
    queryKey: ["slice members", sliceId, query.run ?? "", kind, page],
    queryFn: () => unwrap(api.GET("/api/slices/{slice_id}/members", { params: { path: { slice_id: sliceId }, query: { ...query, kind, offset: page * PAGE, limit: PAGE } } })),
    staleTime: 60_000,
  });
}

export function sampleIn(page: Page | undefined, place: number): Sample | undefined {
  return page?.samples[place - page.offset];
}
