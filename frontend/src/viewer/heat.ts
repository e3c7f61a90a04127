/** Heat maps: asked for a little at a time, so that one that is left behind costs nothing more. */
import { useQuery } from "@tanstack/react-query";
import { api, unwrap, type Schemas } from "../api/client";

export type Heat = Schemas["HeatView"];
export type HeatOfClass = Schemas["HeatOfClass"];

const AGAIN_MILLISECONDS = 60;
/** Below this fall no patch matters more than the others. */
export const LEAST_FALL = 0.01;

/** Return the heat map of a sample, or how far it is; nothing is asked while it is off, or when another image is shown. */
export function useHeat(facts: Schemas["SampleFacts"] | undefined, isOn: boolean): { heat: Heat | undefined; error: Error | null } {
  const { data, error } = useQuery({
    queryKey: ["heat", facts?.row, facts?.tables],
    queryFn: ({ signal }) => unwrap(api.GET("/api/samples/{row}/heat", { params: { path: { row: facts?.row ?? 0 }, query: { tables: facts?.tables ?? "" } }, signal })),
    enabled: isOn && Boolean(facts?.has_heat_map),
    refetchInterval: (query) => (query.state.data && query.state.data.done < query.state.data.total ? AGAIN_MILLISECONDS : false),
    staleTime: (query) => (query.state.data && query.state.data.done < query.state.data.total ? 0 : Infinity),
    retry: false,
  });
  return { heat: isOn ? data : undefined, error: isOn ? error : null };
}

/** Return the largest fall of a map. */
export function largestFall(map: HeatOfClass): number {
  return Math.max(0, ...map.heat.flat());
}

/** Return how strongly every cell is coloured, 0 to 1, row by row; nothing where no patch matters. */
export function strengths(map: HeatOfClass): number[] {
  const most = largestFall(map);
  return map.heat.flat().map((fall) => (most < LEAST_FALL ? 0 : Math.max(0, fall) / most));
}
