/** Points drawn pixel by pixel, for browsers without a graphics card: every point is a small stamp, in the order given. */
import type { Look, Painter } from "./painter";

const SQUARE_UP_TO = 3;
const FULL = 255;

export type Stamp = { reach: number; across: Int32Array; down: Int32Array; cover: Int32Array };

/** Return the pixels that a point of a size covers, and how much of each, from 0 to 256. */
export function stampOf(size: number): Stamp {
  const whole = Math.max(1, Math.round(size));
  const reach = Math.floor(whole / 2);
  const middle = whole % 2 === 0 ? -0.5 : 0;
  const pixels: [number, number, number][] = [];
  for (let y = -reach; y < whole - reach; y += 1) {
    for (let x = -reach; x < whole - reach; x += 1) {
      const cover = whole <= SQUARE_UP_TO ? 1 : Math.min(1, Math.max(0, whole / 2 - Math.hypot(x - middle, y - middle) + 0.25));
      if (cover > 0.02) pixels.push([x, y, Math.round(256 * cover)]);
    }
  }
  const column = (place: 0 | 1 | 2) => Int32Array.from(pixels, (pixel) => pixel[place]);
  return { reach: reach + 1, across: column(0), down: column(1), cover: column(2) };
}

/** Return two colours (little-endian words without transparency) mixed: 0 gives the first, 256 the second. */
export function mixed(under: number, over: number, share: number): number {
  const rest = 256 - share;
  const outer = ((Math.imul(under & 0xff00ff, rest) + Math.imul(over & 0xff00ff, share)) >>> 8) & 0xff00ff;
  const inner = ((((under >>> 8) & 0xff) * rest + ((over >>> 8) & 0xff) * share) >>> 8) & 0xff;
  return (0xff000000 | outer | (inner << 8)) >>> 0;
}

/** Draws points with the processor. */
export class PixelPainter implements Painter {
  readonly sharpest = 1;
  readonly name = "pixels";
  private before: Float32Array = new Float32Array(0);
  private after: Float32Array = new Float32Array(0);
  private words: Uint32Array = new Uint32Array(0);
  private alphas: Uint8Array = new Uint8Array(0);
  private order: Uint32Array = new Uint32Array(0);
  private image: ImageData | null = null;
  private pixels: Uint32Array = new Uint32Array(0);
  private stamp = stampOf(1);
  private stampSize = 1;
  private ground = 0xffffffff;

  /** Make a painter, or return null where a canvas cannot be generated into. */
  static on(canvas: HTMLCanvasElement): PixelPainter | null {
    const context = canvas.getContext("2d", { alpha: false });
    return context ? new PixelPainter(canvas, context) : null;
  }

  private constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly context: CanvasRenderingContext2D,
  ) {}

  /** Set where points are before and after a change of layout. */
  setPlaces(before: Float32Array, after: Float32Array): void {
    [this.before, this.after] = [before, after];
  }

  /** Set the colours of all points, and which of them are drawn in which order. */
  setColours(colours: Uint8Array, order: Uint32Array): void {
    const count = colours.length / 4;
    [this.words, this.alphas, this.order] = [new Uint32Array(count), new Uint8Array(count), order];
    for (let place = 0; place < count; place += 1) {
      this.words[place] = (0xff000000 | ((colours[4 * place + 2] ?? 0) << 16) | ((colours[4 * place + 1] ?? 0) << 8) | (colours[4 * place] ?? 0)) >>> 0;
      this.alphas[place] = colours[4 * place + 3] ?? 0;
    }
    this.ground = groundOf(this.canvas);
  }

  /** Draw one frame. */
  draw(look: Look): void {
    const { width, height } = this.canvas;
    if (this.image?.width !== width || this.image.height !== height) {
      this.image = this.context.createImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    if (this.stampSize !== look.size) [this.stamp, this.stampSize] = [stampOf(look.size), look.size];
    this.pixels.fill(this.ground);
    this.paint(look, width, height);
    this.context.putImageData(this.image, 0, 0);
  }

  /** Let go of the memory. */
  dispose(): void {
    this.image = null;
    this.pixels = new Uint32Array(0);
  }

  private paint(look: Look, width: number, height: number): void {
    const { before, after, order, words, alphas, stamp, pixels } = this;
    const { reach, cover } = stamp;
    const { share } = look;
    const [across, down] = [(look.transform[0] * width) / 2, (-look.transform[1] * height) / 2];
    const [left, top] = [((look.transform[2] + 1) * width) / 2, ((1 - look.transform[3]) * height) / 2];
    const offsets = Int32Array.from(stamp.across, (x, part) => (stamp.down[part] ?? 0) * width + x);
    const count = offsets.length;
    for (const place of order) {
      let x = after[2 * place]!;
      let y = after[2 * place + 1]!;
      if (share < 1) {
        x = before[2 * place]! * (1 - share) + x * share;
        y = before[2 * place + 1]! * (1 - share) + y * share;
      }
      const column = Math.floor(x * across + left);
      const line = Math.floor(y * down + top);
      if (column < reach || line < reach || column >= width - reach || line >= height - reach) {
        if (column > -reach && line > -reach && column < width + reach && line < height + reach) this.pressAtEdge(column, line, place, width, height);
        continue;
      }
      const word = words[place]!;
      const alpha = alphas[place]!;
      const strength = alpha === FULL ? 256 : alpha;
      const middle = line * width + column;
      for (let part = 0; part < count; part += 1) {
        const pixel = middle + offsets[part]!;
        const much = (strength * cover[part]!) >> 8;
        pixels[pixel] = much >= 256 ? word : mixed(pixels[pixel]!, word, much);
      }
    }
  }

  private pressAtEdge(column: number, line: number, place: number, width: number, height: number): void {
    const { pixels, stamp, words, alphas } = this;
    const strength = alphas[place] === FULL ? 256 : (alphas[place] ?? 0);
    for (let part = 0; part < stamp.cover.length; part += 1) {
      const [x, y] = [column + (stamp.across[part] ?? 0), line + (stamp.down[part] ?? 0)];
      if (x < 0 || y < 0 || x >= width || y >= height) continue;
      pixels[y * width + x] = mixed(pixels[y * width + x] ?? 0, words[place] ?? 0, (strength * (stamp.cover[part] ?? 0)) >> 8);
    }
  }
}

/** Return the colour behind a canvas as a little-endian word. */
function groundOf(canvas: HTMLCanvasElement): number {
  const found = /(\d+)\D+(\d+)\D+(\d+)/.exec(window.getComputedStyle(canvas.parentElement ?? canvas).backgroundColor);
  if (!found) return 0xffffffff;
  return (0xff000000 | (Number(found[3]) << 16) | (Number(found[2]) << 8) | Number(found[1])) >>> 0;
}
