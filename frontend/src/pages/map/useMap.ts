import { useQuery, type UseQueryResult } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";
import { api, unwrap, type Schemas } from "../../api/client";
import { bytes, codes, floats, integers } from "../../components/packed";
import type { Ground } from "./palette";
import type { Colouring } from "./shading";

export type LayoutName = "pca" | "umap";
export type MapPoints = { view: Schemas["MapView"]; positions: Float32Array; rows: Int32Array; parts: Uint8Array };
export type Coloured = Colouring & { title: string; by: string; mapId: string };

/** Return the points of a layout. */
export function useLayout(layout: LayoutName, isWanted: boolean): UseQueryResult<MapPoints> {
  return useQuery({
    queryKey: ["map", layout],
    queryFn: async () => {
      const view = await unwrap(api.GET("/api/map", { params: { query: { layout } } }));
      return { view, positions: floats(view.positions), rows: integers(view.rows), parts: bytes(view.parts) };
    },
    enabled: isWanted,
    staleTime: 60_000,
  });
}

/** Return what there is to colour by. */
export function useColourings(): UseQueryResult<Schemas["MapColouringsView"]> {
  return useQuery({ queryKey: ["map", "colourings"], queryFn: () => unwrap(api.GET("/api/map/colourings")) });
}

/** Return what every point has; the former colours stay until the new ones are there. */
export function useColours(by: string): UseQueryResult<Coloured> {
  return useQuery({
    queryKey: ["map", "colours", by],
    queryFn: async (): Promise<Coloured> => {
      const view = await unwrap(api.GET("/api/map/colours", { params: { query: { by } } }));
      return {
        by: view.by,
        title: view.title,
        mapId: view.map_id,
        codes: view.codes ? codes(view.codes) : null,
        values: view.values ? floats(view.values) : null,
        legend: view.legend,
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
  return useSyncExternalStore(watchGround, readGround);
}

function darkSystem(): MediaQueryList {
  return window.matchMedia("(prefers-color-scheme: dark)");
}

function readGround(): Ground {
  const chosen = document.documentElement.dataset.theme;
  return chosen === "dark" || (chosen !== "light" && darkSystem().matches) ? "dark" : "light";
}

function watchGround(onChange: () => void): () => void {
  const [media, watch] = [darkSystem(), new MutationObserver(onChange)];
  watch.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  media.addEventListener("change", onChange);
  return () => { watch.disconnect(); media.removeEventListener("change", onChange); };
}
