/** Two histograms on one axis, right upwards and wrong downwards; drawn from counts, never from samples. */
type Props = { edges: number[]; right: number[]; wrong: number[]; label: string; threshold?: number | null; height?: number; isShare?: boolean };

/** Counts of right (blue, above the line) and wrong (orange, below it) samples in bins; `isShare` makes both as high as each other. */
export function Histogram({ edges, right, wrong, label, threshold, height = 96, isShare = false }: Props) {
  const [mostRight, mostWrong] = [Math.max(1, ...right), Math.max(1, ...wrong)];
  const most = Math.max(mostRight, mostWrong);
  const [first, last] = [edges[0] ?? 0, edges[edges.length - 1] ?? 1];
  const place = (value: number) => Math.min(100, Math.max(0, (100 * (value - first)) / (last - first || 1)));
  const bar = (count: number, bin: number, kind: "right" | "wrong") => {
    const x = place(edges[bin] ?? 0);
    const width = place(edges[bin + 1] ?? 0) - x;
    const size = (49 * count) / (isShare ? (kind === "right" ? mostRight : mostWrong) : most);
    return <rect key={`${kind}${bin}`} className={kind} x={x} width={Math.max(width - 0.25, 0.05)} y={kind === "right" ? 50 - size : 50} height={size} />;
  };
  return (
    <svg className="histogram" viewBox="0 0 100 100" preserveAspectRatio="none" style={{ height }} role="img" aria-label={label}>
      {right.map((count, bin) => bar(count, bin, "right"))}
      {wrong.map((count, bin) => bar(count, bin, "wrong"))}
      <line className="axis" x1="0" x2="100" y1="50" y2="50" vectorEffect="non-scaling-stroke" />
      {threshold !== undefined && threshold !== null && <line className="threshold" x1={place(threshold)} x2={place(threshold)} y1="0" y2="100" vectorEffect="non-scaling-stroke" />}
    </svg>
  );
}
