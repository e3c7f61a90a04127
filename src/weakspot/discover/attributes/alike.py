"""Combinations with nearly the same members: the simplest stands for all of them."""

from collections.abc import Sequence

import numpy as np

from weakspot.core.arrays import AnyArray, DoubleArray, IntArray

ALIKE = 0.8
EQUAL_EVIDENCE = 3.0
_ONES = np.array([bin(byte).count("1") for byte in range(256)], dtype=np.uint8)


def collapse_alike(
    members: Sequence[IntArray],
    scores: DoubleArray,
    simplicity: Sequence[tuple[int, int]],
    n_samples: int,
) -> list[int]:
    """Return the places of those that stand for all that are alike (Jaccard), in the order given.

    Args:
        members: rows of the members of each; more evidence first.
        scores: [m] evidence. Of those that are alike, the simplest is taken whose evidence is as good as the best.
        simplicity: of each, smaller is simpler.
        n_samples: how many samples there are.
    """
    sizes = np.array([len(rows) for rows in members])
    bits = np.zeros((len(members), (n_samples + 7) // 8), dtype=np.uint8)
    leaders: list[int] = []
    shown_by: dict[int, int] = {}
    for place, rows in enumerate(members):
        bits[place] = _pack(rows, n_samples)
        near = [
            one
            for one in leaders
            if ALIKE * max(sizes[one], sizes[place]) <= min(sizes[one], sizes[place])
        ]
        common = _ONES[bits[near] & bits[place]].sum(axis=1, dtype=np.int64)
        alike = common >= ALIKE * (sizes[near] + sizes[place] - common) if near else np.zeros(0)
        if not np.any(alike):
            leaders.append(place)
            shown_by[place] = place
            continue
        leader = near[int(np.flatnonzero(alike)[0])]
        is_as_good = scores[place] >= scores[leader] - EQUAL_EVIDENCE
        if is_as_good and simplicity[place] < simplicity[shown_by[leader]]:
            shown_by[leader] = place
    return [shown_by[leader] for leader in leaders]


def _pack(rows: IntArray, n_samples: int) -> AnyArray:
    inside = np.zeros(n_samples, dtype=np.bool_)
    inside[rows] = True
    return np.packbits(inside)
