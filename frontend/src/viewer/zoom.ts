/** Where an image lies in its frame: how large, and how far from the middle. */

export type Size = { width: number; height: number };
export type Point = { x: number; y: number };
/** `scale` is screen pixels per pixel of the image; `x` and `y` are from the middle of the frame to the middle of the image. */
export type Zoom = { scale: number; x: number; y: number };

const LARGEST = 64;
const ENLARGED = 12;
const STEPS = [512, 1024, 2048, 4096];

/** Return the scale at which the whole image is seen; small ones are enlarged. */
export function fitScale(frame: Size, image: Size): number {
  if (!image.width || !image.height || !frame.width || !frame.height) return 1;
  return Math.min(frame.width / image.width, frame.height / image.height, ENLARGED);
}

export function fitted(frame: Size, image: Size): Zoom {
  return { scale: fitScale(frame, image), x: 0, y: 0 };
}

/** Return the image larger or smaller by a factor; what is at a point of the frame, counted from its middle, stays there. */
export function zoomed(zoom: Zoom, factor: number, at: Point, frame: Size, image: Size): Zoom {
  const scale = Math.min(LARGEST, Math.max(fitScale(frame, image), zoom.scale * factor));
  const by = scale / zoom.scale;
  return kept({ scale, x: at.x - (at.x - zoom.x) * by, y: at.y - (at.y - zoom.y) * by }, frame, image);
}

export function moved(zoom: Zoom, by: Point, frame: Size, image: Size): Zoom {
  return kept({ ...zoom, x: zoom.x + by.x, y: zoom.y + by.y }, frame, image);
}

/** Whether more is shown than the whole image at once. */
export function isEnlarged(zoom: Zoom, frame: Size, image: Size): boolean {
  return zoom.scale > fitScale(frame, image) * 1.001;
}

/** Return which size to ask the server for: the smallest step that is sharp on this screen, null for the image itself. */
export function neededSide(zoom: Zoom, image: Size, density: number): number | null {
  const longest = Math.max(image.width, image.height);
  const wanted = longest * zoom.scale * density;
  const side = STEPS.find((step) => step >= wanted * 0.9);
  return side === undefined || side >= longest ? null : side;
}

function kept(zoom: Zoom, frame: Size, image: Size): Zoom {
  const room = (inner: number, outer: number) => Math.max(0, (inner * zoom.scale - outer) / 2);
  const bounded = (value: number, most: number) => (most === 0 ? 0 : Math.min(most, Math.max(-most, value)));
  return { scale: zoom.scale, x: bounded(zoom.x, room(image.width, frame.width)), y: bounded(zoom.y, room(image.height, frame.height)) };
}
