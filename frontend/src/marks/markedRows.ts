/** Which rows people said something of, so that every tile can show it. */
import { useQuery } from "@tanstack/react-query";
import { createContext, useMemo } from "react";
import { api, unwrap } from "../api/client";
import { isStatic } from "../api/static";
import { integers } from "../components/packed";

export type MarkedRows = { tables: string; rows: ReadonlySet<number> };

export const NONE_MARKED: MarkedRows = { tables: "", rows: new Set() };
export const MarkedContext = createContext<MarkedRows>(NONE_MARKED);

/** Return the rows that have a mark; asked for once, and again when marks change. */
export function useMarkedRows(isReader: boolean): MarkedRows {
  const { data } = useQuery({
    queryKey: ["marked rows"],
    queryFn: () => unwrap(api.GET("/api/image-rows", { params: { query: { mark: "any" } } })),
    enabled: isReader && !isStatic(),
    staleTime: Infinity,
    retry: false,
  });
  return useMemo(() => (data ? { tables: data.tables, rows: new Set(integers(data.rows)) } : NONE_MARKED), [data]);
}
