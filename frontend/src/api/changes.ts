/** The last change that this page knows of: sent with everything that changes something, so that nobody overwrites what they have not seen. */

export const SEEN = "X-Seen-Change";

let seen: number | null = null;
let own = 0;

/** Return the number of the last change that this page knows of; null before it was told one. */
export function seenChange(): number | null {
  return seen;
}

/** Remember that there was a change. */
export function rememberChange(version: number): void {
  seen = Math.max(seen ?? 0, version);
}

/** Remember a change that was made by this page, which asks for what it needs by itself. */
export function rememberOwnChange(version: number): void {
  own = Math.max(own, version);
  rememberChange(version);
}

/** Return whether a change was made by this page. */
export function isOwnChange(version: number): boolean {
  return version === own;
}
