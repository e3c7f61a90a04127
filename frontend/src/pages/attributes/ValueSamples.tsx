import { useInfiniteQuery } from "@tanstack/react-query";
import { useCallback, useMemo } from "react";
import { api, unwrap } from "../../api/client";
import { ErrorNote } from "../../components/ErrorNote";
import { counted } from "../../components/figures";
import { ImageGrid } from "../../components/ImageGrid";
import type { Sample } from "../../components/ImageTile";
import { openSample } from "../../viewer/imageSet";
import type { Chosen } from "./tables";

const PAGE = 100;
type Props = { chosen: Chosen[]; title: string; tables: string; version: number };

/** The samples that have given values: wrong ones on the left, right ones on the right. */
export function ValueSamples({ chosen, title, tables, version }: Props) {
  return (
    <div className="columns">
      <Half result="wrong" chosen={chosen} title={title} tables={tables} version={version} />
      <Half result="right" chosen={chosen} title={title} tables={tables} version={version} />
    </div>
  );
}

type HalfProps = Props & { result: "right" | "wrong" };

/** One result, read page by page as it comes into sight. */
function Half({ result, chosen, title, tables, version }: HalfProps) {
  const query = useInfiniteQuery({
    queryKey: ["attribute-samples", result, chosen, title, tables, version],
    queryFn: ({ pageParam }) => {
      const [attributes, values] = [chosen.map((one) => one.attribute), chosen.map((one) => one.value)];
      return unwrap(api.GET("/api/attributes/samples", { params: { query: { attributes, values, result, offset: pageParam, limit: PAGE, ...(title ? { title } : {}) } } }));
    },
    initialPageParam: 0,
    getNextPageParam: (last) => (last.offset + last.samples.length < last.total ? last.offset + last.samples.length : undefined),
  });
  const samples = useMemo(() => (query.data?.pages ?? []).flatMap((page) => page.samples), [query.data]);
  const { fetchNextPage, hasNextPage, isFetchingNextPage } = query;
  const onNeed = useCallback(
    (_first: number, last: number) => {
      if (last >= samples.length && hasNextPage && !isFetchingNextPage) void fetchNextPage();
    },
    [samples.length, hasNextPage, isFetchingNextPage, fetchNextPage],
  );
  const onOpen = useCallback(
    (sample: Sample) => openSample(sample.row, tables, {}, { count: samples.length, rowAt: (place) => samples[place]?.row, place: samples.findIndex((one) => one.row === sample.row) }),
    [samples, tables],
  );
  const total = query.data?.pages[0]?.total ?? 0;
  return (
    <div>
      <h3 className={`result-head ${result}`}>{result === "right" ? "Right" : "Wrong"} <span className="quiet figure">{query.data ? counted(total) : "…"}</span></h3>
      {query.isError && <ErrorNote error={query.error} />}
      <ImageGrid count={Math.min(total, samples.length + PAGE)} sampleAt={(place) => samples[place]} onNeed={onNeed} tables={tables} label={`${result} samples`} height={290} onOpen={onOpen} />
    </div>
  );
}
