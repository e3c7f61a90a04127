import { useEffect, useRef, type CSSProperties } from "react";
import { strengths, type HeatOfClass } from "./heat";

/** A heat map above the image, as large as it is shown; its words are among the details. */
export function HeatLayer({ map, style }: { map: HeatOfClass; style: CSSProperties }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [rows, columns] = [map.heat.length, map.heat[0]?.length ?? 0];
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context) return;
    const cells = context.createImageData(columns, rows);
    strengths(map).forEach((strength, cell) => cells.data.set([208, 30, 190, Math.round(190 * strength)], 4 * cell));
    context.putImageData(cells, 0, 0);
  }, [map, rows, columns]);
  return <canvas ref={canvas} className="viewer-heat" width={columns} height={rows} style={style} aria-hidden="true" />;
}
