import { useQuery } from "@tanstack/react-query";
import { useEffect, type ReactNode } from "react";
import { Link, useSearchParams } from "wouter";
import { api, unwrap } from "../../api/client";
import { isStatic } from "../../api/static";
import { ErrorNote } from "../../components/ErrorNote";
import { counted } from "../../components/figures";
import { integers } from "../../components/packed";
import { asked, imageQuery } from "../../viewer/imageSet";
import { placesOf } from "./places";
import type { MapPoints } from "./useMap";

/** Select the points of the images that the address asks for, as the page Images does; return a line that says so. */
export function useAskedPoints(points: MapPoints, onSelect: (places: number[]) => void, onParts: (change: (old: ReadonlySet<number>) => ReadonlySet<number>) => void): ReactNode {
  const [params] = useSearchParams();
  const query = imageQuery(params);
  const text = query.toString();
  const found = useQuery({
    queryKey: ["image rows", text, points.view.tables],
    queryFn: () => unwrap(api.GET("/api/image-rows", { params: { query: asked(new URLSearchParams(text)) } })),
    enabled: text !== "" && !isStatic(),
    retry: false,
  });
  useEffect(() => {
    if (found.data?.tables !== points.view.tables) return;
    const places = placesOf(points.rows, integers(found.data.rows));
    onParts((old) => new Set([...old, ...places.map((place) => points.parts[place] ?? 0)]));
    onSelect(places);
  }, [found.data, points, onParts, onSelect]);
  if (found.isError) return <ErrorNote error={found.error} />;
  if (!found.data) return null;
  return <p>Selected are the {counted(found.data.total)} images of a choice. <Link href={`/images?${text}`}>See them as images</Link></p>;
}
