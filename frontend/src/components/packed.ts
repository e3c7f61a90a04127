/** Columns of numbers that the server sends as base64 of little-endian bytes. */

/** Return bytes. */
export function bytes(text: string): Uint8Array<ArrayBuffer> {
  const raw = atob(text);
  const decoded = new Uint8Array(raw.length);
  for (let place = 0; place < raw.length; place += 1) decoded[place] = raw.charCodeAt(place);
  return decoded;
}

/** Return uint16 numbers. */
export function codes(text: string): Uint16Array {
  return new Uint16Array(bytes(text).buffer);
}

/** Return int32 numbers. */
export function integers(text: string): Int32Array {
  return new Int32Array(bytes(text).buffer);
}

/** Return float32 numbers. */
export function floats(text: string): Float32Array {
  return new Float32Array(bytes(text).buffer);
}
