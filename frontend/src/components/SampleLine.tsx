import { useQuery } from "@tanstack/react-query";
import { api, unwrap } from "../api/client";
import type { Sample } from "./ImageTile";

type Props = { sample: Sample; tables: string; onOpen?: (sample: Sample) => void };

/** One sample of a table without images: what the classifier said, and the values of its columns. */
export function SampleLine({ sample, tables, onOpen }: Props) {
  const { row } = sample;
  const { data } = useQuery({
    queryKey: ["sample", row, tables],
    queryFn: () => unwrap(api.GET("/api/samples/{row}", { params: { path: { row }, query: { tables } } })),
    retry: false,
  });
  const said = `${sample.label}, predicted as ${sample.answer}, ${sample.is_failure ? "wrong" : "right"}`;
  const values = (data?.columns ?? []).map((column) => `${column.name}: ${column.value}`).join(" · ");
  const kind = `sample-line ${sample.is_failure ? "is-wrong" : "is-right"}`;
  const body = (
    <>
      <b>{sample.is_failure ? "✗" : "✓"} {sample.label} → {sample.answer}</b>
      <span className="quiet" title={values}>{values || (data?.sample_id ?? `sample ${row}`)}</span>
    </>
  );
  if (!onOpen) return <div className={kind}>{body}</div>;
  return <button type="button" className={kind} onClick={() => onOpen(sample)} aria-label={`${said}, ${values}`}>{body}</button>;
}
