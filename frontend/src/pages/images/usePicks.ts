import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useMemo, useRef, useState } from "react";
import { api, unwrap } from "../../api/client";
import type { Picking, Sample } from "../../components/ImageTile";
import { integers } from "../../components/packed";
import { asked } from "../../viewer/imageSet";

export type Picks = {
  picked: ReadonlySet<number>;
  picking: Picking;
  isOn: boolean;
  isAll: boolean;
  error: Error | null;
  setOn: (isOn: boolean) => void;
  setAll: (isAll: boolean) => void;
  clear: () => void;
};

/** Images that are picked out of those of a query: one by one, a row of them from the last to this one, or all. */
export function usePicks(query: string): Picks {
  const queries = useQueryClient();
  const [picked, setPicked] = useState<ReadonlySet<number>>(new Set<number>());
  const [isOn, setOn] = useState(false);
  const [isAll, setAll] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  const last = useRef<number | null>(null);
  const rowsOfQuery = useCallback(
    () => queries.query({ queryKey: ["images", query, "rows"], queryFn: () => unwrap(api.GET("/api/image-rows", { params: { query: asked(new URLSearchParams(query)) } })), staleTime: 60_000 }),
    [queries, query],
  );
  const pick = useCallback(
    (sample: Sample, isRange: boolean) => {
      setAll(false);
      const from = last.current;
      last.current = sample.place ?? null;
      if (!isRange || from === null || sample.place === undefined) {
        setPicked((old) => toggled(old, sample.row));
        return;
      }
      const [low, high] = [Math.min(from, sample.place), Math.max(from, sample.place)];
      rowsOfQuery().then(
        (found) => setPicked((old) => new Set([...old, ...integers(found.rows).slice(low, high + 1)])),
        (problem: unknown) => setError(problem instanceof Error ? problem : new Error(String(problem))),
      );
    },
    [rowsOfQuery],
  );
  const clear = useCallback(() => {
    setPicked(new Set());
    setAll(false);
    last.current = null;
  }, []);
  const picking = useMemo(() => ({ isOn, onPick: pick }), [isOn, pick]);
  return { picked, picking, isOn, isAll, error, setOn, setAll, clear };
}

/** Return a set with something added, or taken out if it was there. */
export function toggled(old: ReadonlySet<number>, one: number): ReadonlySet<number> {
  const made = new Set(old);
  if (!made.delete(one)) made.add(one);
  return made;
}
