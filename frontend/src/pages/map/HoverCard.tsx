import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { api, imageAddress, unwrap } from "../../api/client";
import { isStatic } from "../../api/static";
import type { Point, Size } from "./camera";

const WAIT_MILLISECONDS = 70;
const SIDE = 132;
type Props = { row: number; tables: string; at: Point; size: Size; words: string };

/** The sample under the pointer: its image and what is known of it. */
export function HoverCard({ row, tables, at, size, words }: Props) {
  const [settled, setSettled] = useState(row);
  const [missing, setMissing] = useState(-1);
  useEffect(() => {
    const timer = window.setTimeout(() => setSettled(row), WAIT_MILLISECONDS);
    return () => window.clearTimeout(timer);
  }, [row]);
  const { data } = useQuery({
    queryKey: ["map-sample", tables, settled],
    queryFn: () => unwrap(api.GET("/api/map/samples/{row}", { params: { path: { row: settled } } })),
    enabled: settled === row && !isStatic(),
    staleTime: Infinity,
  });
  const isRight = data?.is_failure === false;
  const side = `${at.x > size.width * 0.65 ? " to-left" : ""}${at.y > size.height * 0.6 ? " to-top" : ""}`;
  return (
    <div className={`map-hover${side}`} style={{ left: at.x, top: at.y }} aria-hidden="true">
      {settled === row && missing !== row && (
        <img src={imageAddress(row, tables)} alt="" width={SIDE} height={SIDE} onError={() => setMissing(row)} />
      )}
      {data && (
        <p>
          <strong>{data.label || "no label"}</strong>
          {data.is_failure !== null && <> {isRight ? "✓ right" : `✗ predicted as ${data.answer}`}</>}
          <br />
          <span className="quiet">{data.part}{words ? ` · ${words}` : ""}</span>
        </p>
      )}
    </div>
  );
}
