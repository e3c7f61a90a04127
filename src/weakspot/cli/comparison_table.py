"""A comparison of classifiers, as the terminal shows it."""

from collections.abc import Iterator

from weakspot.compare.comparison import Comparison

MOST_SHOWN = 8


def comparison_lines(comparison: Comparison) -> Iterator[str]:
    """Yield the comparison line by line."""
    width = max(len(name) for name in comparison.models)
    yield f"{comparison.n_samples} samples that all classifiers were measured on."
    yield "Shared failures (intersection over union):"
    for name, line in zip(comparison.models, comparison.overlaps, strict=True):
        rate = comparison.failure_rates[name]
        yield f"  {name:<{width}}  fails {100 * rate:3.0f} %  " + "  ".join(f"{value:.2f}" for value in line)
    yield f"Families: {'; '.join(', '.join(family) for family in comparison.families)}"
    for slice_id in dict.fromkeys(one.slice_id for one in comparison.slices):
        entries = [one for one in comparison.slices if one.slice_id == slice_id]
        yield f"{entries[0].title} (found on {entries[0].found_on}, {entries[0].n_inside} samples)"
        for one in entries:
            says = "holds" if one.holds else "does not hold"
            rate, low, high = (100 * part for part in (one.rate_inside, one.interval_inside.low, one.interval_inside.high))
            yield f"  {one.model:<{width}}  fails {rate:.0f} % ({low:.0f}-{high:.0f}), rest {100 * one.rate_outside:.0f} %: {says}"
    clear = [pair for pair in comparison.differences if pair.interval.low > 0 or pair.interval.high < 0][:MOST_SHOWN]
    if clear:
        yield "Where two classifiers differ most:"
    for pair in clear:
        points, low, high = (100 * part for part in (pair.difference, pair.interval.low, pair.interval.high))
        against = f"{pair.first} fails {points:+.0f} points against {pair.second}"
        yield f"  {pair.title}: {against} ({low:+.0f} to {high:+.0f}, q {pair.q_value:.2g})"
    yield from comparison.notes
