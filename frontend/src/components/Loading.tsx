/** Something is on its way; said aloud to screen readers. */
export function Loading({ what }: { what: string }) {
  return <p role="status" className="loading">Loading {what} …</p>;
}
