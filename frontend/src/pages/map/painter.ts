/** Who draws points: the graphics card where there is one; otherwise a loop over pixels, which is faster than imitating a card. */
import { PixelPainter } from "./pixelPainter";
import { PointRenderer } from "./renderer";

/** How points are looked at: what takes places to the corners of the canvas, how far a change of layout is, and their size in pixels. */
export type Look = { transform: readonly [number, number, number, number]; share: number; size: number };

/** Draws points into a canvas. */
export type Painter = {
  /** How many pixels of the canvas a pixel of the page may take. */
  readonly sharpest: number;
  readonly name: "graphics card" | "pixels";
  setPlaces: (before: Float32Array, after: Float32Array) => void;
  setColours: (colours: Uint8Array, order: Uint32Array) => void;
  draw: (look: Look) => void;
  dispose: () => void;
};

const IMITATED = /swiftshader|llvmpipe|softpipe|software|basic render/i;
let hasCard: boolean | null = null;

/** Return whether a name that a browser gives its renderer means that the processor imitates a graphics card. */
export function isImitated(name: string): boolean {
  return IMITATED.test(name);
}

/** Return who draws into a canvas, or null if nobody can. */
export function painterOn(canvas: HTMLCanvasElement): Painter | null {
  hasCard ??= cardFound();
  return (hasCard ? PointRenderer.on(canvas) : null) ?? PixelPainter.on(canvas);
}

function cardFound(): boolean {
  const gl = document.createElement("canvas").getContext("webgl2", { failIfMajorPerformanceCaveat: true });
  if (!gl) return false;
  const named = gl.getExtension("WEBGL_debug_renderer_info");
  const name = String(gl.getParameter(named ? named.UNMASKED_RENDERER_WEBGL : gl.RENDERER));
  gl.getExtension("WEBGL_lose_context")?.loseContext();
  return !isImitated(name);
}
