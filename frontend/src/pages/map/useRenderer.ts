import { useCallback, useEffect, useRef, useState, type RefObject } from "react";
import { clipTransform, WHOLE, type Camera, type Size } from "./camera";
import { painterOn, type Painter } from "./painter";

const SWITCH_MILLISECONDS = 800;

export type Scene = { positions: Float32Array; colours: Uint8Array; order: Uint32Array; pointSize: number };
export type RendererState = "starting" | "ready" | "lost" | "missing";

/** Return how much of a movement is done after a share of its time: slow, fast, slow. */
export function eased(share: number): number {
  return share < 0.5 ? 2 * share * share : 1 - 2 * (1 - share) ** 2;
}

function isStill(): boolean {
  return window.matchMedia("(prefers-reduced-motion: reduce)").matches;
}

/** Keep a canvas drawn: a frame is drawn only when something has changed, and points walk to their places in a new layout. */
export function useRenderer(canvas: RefObject<HTMLCanvasElement | null>, image: Scene) {
  const camera = useRef<Camera>(WHOLE);
  const size = useRef<Size>({ width: 1, height: 1 });
  const renderer = useRef<Painter | null>(null);
  const latest = useRef(image);
  const shown = useRef<Float32Array | null>(null);
  const walk = useRef({ begun: 0, isUnderWay: false });
  const frame = useRef(0);
  const [state, setState] = useState<RendererState>("starting");
  const [lives, setLives] = useState(0);
  latest.current = image;

  const redraw = useCallback(() => {
    if (frame.current) return;
    const draw = (now: number) => {
      frame.current = 0;
      const passed = walk.current.isUnderWay ? Math.min(1, (now - walk.current.begun) / SWITCH_MILLISECONDS) : 1;
      if (passed >= 1) walk.current.isUnderWay = false;
      const pixels = (canvas.current?.width ?? 1) / size.current.width;
      const look = { transform: clipTransform(camera.current, size.current), share: eased(Math.max(0, passed)), size: latest.current.pointSize * pixels };
      renderer.current?.draw(look);
      if (passed < 1) redraw();
    };
    frame.current = requestAnimationFrame(draw);
  }, [canvas]);

  useEffect(() => {
    const element = canvas.current;
    if (!element) return undefined;
    const made = painterOn(element);
    renderer.current = made;
    shown.current = null;
    setState(made ? "ready" : "missing");
    const lost = (event: Event) => { event.preventDefault(); setState("lost"); };
    const back = () => setLives((count) => count + 1);
    element.addEventListener("webglcontextlost", lost);
    element.addEventListener("webglcontextrestored", back);
    return () => {
      element.removeEventListener("webglcontextlost", lost);
      element.removeEventListener("webglcontextrestored", back);
      made?.dispose();
      renderer.current = null;
      cancelAnimationFrame(frame.current);
      frame.current = 0;
    };
  }, [canvas, lives]);

  useEffect(() => {
    const before = shown.current?.length === image.positions.length ? shown.current : image.positions;
    renderer.current?.setPlaces(before, image.positions);
    walk.current = { begun: performance.now(), isUnderWay: before !== image.positions && !isStill() };
    shown.current = image.positions;
    redraw();
  }, [image.positions, redraw, state, lives]);

  useEffect(() => {
    renderer.current?.setColours(image.colours, image.order);
    redraw();
  }, [image.colours, image.order, image.pointSize, redraw, state, lives]);

  useEffect(() => {
    const element = canvas.current;
    if (!element) return undefined;
    const fit = () => {
      const box = element.getBoundingClientRect();
      const pixels = Math.min(renderer.current?.sharpest ?? 1, window.devicePixelRatio || 1);
      size.current = { width: Math.max(1, box.width), height: Math.max(1, box.height) };
      const [width, height] = [Math.round(size.current.width * pixels), Math.round(size.current.height * pixels)];
      if (element.width !== width) element.width = width;
      if (element.height !== height) element.height = height;
      redraw();
    };
    const watch = new ResizeObserver(fit);
    watch.observe(element);
    fit();
    return () => watch.disconnect();
  }, [canvas, redraw, state]);

  return { camera, size, redraw, state, painter: renderer.current?.name ?? "" };
}
