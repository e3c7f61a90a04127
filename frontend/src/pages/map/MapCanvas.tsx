import { useCallback, useEffect, useImperativeHandle, useMemo, useRef, useState, type KeyboardEvent, type PointerEvent, type ReactNode, type Ref } from "react";
import { inView, panned, pixelsPerUnit, toMap, WHOLE, zoomed, type Box, type Camera, type Point, type Size } from "./camera";
import { pointsInside, thinned } from "./lasso";
import { gridOf, nearest } from "./nearest";
import { useRenderer, type Scene, type RendererState } from "./useRenderer";

const REACH = 9;
const CLICK_REACH = 4;
const LEAST_STEP = 4;
const KEY_PAN = 60;
const KEY_ZOOM = 1.3;

export type MapHandle = { zoom: (factor: number) => void; whole: () => void; view: () => Box };
/** The point under the pointer (-1 for none), where it is on the canvas, and how large the canvas is. */
export type Pointed = { place: number; at: Point; size: Size };
export type Mode = "move" | "select";
type Props = {
  image: Scene;
  isShown: Uint8Array;
  mode: Mode;
  label: string;
  handle: Ref<MapHandle>;
  onSelected: (places: number[], isAdded: boolean) => void;
  onPointed: (pointed: Pointed) => void;
  onOpened: (place: number) => void;
  onState: (state: RendererState) => void;
  children?: ReactNode;
};
type Drag = { kind: "move" | "select"; last: Point; start: Point; outline: Point[] };

/** The drawn map: drag to move, wheel to zoom, draw around points to select them; keys do the same. */
export function MapCanvas({ image, isShown, mode, label, handle, onSelected, onPointed, onOpened, onState, children }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const { camera, size, redraw, state, painter } = useRenderer(canvas, image);
  const grid = useMemo(() => gridOf(image.positions), [image.positions]);
  const drag = useRef<Drag | null>(null);
  const [outline, setOutline] = useState<Point[]>([]);
  useEffect(() => onState(state), [state, onState]);

  const look = useCallback((changed: Camera) => { camera.current = changed; redraw(); }, [camera, redraw]);
  const zoom = useCallback((factor: number, at?: Point) => {
    look(zoomed(camera.current, factor, at ?? { x: size.current.width / 2, y: size.current.height / 2 }, size.current));
  }, [camera, look, size]);
  useImperativeHandle(handle, () => ({ zoom, whole: () => look(WHOLE), view: () => inView(camera.current, size.current) }), [zoom, look, camera, size]);

  useEffect(() => {
    const element = canvas.current;
    if (!element) return undefined;
    const zoomByWheel = (event: globalThis.WheelEvent) => {
      event.preventDefault();
      const lines = event.deltaMode === 1 ? 16 : 1;
      const box = element.getBoundingClientRect();
      zoom(Math.exp(-event.deltaY * lines * 0.0016), { x: event.clientX - box.left, y: event.clientY - box.top });
    };
    element.addEventListener("wheel", zoomByWheel, { passive: false });
    return () => element.removeEventListener("wheel", zoomByWheel);
  }, [zoom]);

  const placeOf = (event: PointerEvent): Point => {
    const box = event.currentTarget.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const pointAt = (place: Point): number => {
    const here = toMap(place, camera.current, size.current);
    return nearest(grid, here.x, here.y, REACH / pixelsPerUnit(camera.current, size.current), isShown);
  };

  const down = (event: PointerEvent<HTMLCanvasElement>) => {
    if (event.button !== 0) return;
    const at = placeOf(event);
    const kind = (mode === "select") !== event.shiftKey ? "select" : "move";
    drag.current = { kind, last: at, start: at, outline: [at] };
    try {
      event.currentTarget.setPointerCapture(event.pointerId);
    } catch {
      // A pointer that has just gone cannot be captured; the drag then ends at the edge.
    }
    onPointed({ place: -1, at, size: size.current });
  };
  const move = (event: PointerEvent<HTMLCanvasElement>) => {
    const at = placeOf(event);
    const held = drag.current;
    if (!held) {
      onPointed({ place: pointAt(at), at, size: size.current });
      return;
    }
    if (held.kind === "move") look(panned(camera.current, at.x - held.last.x, at.y - held.last.y, size.current));
    else {
      held.outline = thinned([...held.outline, at], LEAST_STEP);
      setOutline(held.outline);
    }
    held.last = at;
  };
  const up = (event: PointerEvent<HTMLCanvasElement>) => {
    const held = drag.current;
    drag.current = null;
    setOutline([]);
    if (!held) return;
    if (Math.hypot(held.last.x - held.start.x, held.last.y - held.start.y) < CLICK_REACH && held.outline.length < LEAST_STEP) {
      const place = pointAt(held.start);
      if (place >= 0) onOpened(place);
      return;
    }
    if (held.kind === "select") {
      const around = held.outline.map((point) => toMap(point, camera.current, size.current));
      onSelected(pointsInside(image.positions, isShown, around), event.ctrlKey || event.metaKey);
    }
  };
  const cancel = () => { drag.current = null; setOutline([]); };

  const pressed = (event: KeyboardEvent) => {
    const steps: Record<string, [number, number]> = { ArrowLeft: [KEY_PAN, 0], ArrowRight: [-KEY_PAN, 0], ArrowUp: [0, KEY_PAN], ArrowDown: [0, -KEY_PAN] };
    const step = steps[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (step) look(panned(camera.current, step[0], step[1], size.current));
    else if (event.key === "+" || event.key === "=") zoom(KEY_ZOOM);
    else if (event.key === "-") zoom(1 / KEY_ZOOM);
    else if (event.key === "0") look(WHOLE);
    else if (event.key === "Escape") onSelected([], false);
    else return;
    event.preventDefault();
  };

  return (
    <div className="map-box">
      <canvas
        ref={canvas}
        className={`map-canvas ${mode}`}
        tabIndex={0}
        role="application"
        data-painter={painter}
        aria-label={label}
        onPointerDown={down}
        onPointerMove={move}
        onPointerUp={up}
        onPointerCancel={cancel}
        onPointerLeave={() => { if (!drag.current) onPointed({ place: -1, at: { x: 0, y: 0 }, size: size.current }); }}
        onKeyDown={pressed}
      />
      {outline.length > 1 && (
        <svg className="map-outline" aria-hidden="true">
          <polygon points={outline.map((point) => `${point.x},${point.y}`).join(" ")} />
        </svg>
      )}
      {children}
    </div>
  );
}
