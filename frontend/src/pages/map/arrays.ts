/** Numbers that the server sends as text. */

function bytesOf(text: string): ArrayBuffer {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let place = 0; place < raw.length; place += 1) bytes[place] = raw.charCodeAt(place);
  return bytes.buffer;
}

/** Return little-endian float32 numbers; pages run on little-endian machines only. */
export function floats(text: string): Float32Array {
  return new Float32Array(bytesOf(text));
}

/** Return little-endian int32 numbers. */
export function integers(text: string): Int32Array {
  return new Int32Array(bytesOf(text));
}

/** Return little-endian uint16 numbers. */
export function codes(text: string): Uint16Array {
  return new Uint16Array(bytesOf(text));
}

/** Return bytes. */
export function bytes(text: string): Uint8Array {
  return new Uint8Array(bytesOf(text));
}
