import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { ErrorNote } from "./ErrorNote";
import { Loading } from "./Loading";

type Props<Data> = { query: UseQueryResult<Data>; what: string; children: (data: Data) => ReactNode };

/** What a query brought, or that it is on its way, or why it did not come. */
export function Loaded<Data>({ query, what, children }: Props<Data>) {
  if (query.isPending) return <Loading what={what} />;
  if (query.isError) return <ErrorNote error={query.error} onRetry={() => void query.refetch()} />;
  return <>{children(query.data)}</>;
}
