/** Two stacked histograms on one axis: right upwards, wrong downwards or beside; drawn from counts, never from samples. */
type Props = { edges: number[]; right: number[]; wrong: number[]; label: string; threshold?: number | null; height?: number };

/** Counts of right (blue) and wrong (orange) samples in bins; wrong ones stand in front. */
export function Histogram({ edges, right, wrong, label, threshold, height = 96 }: Props) {
  const most = Math.max(1, ...right, ...wrong);
  const [first, last] = [edges[0] ?? 0, edges[edges.length - 1] ?? 1];
  const place = (value: number) => (100 * (value - first)) / (last - first || 1);
  const bar = (count: number, bin: number, kind: string) => {
    const x = place(edges[bin] ?? 0);
    const width = place(edges[bin + 1] ?? 0) - x;
    return <rect key={`${kind}${bin}`} className={kind} x={x} width={Math.max(width - 0.15, 0.05)} y={100 - (100 * count) / most} height={(100 * count) / most} />;
  };
  return (
    <svg className="histogram" viewBox="0 0 100 100" preserveAspectRatio="none" style={{ height }} role="img" aria-label={label}>
      {right.map((count, bin) => bar(count, bin, "right"))}
      {wrong.map((count, bin) => bar(count, bin, "wrong"))}
      {threshold !== undefined && threshold !== null && <line className="threshold" x1={place(threshold)} x2={place(threshold)} y1="0" y2="100" vectorEffect="non-scaling-stroke" />}
    </svg>
  );
}
