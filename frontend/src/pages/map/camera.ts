/** Where the map is looked at from. The map reaches from -1 to 1 in both directions; y goes up. */

export type Camera = { x: number; y: number; zoom: number };
export type Size = { width: number; height: number };
export type Point = { x: number; y: number };
export type Box = { left: number; right: number; bottom: number; top: number };

export const WHOLE: Camera = { x: 0, y: 0, zoom: 1 };
const LEAST_ZOOM = 0.5;
const MOST_ZOOM = 400;
const MARGIN = 0.96;

/** Return how many pixels one unit of the map takes. */
export function pixelsPerUnit(camera: Camera, size: Size): number {
  return (camera.zoom * MARGIN * Math.min(size.width, size.height)) / 2;
}

/** Return where a point of the map is on the screen, in pixels from the upper left corner. */
export function toScreen(point: Point, camera: Camera, size: Size): Point {
  const scale = pixelsPerUnit(camera, size);
  return { x: size.width / 2 + (point.x - camera.x) * scale, y: size.height / 2 - (point.y - camera.y) * scale };
}

/** Return which point of the map is at a place of the screen. */
export function toMap(place: Point, camera: Camera, size: Size): Point {
  const scale = pixelsPerUnit(camera, size);
  return { x: camera.x + (place.x - size.width / 2) / scale, y: camera.y - (place.y - size.height / 2) / scale };
}

/** Return the camera moved by so many pixels. */
export function panned(camera: Camera, right: number, down: number, size: Size): Camera {
  const scale = pixelsPerUnit(camera, size);
  return held({ ...camera, x: camera.x - right / scale, y: camera.y + down / scale });
}

/** Return the camera so many times nearer, with the point under a place of the screen staying there. */
export function zoomed(camera: Camera, factor: number, at: Point, size: Size): Camera {
  const fixed = toMap(at, camera, size);
  const zoom = Math.min(MOST_ZOOM, Math.max(LEAST_ZOOM, camera.zoom * factor));
  const change = camera.zoom / zoom;
  return held({ zoom, x: fixed.x - (fixed.x - camera.x) * change, y: fixed.y - (fixed.y - camera.y) * change });
}

/** Return the part of the map that is in view. */
export function inView(camera: Camera, size: Size): Box {
  const corner = toMap({ x: 0, y: 0 }, camera, size);
  const other = toMap({ x: size.width, y: size.height }, camera, size);
  return { left: corner.x, right: other.x, bottom: other.y, top: corner.y };
}

/** Return what a point of the map is multiplied by and moved by to come to the corners of the screen, from -1 to 1. */
export function clipTransform(camera: Camera, size: Size): [number, number, number, number] {
  const scale = pixelsPerUnit(camera, size);
  const [wide, high] = [(2 * scale) / size.width, (2 * scale) / size.height];
  return [wide, high, -camera.x * wide, -camera.y * high];
}

function held(camera: Camera): Camera {
  return { zoom: camera.zoom, x: Math.min(1.2, Math.max(-1.2, camera.x)), y: Math.min(1.2, Math.max(-1.2, camera.y)) };
}
