import { useCallback, useEffect, useRef, useState, type RefObject } from "react";
import { fitted, isEnlarged, moved, zoomed, type Point, type Size, type Zoom } from "./zoom";

const SWIPE = 60;
const DRAGGED = 4;

export type ZoomHandle = { zoom: Zoom; frame: Size; by: (factor: number) => void; fit: () => void; full: () => void; pan: (by: Point) => void };

/** Zoom and pan an image in a frame: wheel, drag, pinch, double click; where nothing can be panned, a swipe goes on. */
export function useZoom(frame: RefObject<HTMLElement | null>, image: Size, onSwipe: (by: number) => void): ZoomHandle {
  const [size, setSize] = useState<Size>({ width: 0, height: 0 });
  const [zoom, setZoom] = useState<Zoom>({ scale: 1, x: 0, y: 0 });
  const now = useRef({ size, zoom, image, onSwipe });
  useEffect(() => {
    now.current = { size, zoom, image, onSwipe };
  });
  const change = useCallback((make: (zoom: Zoom, frame: Size, image: Size) => Zoom) => setZoom((old) => make(old, now.current.size, now.current.image)), []);
  const fit = useCallback(() => change((_, box, whole) => fitted(box, whole)), [change]);
  const by = useCallback((factor: number, at: Point = { x: 0, y: 0 }) => change((old, box, whole) => zoomed(old, factor, at, box, whole)), [change]);
  const full = useCallback(() => change((old, box, whole) => zoomed(old, 1 / old.scale, { x: 0, y: 0 }, box, whole)), [change]);
  const pan = useCallback((step: Point) => change((old, box, whole) => moved(old, step, box, whole)), [change]);
  useEffect(() => setZoom(fitted(size, { width: image.width, height: image.height })), [size, image.width, image.height]);
  useEffect(() => {
    const element = frame.current;
    if (!element) return undefined;
    const watch = new ResizeObserver(([entry]) => {
      if (entry) setSize({ width: entry.contentRect.width, height: entry.contentRect.height });
    });
    watch.observe(element);
    return () => watch.disconnect();
  }, [frame]);
  useEffect(() => {
    const element = frame.current;
    return element ? listen(element, () => now.current, by, pan, fit) : undefined;
  }, [frame, by, pan, fit]);
  return { zoom, frame: size, by, fit, full, pan };
}

type Now = { size: Size; zoom: Zoom; image: Size; onSwipe: (by: number) => void };

/** Follow mouse, fingers and wheel on an element; return how to stop. */
function listen(element: HTMLElement, now: () => Now, by: (factor: number, at?: Point) => void, pan: (by: Point) => void, fit: () => void): () => void {
  const held = new Map<number, Point>();
  let start: Point | null = null;
  const middle = (event: { clientX: number; clientY: number }): Point => {
    const box = element.getBoundingClientRect();
    return { x: event.clientX - box.left - box.width / 2, y: event.clientY - box.top - box.height / 2 };
  };
  const down = (event: PointerEvent) => {
    if (event.button !== 0 || (event.target as Element).closest("button")) return;
    element.setPointerCapture(event.pointerId);
    held.set(event.pointerId, middle(event));
    start = held.size === 1 ? middle(event) : null;
  };
  const move = (event: PointerEvent) => {
    const before = held.get(event.pointerId);
    if (!before) return;
    const after = middle(event);
    const other = [...held].find(([pointer]) => pointer !== event.pointerId)?.[1];
    if (other) {
      const apart = (point: Point) => Math.hypot(point.x - other.x, point.y - other.y);
      by(apart(after) / Math.max(1, apart(before)), { x: (after.x + other.x) / 2, y: (after.y + other.y) / 2 });
    }
    pan({ x: (after.x - before.x) / held.size, y: (after.y - before.y) / held.size });
    held.set(event.pointerId, after);
  };
  const up = (event: PointerEvent) => {
    const at = middle(event);
    const { zoom, size, image, onSwipe } = now();
    const across = start && held.size === 1 ? at.x - start.x : 0;
    if (event.type === "pointerup" && Math.abs(across) > SWIPE && !isEnlarged(zoom, size, image)) onSwipe(across < 0 ? 1 : -1);
    if (Math.abs(across) > DRAGGED) start = null;
    held.delete(event.pointerId);
  };
  const wheel = (event: WheelEvent) => {
    event.preventDefault();
    by(Math.exp(-Math.sign(event.deltaY) * Math.min(60, Math.abs(event.deltaY)) * 0.004), middle(event));
  };
  const twice = (event: MouseEvent) => {
    if ((event.target as Element).closest("button")) return;
    const { zoom, size, image } = now();
    if (isEnlarged(zoom, size, image)) fit();
    else by(Math.max(2, 1 / zoom.scale), middle(event));
  };
  element.addEventListener("pointerdown", down);
  element.addEventListener("pointermove", move);
  element.addEventListener("pointerup", up);
  element.addEventListener("pointercancel", up);
  element.addEventListener("wheel", wheel, { passive: false });
  element.addEventListener("dblclick", twice);
  return () => {
    element.removeEventListener("pointerdown", down);
    element.removeEventListener("pointermove", move);
    element.removeEventListener("pointerup", up);
    element.removeEventListener("pointercancel", up);
    element.removeEventListener("wheel", wheel);
    element.removeEventListener("dblclick", twice);
  };
}
