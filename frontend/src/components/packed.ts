/** Columns of numbers that come as base64 of little-endian bytes. */

function bytes(text: string): Uint8Array<ArrayBuffer> {
  const raw = atob(text);
  const found = new Uint8Array(raw.length);
  for (let place = 0; place < raw.length; place += 1) found[place] = raw.charCodeAt(place);
  return found;
}

/** Whole numbers of one byte. */
export function unpackedBytes(text: string): Uint8Array {
  return bytes(text);
}

/** Whole numbers of four bytes. */
export function unpackedInts(text: string): Int32Array {
  return new Int32Array(bytes(text).buffer);
}

/** Numbers of four bytes. */
export function unpackedFloats(text: string): Float32Array {
  return new Float32Array(bytes(text).buffer);
}
