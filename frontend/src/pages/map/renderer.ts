/** Points drawn by the graphics card, and nothing else: one buffer of places for each of two layouts, one of colours, one of the order. */
import type { Look, Painter } from "./painter";

const VERTEX = `#version 300 es
precision highp float;
layout(location = 0) in vec2 before;
layout(location = 1) in vec2 after;
layout(location = 2) in vec4 colour;
uniform vec4 transform;
uniform float share;
uniform float size;
out vec4 shade;
void main() {
  vec2 place = mix(before, after, share) * transform.xy + transform.zw;
  gl_Position = vec4(place, 0.0, 1.0);
  gl_PointSize = size;
  shade = vec4(colour.rgb * colour.a, colour.a);
}`;
const FRAGMENT = `#version 300 es
precision highp float;
in vec4 shade;
uniform float size;
out vec4 drawn;
void main() {
  float away = length(gl_PointCoord - 0.5) * size;
  drawn = shade * (1.0 - smoothstep(0.5 * size - 1.0, 0.5 * size, away));
}`;
/** Small points are squares of a few pixels anyway; drawing them without rounding saves most of the work. */
const SQUARE_FRAGMENT = `#version 300 es
precision highp float;
in vec4 shade;
out vec4 drawn;
void main() { drawn = shade; }`;
const ROUND_FROM = 3;

type Program = { program: WebGLProgram; transform: WebGLUniformLocation | null; share: WebGLUniformLocation | null; size: WebGLUniformLocation | null };

/** Draws points with WebGL 2. */
export class PointRenderer implements Painter {
  readonly sharpest = 2;
  readonly name = "graphics card";
  private readonly gl: WebGL2RenderingContext;
  private readonly round: Program;
  private readonly square: Program;
  private readonly buffers: { before: WebGLBuffer; after: WebGLBuffer; colours: WebGLBuffer; order: WebGLBuffer };
  private count = 0;

  /** Make a renderer, or return null where the browser has no WebGL 2. */
  static on(canvas: HTMLCanvasElement): PointRenderer | null {
    const gl = canvas.getContext("webgl2", { alpha: true, antialias: false, depth: false, stencil: false, preserveDrawingBuffer: false, powerPreference: "high-performance" });
    try {
      return gl ? new PointRenderer(gl) : null;
    } catch {
      return null;
    }
  }

  private constructor(gl: WebGL2RenderingContext) {
    this.gl = gl;
    this.round = programOf(gl, FRAGMENT);
    this.square = programOf(gl, SQUARE_FRAGMENT);
    this.buffers = { before: gl.createBuffer(), after: gl.createBuffer(), colours: gl.createBuffer(), order: gl.createBuffer() };
    this.attribute(0, this.buffers.before, 2, gl.FLOAT, false);
    this.attribute(1, this.buffers.after, 2, gl.FLOAT, false);
    this.attribute(2, this.buffers.colours, 4, gl.UNSIGNED_BYTE, true);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.buffers.order);
    gl.disable(gl.DEPTH_TEST);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  /** Set where points are before and after a change of layout. */
  setPlaces(before: Float32Array, after: Float32Array): void {
    this.fill(this.buffers.before, before);
    this.fill(this.buffers.after, after);
  }

  /** Set the colours of all points, and which of them are drawn in which order. */
  setColours(colours: Uint8Array, order: Uint32Array): void {
    this.fill(this.buffers.colours, colours);
    this.gl.bufferData(this.gl.ELEMENT_ARRAY_BUFFER, order, this.gl.STATIC_DRAW);
    this.count = order.length;
  }

  /** Draw one frame; the size of points is in pixels of the screen. */
  draw(look: Look): void {
    const { gl } = this;
    if (gl.isContextLost()) return;
    const used = look.size > ROUND_FROM ? this.round : this.square;
    gl.viewport(0, 0, gl.drawingBufferWidth, gl.drawingBufferHeight);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.useProgram(used.program);
    gl.uniform4f(used.transform, ...look.transform);
    gl.uniform1f(used.share, look.share);
    gl.uniform1f(used.size, look.size);
    if (this.count) gl.drawElements(gl.POINTS, this.count, gl.UNSIGNED_INT, 0);
  }

  /** Give the memory of the graphics card back. */
  dispose(): void {
    for (const buffer of Object.values(this.buffers)) this.gl.deleteBuffer(buffer);
    for (const used of [this.round, this.square]) this.gl.deleteProgram(used.program);
  }

  private attribute(place: number, buffer: WebGLBuffer, width: number, kind: number, isNormalised: boolean): void {
    this.gl.bindBuffer(this.gl.ARRAY_BUFFER, buffer);
    this.gl.enableVertexAttribArray(place);
    this.gl.vertexAttribPointer(place, width, kind, isNormalised, 0, 0);
  }

  private fill(buffer: WebGLBuffer, content: Float32Array | Uint8Array): void {
    this.gl.bindBuffer(this.gl.ARRAY_BUFFER, buffer);
    this.gl.bufferData(this.gl.ARRAY_BUFFER, content, this.gl.STATIC_DRAW);
  }
}

function programOf(gl: WebGL2RenderingContext, fragment: string): Program {
  const program = gl.createProgram();
  for (const [kind, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, fragment]] as const) {
    const shader = gl.createShader(kind);
    if (!shader) throw new Error("The graphics card gives no shader.");
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
    gl.deleteShader(shader);
  }
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program) ?? "The shaders do not fit.");
  const uniform = (name: string) => gl.getUniformLocation(program, name);
  return { program, transform: uniform("transform"), share: uniform("share"), size: uniform("size") };
}
