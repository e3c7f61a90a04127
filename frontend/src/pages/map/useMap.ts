import { useQuery, type UseQueryResult } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { api, told, type Schemas } from "../../api/client";
import { bytes, codes, floats, integers } from "./arrays";
import type { Ground } from "./palette";
import type { Colouring } from "./shading";

export type LayoutName = "pca" | "umap";
export type MapPoints = { view: Schemas["MapView"]; positions: Float32Array; rows: Int32Array; parts: Uint8Array };
export type Coloured = Colouring & { title: string; by: string; mapId: string };

/** Return the points of a layout. */
export function useLayout(layout: LayoutName, isWanted: boolean): UseQueryResult<MapPoints, Error> {
  return useQuery({
    queryKey: ["map", layout],
    queryFn: async () => {
      const view = await told(api.GET("/api/map", { params: { query: { layout } } }));
      return { view, positions: floats(view.positions), rows: integers(view.rows), parts: bytes(view.parts) };
    },
    enabled: isWanted,
    staleTime: 60_000,
  });
}

/** Return what there is to colour by. */
export function useColourings(): UseQueryResult<Schemas["MapColouringsView"], Error> {
  return useQuery({ queryKey: ["map", "colourings"], queryFn: () => told(api.GET("/api/map/colourings")) });
}

/** Return what every point has; the former colours stay until the new ones are there. */
export function useColours(by: string): UseQueryResult<Coloured, Error> {
  return useQuery({
    queryKey: ["map", "colours", by],
    queryFn: async (): Promise<Coloured> => {
      const view = await told(api.GET("/api/map/colours", { params: { query: { by } } }));
      return {
        by: view.by,
        title: view.title,
        mapId: view.map_id,
        codes: view.codes === null || view.codes === undefined ? null : codes(view.codes),
        values: view.values === null || view.values === undefined ? null : floats(view.values),
        legend: (view.legend ?? []).map((entry) => ({ value: entry.value, count: entry.count, meaning: entry.meaning ?? "" })),
        low: view.low ?? 0,
        high: view.high ?? 1,
      };
    },
    placeholderData: (former) => former,
    retry: false,
  });
}

/** Return whether pages are light or dark now. */
export function useGround(): Ground {
  const media = useMemo(() => window.matchMedia("(prefers-color-scheme: dark)"), []);
  const read = () => {
    const chosen = document.documentElement.dataset["theme"];
    return chosen === "dark" || (chosen !== "light" && media.matches) ? "dark" : "light";
  };
  const [ground, setGround] = useState<Ground>(read);
  useEffect(() => {
    const change = () => setGround(read());
    const watch = new MutationObserver(change);
    watch.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    media.addEventListener("change", change);
    change();
    return () => { watch.disconnect(); media.removeEventListener("change", change); };
  }, [media]);
  return ground;
}
