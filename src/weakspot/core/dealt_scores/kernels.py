"""The compiled loop of dealing; imported on first use only."""

from weakspot.core.arrays import DoubleArray, IntArray
from weakspot.core.compiled import kernel


@kernel()
def deal(
    uniforms: DoubleArray,
    order: IntArray,
    bins: IntArray,
    scores: DoubleArray,
    entries: tuple[IntArray, IntArray, DoubleArray],
    sums: DoubleArray,
) -> None:
    """Put scores that are not zero on groups drawn without replacement, and add them up for every membership.

    Args:
        uniforms: [b, f] numbers in [0, 1), one for every score of every draw.
        order: [g] groups, those of a bin beside each other; is shuffled, and any order is as good to begin with.
        bins: [k, 4] first and last+1 place in `order`, and in `scores`, of every bin.
        scores: [f] not zero, those of a bin beside each other.
        entries: where the memberships of every group start [g + 1]; which membership [e], and how much of the group it has [e].
        sums: [b, m] zeros, where the sums are written.
    """
    starts, numbers, shares = entries
    for draw in range(uniforms.shape[0]):
        for one in range(len(bins)):
            first, last = bins[one, 0], bins[one, 1]
            for place in range(bins[one, 3] - bins[one, 2]):
                number = bins[one, 2] + place
                here = first + place
                there = here + int(uniforms[draw, number] * (last - here))
                order[here], order[there] = order[there], order[here]
                for entry in range(starts[order[here]], starts[order[here] + 1]):
                    sums[draw, numbers[entry]] += scores[number] * shares[entry]
