import { useCallback, useMemo, useRef, useState } from "react";
import { useMayChange } from "../../app/session";
import { isStatic } from "../../api/static";
import { Button } from "../../components/Button";
import { Card } from "../../components/Card";
import { ErrorNote } from "../../components/ErrorNote";
import { counted } from "../../components/figures";
import { Loaded } from "../../components/Loaded";
import { PageHead } from "../../components/PageHead";
import { openSample } from "../../viewer/imageSet";
import { useJob, JobProgress } from "../../components/jobs";
import type { Box } from "./camera";
import { ColourChoice } from "./ColourChoice";
import { HoverCard } from "./HoverCard";
import { pointsInBox } from "./lasso";
import { MapCanvas, type MapHandle, type Mode, type Pointed } from "./MapCanvas";
import { MapLegend } from "./MapLegend";
import { MapSummary } from "./MapSummary";
import { OtherSelections } from "./OtherSelections";
import { SelectionPanel } from "./SelectionPanel";
import { drawingOrder, pointColours, shownCounts, shownPoints } from "./shading";
import { useAskedPoints } from "./useAskedPoints";
import { useColourings, useColours, useGround, useLayout, type Coloured, type LayoutName, type MapPoints } from "./useMap";
import type { RendererState } from "./useRenderer";
import "./map.css";

const START = "result";
const EMPTY: Coloured = { by: "", title: "", mapId: "", codes: null, values: null, legend: [], low: 0, high: 1 };
const KEYS = "Arrow keys move the map, plus and minus zoom, 0 shows all of it, Escape clears the selection.";

/** Map: samples in two dimensions, coloured by anything; what is drawn around becomes a hypothesis. */
export function MapPage() {
  const first = useLayout("pca", true);
  return (
    <>
      <PageHead title="Map">
        Samples that look alike stand together. Colour them, draw around those that go wrong together, and see what they have in common. Only the half that you may look at is judged.
      </PageHead>
      <Loaded query={first} what="the map">
        {(points) => (points.view.n_points > 0 ? <Map first={points} /> : <p className="note">{points.view.note || "There are no samples to show."}</p>)}
      </Loaded>
    </>
  );
}

function Map({ first }: { first: MapPoints }) {
  const [wanted, setWanted] = useState<LayoutName>("pca");
  const [by, setBy] = useState(START);
  const [parts, setParts] = useState<ReadonlySet<number>>(new Set([0]));
  const [hidden, setHidden] = useState<ReadonlySet<number>>(new Set<number>());
  const [pointSize, setPointSize] = useState(() => startingSize(first.view.part_counts[0]?.shown ?? 0));
  const [mode, setMode] = useState<Mode>("move");
  const [selection, setSelection] = useState<number[]>([]);
  const [pointed, setPointed] = useState<Pointed>({ place: -1, at: { x: 0, y: 0 }, size: { width: 1, height: 1 } });
  const [state, setState] = useState<RendererState>("starting");
  const handle = useRef<MapHandle>(null);
  const ground = useGround();
  const asked = useAskedPoints(first, setSelection, setParts);
  const choices = useColourings();
  const colours = useColours(by);
  const second = useLayout("umap", first.view.is_umap_ready || wanted === "umap");
  const isUmap = wanted === "umap" && second.data?.view.is_ready === true && second.data.view.map_id === first.view.map_id;
  const positions = isUmap && second.data ? second.data.positions : first.positions;
  const colouring = colours.data?.mapId === first.view.map_id ? colours.data : EMPTY;
  const isReady = colouring !== EMPTY;

  const isShown = useMemo(() => shownPoints(first.parts, parts, colouring, hidden), [first.parts, parts, colouring, hidden]);
  const flags = useMemo(() => {
    if (!selection.length) return null;
    const found = new Uint8Array(first.parts.length);
    for (const place of selection) found[place] = 1;
    return found;
  }, [selection, first.parts.length]);
  const painted = useMemo(() => pointColours(colouring, first.parts, isShown, flags, ground), [colouring, first.parts, isShown, flags, ground]);
  const order = useMemo(() => (isReady ? drawingOrder(colouring, first.parts, isShown, flags) : new Uint32Array(0)), [isReady, colouring, first.parts, isShown, flags]);
  const image = useMemo(() => ({ positions, colours: painted, order, pointSize }), [positions, painted, order, pointSize]);
  const counts = useMemo(() => shownCounts(colouring, isShown), [colouring, isShown]);
  const rows = useMemo(() => selection.map((place) => first.rows[place] ?? 0), [selection, first.rows]);

  const select = useCallback((places: number[], isAdded = false) => {
    setSelection((former) => (isAdded ? [...new Set([...former, ...places])] : places));
  }, []);
  const point = useCallback((found: Pointed) => setPointed((former) => (former.place === found.place ? former : found)), []);
  const open = useCallback((place: number) => openSample(first.rows[place] ?? 0, first.view.tables), [first]);
  const openSelected = (row: number) => openSample(row, first.view.tables, {}, { count: rows.length, rowAt: (place) => rows[place], place: rows.indexOf(row) });
  const selectValue = (code: number) => select([...isShown.keys()].filter((place) => isShown[place] === 1 && colouring.codes?.[place] === code));
  const selectBox = (box: Box) => select(pointsInBox(positions, isShown, box));
  const choose = (chosen: string) => { setHidden(new Set()); setBy(chosen); };
  const shownTotal = isShown.reduce((sum, value) => sum + value, 0);
  const summary = <MapSummary title={colouring.title} colouring={colouring} counts={counts} isShown={isShown} />;
  const words = colouring.codes && pointed.place >= 0 ? `${colouring.title}: ${colouring.legend[colouring.codes[pointed.place] ?? 0]?.value ?? ""}` : "";

  return (
    <div className="stack">
      <Card>
        <div className="map-tools">
          {choices.data && <ColourChoice choices={choices.data} by={by} onChoose={choose} />}
          <LayoutChoice wanted={wanted} isUmap={isUmap} isMade={first.view.is_umap_ready || second.data?.view.is_ready === true} onChoose={setWanted} />
        </div>
        {colours.error && <ErrorNote error={colours.error} />}
        {choices.error && <ErrorNote error={choices.error} />}
        {first.view.note && <p className="quiet">{first.view.note}</p>}
        {asked}
        <div className="map-frame">
          <div className="map-main">
            {state === "missing" ? (
              <p className="note warn">This browser cannot draw the map. The table says what is on it; values can still be selected in the legend.</p>
            ) : (
              <>
                <div className="row map-buttons">
                  <div role="group" aria-label="What dragging does" className="row">
                    <Button aria-pressed={mode === "move"} onClick={() => setMode("move")}>Move</Button>
                    <Button aria-pressed={mode === "select"} onClick={() => setMode("select")}>Draw around samples</Button>
                  </div>
                  <Button aria-label="Zoom in" onClick={() => handle.current?.zoom(1.5)}>+</Button>
                  <Button aria-label="Zoom out" onClick={() => handle.current?.zoom(1 / 1.5)}>−</Button>
                  <Button onClick={() => handle.current?.whole()}>Show all</Button>
                </div>
                <MapCanvas image={image} isShown={isShown} mode={mode} handle={handle} label={`Map of ${counted(shownTotal)} samples. ${KEYS}`} onSelected={select} onPointed={point} onOpened={open} onState={setState}>
                  {state === "lost" && <p className="note warn map-lost">The graphics card is not available for a moment; the map comes back by itself.</p>}
                  {pointed.place >= 0 && <HoverCard row={first.rows[pointed.place] ?? 0} tables={first.view.tables} at={pointed.at} size={pointed.size} words={words} />}
                </MapCanvas>
                <p className="quiet map-hint">Drag to move, turn the wheel to zoom, press a point to open its sample. Drag with Shift held to draw around samples, with Ctrl to add to the selection. {KEYS}</p>
              </>
            )}
            {state === "missing" ? summary : <details className="map-ways"><summary>What is on the map, as a table</summary>{summary}</details>}
          </div>
          <div className="map-side">
            {isReady && <MapLegend title={colouring.title} colouring={colouring} counts={counts} hidden={hidden} ground={ground} onHidden={setHidden} onSelect={selectValue} />}
            <PartChoice points={first} parts={parts} onParts={setParts} />
            <label className="map-size">Point size <input type="range" min={1} max={14} value={pointSize} onChange={(event) => setPointSize(Number(event.target.value))} /></label>
            <OtherSelections onView={() => { const view = handle.current?.view(); if (view) selectBox(view); }} onBox={selectBox} onClear={() => setSelection([])} hasSelection={selection.length > 0} />
          </div>
        </div>
      </Card>
      {selection.length > 0 && !isStatic() && <SelectionPanel rows={rows} mapId={first.view.map_id} tables={first.view.tables} onOpen={openSelected} onClear={() => setSelection([])} />}
    </div>
  );
}

/** Return how large points are at first: the fewer, the larger. */
function startingSize(count: number): number {
  return count > 30_000 ? 3 : count > 5_000 ? 5 : count > 500 ? 7 : 10;
}

function PartChoice({ points, parts, onParts }: { points: MapPoints; parts: ReadonlySet<number>; onParts: (parts: Set<number>) => void }) {
  const toggle = (part: number) => {
    const changed = new Set(parts);
    if (!changed.delete(part)) changed.add(part);
    onParts(changed);
  };
  return (
    <fieldset className="map-legend">
      <legend>Which samples</legend>
      <ul>
        {points.view.part_counts.map((part, place) => part.shown > 0 && (
          <li key={part.name}>
            <label><input type="checkbox" checked={parts.has(place)} onChange={() => toggle(place)} /> <span className="map-value">{part.name}</span></label>
            <span className="number">{counted(part.shown)}</span>
          </li>
        ))}
      </ul>
    </fieldset>
  );
}

type LayoutProps = { wanted: LayoutName; isUmap: boolean; isMade: boolean; onChoose: (layout: LayoutName) => void };

function LayoutChoice({ wanted, isUmap, isMade, onChoose }: LayoutProps) {
  const job = useJob("map");
  const mayChange = useMayChange();
  const isWaiting = wanted === "umap" && !isUmap;
  return (
    <div className="map-layout">
      <fieldset className="row">
        <legend>Arrange by</legend>
        <label><input type="radio" name="layout" checked={wanted === "pca"} onChange={() => onChoose("pca")} /> main differences (PCA)</label>
        <label><input type="radio" name="layout" checked={wanted === "umap"} disabled={!isMade && !mayChange} onChange={() => { onChoose("umap"); if (!isMade && !job.isRunning) job.start({}); }} /> neighbours (UMAP)</label>
      </fieldset>
      {isWaiting && job.job && job.job.state !== "done" && <JobProgress job={job.job} />}
      {isWaiting && job.error && <ErrorNote error={job.error} />}
    </div>
  );
}
