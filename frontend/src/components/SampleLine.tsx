import { useQuery } from "@tanstack/react-query";
import type { MouseEvent } from "react";
import { api, unwrap } from "../api/client";
import { resultSign, resultWord, type Picking, type Sample } from "./ImageTile";

type Props = { sample: Sample; tables: string; onOpen?: (sample: Sample) => void; picking?: Picking; isPicked?: boolean };

/** One sample of a table without images: what the classifier said, and the values of its columns. */
export function SampleLine({ sample, tables, onOpen, picking, isPicked = false }: Props) {
  const { row } = sample;
  const { data } = useQuery({
    queryKey: ["sample", row, tables],
    queryFn: () => unwrap(api.GET("/api/samples/{row}", { params: { path: { row }, query: { tables } } })),
    retry: false,
  });
  const said = `${sample.label}, predicted as ${sample.answer}, ${resultWord(sample)}`;
  const values = (data?.columns ?? []).map((column) => `${column.name}: ${column.value}`).join(" · ");
  const kind = `sample-line ${sample.is_failure ? "is-wrong" : "is-right"}`;
  const body = (
    <>
      <b>{resultSign(sample)}{sample.marks?.length ? " ⚑" : ""} {sample.label} → {sample.answer}</b>
      <span className="quiet" title={values}>{values || (data?.name ?? `sample ${row}`)}</span>
    </>
  );
  if (!onOpen) return <div className={kind}>{body}</div>;
  const press = (event: MouseEvent) => {
    if (picking && (picking.isOn || event.shiftKey || event.ctrlKey || event.metaKey)) picking.onPick(sample, event.shiftKey);
    else onOpen(sample);
  };
  const pressed = picking && (picking.isOn || isPicked) ? { "aria-pressed": isPicked } : {};
  return <button type="button" className={`${kind} ${isPicked ? "is-picked" : ""}`} onClick={press} {...pressed} aria-label={`${said}, ${values}`}>{body}</button>;
}
