"""Failures dealt out anew and folds, such that samples of a group stay together.

Methods that shuffle failures or judge samples by others take these: an object seen five times would else be judged by its own
images, and five failures of one object would count as five coincidences.
"""

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray, IntArray

LEAST_PER_BIN = 5
LARGEST_BLOCK = 1 << 22


def size_bins(sizes: IntArray) -> list[IntArray]:
    """Return the places of groups of about the same size; a bin of very few is taken together with the next smaller one.

    >>> [own.tolist() for own in size_bins(np.array([1, 1, 1, 1, 1, 3, 4, 4, 3, 4, 9]))]
    [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9, 10]]
    """
    order = np.ceil(np.log2(sizes)).astype(np.int64)
    bins: list[IntArray] = []
    for number in np.unique(order):
        own = np.flatnonzero(order == number)
        if bins and min(len(own), len(bins[-1])) < LEAST_PER_BIN:
            bins[-1] = np.concatenate([bins[-1], own])
        else:
            bins.append(own)
    return bins


def deal_anew(
    failed: BoolArray, groups: IntArray, n_draws: int, random: np.random.Generator
) -> BoolArray:
    """Return as many failures as there are, dealt out anew [n_draws, n], so that they gather in groups as they do.

    Shares of failures are permuted among groups of about the same size; which images of a group fail is drawn. Where sizes differ,
    the number of failures is kept by emptying or filling groups, one after the other, until it is right again.

    Args:
        failed: which samples failed [n].
        groups: number of the group of every sample [n].
        n_draws: how often.
        random: where chance comes from.

    >>> dealt = deal_anew(np.arange(6) < 2, np.array([0, 0, 1, 1, 2, 2]), 50, np.random.default_rng(0))
    >>> sorted({tuple(np.flatnonzero(one).tolist()) for one in dealt})
    [(0, 1), (2, 3), (4, 5)]
    """
    codes = _in_order_of_appearance(groups)
    sizes = np.bincount(codes)
    shares = np.bincount(codes, weights=failed) / sizes
    step = max(1, LARGEST_BLOCK // max(len(failed), 1))
    blocks = [np.zeros((0, len(failed)), dtype=np.bool_)]
    for start in range(0, n_draws, step):
        counts = _dealt_counts(shares, sizes, int(failed.sum()), min(step, n_draws - start), random)
        blocks.append(_chosen_in_groups(codes, sizes, counts, random))
    return np.concatenate(blocks)


def deal_folds(groups: IntArray, n_folds: int, random: np.random.Generator) -> IntArray:
    """Return the fold of every sample [n]; a group is in one fold, and folds have about as many groups.

    >>> folds = deal_folds(np.array([0, 0, 1, 1, 2, 2]), 3, np.random.default_rng(0))
    >>> folds[::2].tolist() == folds[1::2].tolist(), sorted(set(folds.tolist()))
    (True, [0, 1, 2])
    """
    codes = _in_order_of_appearance(groups)
    return (random.permutation(int(codes.max(initial=-1)) + 1) % n_folds)[codes]


def dealt_first(dealt: BoolArray, groups: IntArray, random: np.random.Generator) -> IntArray:
    """Return orders of all samples [b, n] with the failures [b, n] first, those of a group one after the other."""
    codes = _in_order_of_appearance(groups)
    n_groups = int(codes.max(initial=-1)) + 1
    ranks = random.permuted(np.tile(np.arange(n_groups), (len(dealt), 1)), axis=1)
    keys = np.take(ranks, codes, axis=1) + n_groups * ~dealt
    return np.argsort(keys, axis=1, kind="stable")


def _in_order_of_appearance(groups: IntArray) -> IntArray:
    """Return the groups numbered along the samples: what is drawn must not depend on how a table numbered them."""
    _, first, inverse = np.unique(groups, return_index=True, return_inverse=True)
    place = np.empty(len(first), dtype=np.int64)
    place[np.argsort(first, kind="stable")] = np.arange(len(first))
    return place[inverse]


def _dealt_counts(
    shares: DoubleArray, sizes: IntArray, n_failed: int, n_draws: int, random: np.random.Generator
) -> IntArray:
    """Return how many samples of every group fail [n_draws, g]."""
    counts = np.empty((n_draws, len(sizes)), dtype=np.int64)
    for own in size_bins(sizes):
        drawn = random.permuted(np.broadcast_to(shares[own], (n_draws, len(own))), axis=1)
        counts[:, own] = np.rint(drawn * sizes[own]).astype(np.int64)
    missing = n_failed - counts.sum(axis=1)
    if missing.any():
        order = random.permuted(np.tile(np.arange(len(sizes)), (n_draws, 1)), axis=1)
        rows = np.arange(n_draws)[:, None]
        ordered = counts[rows, order]
        room = np.where(missing[:, None] > 0, sizes[order] - ordered, ordered)
        before = np.cumsum(room, axis=1) - room
        taken = np.clip(np.abs(missing)[:, None] - before, 0, room)
        counts[rows, order] = ordered + np.sign(missing)[:, None] * taken
    return counts


def _chosen_in_groups(
    codes: IntArray, sizes: IntArray, counts: IntArray, random: np.random.Generator
) -> BoolArray:
    """Return which samples fail [b, n] when so many of every group do [b, g]."""
    order = np.argsort(codes + random.random((len(counts), len(codes))), axis=1)
    grouped = np.repeat(np.arange(len(sizes)), sizes)
    rank = np.arange(len(codes)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    found: AnyArray = np.empty(order.shape, dtype=np.bool_)
    np.put_along_axis(found, order, rank < counts[:, grouped], axis=1)
    return np.asarray(found, dtype=np.bool_)
