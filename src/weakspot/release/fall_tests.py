"""One-sided paired tests of many subjects at once: did accuracy fall on the same samples by more than is let pass?

A sample, or a whole group of samples that belong together, is one unit. If nothing fell, a unit that changed is as likely to be lost as
to be gained, so the signs of all units may be flipped (a whole unit at once, for all subjects that it lies in). The test of a subject
is held against these flips, and the least of all tests against the least of the flipped ones (Westfall and Young, step-down): subjects
that share samples, and coarse counts, cost nothing.

Subjects share the error rate by weights that know only how many units changed, not which way. Where hardly anything changed there is
no fall to be found, and a subject there takes little from the others.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import DoubleArray, IntArray
from weakspot.core.seeding import generator
from weakspot.release.figures import PairedTally, SubjectKind

N_FLIPS = 20_000
FEWEST_FLIPS = 4_000
MOST_DRAWS = 40_000_000
AT_ONCE = 2_000_000
SLICES_SHARE = 2.0 / 3.0
KEPT_EQUAL = 0.3
STEEPNESS = 1.2
MOST_EXCESS = 3.0
ADDED_NOISE = 1.0
NEGLIGIBLE = 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class Changes:
    """What changed hands in every subject.

    Args:
        sizes: samples of every subject [k].
        squares: sum over units of the squared net loss [k]; the number of samples that changed if every sample is its own unit.
        falls: samples lost minus samples gained [k].
        patterns: different units, as their net loss in every subject [a, k]; a unit and its mirror image are the same.
        counts: how many units are like each pattern [a].
    """

    sizes: DoubleArray
    squares: DoubleArray
    falls: DoubleArray
    patterns: DoubleArray
    counts: IntArray


def read_changes(pairs: Sequence[PairedTally]) -> Changes:
    """Return what changed in some subjects; a subject that does not say which units changed has units of its own."""
    units = [_units(pair, place) for place, pair in enumerate(pairs)]
    names, place_of = np.unique(
        np.concatenate([codes for codes, _ in units]) if units else np.zeros(0), return_inverse=True
    )
    nets = np.zeros((len(names), len(pairs)))
    start = 0
    for subject, (codes, net) in enumerate(units):
        np.add.at(nets[:, subject], place_of[start : start + len(codes)], net)
        start += len(codes)
    nets = nets[np.any(nets != 0, axis=1)]
    first = np.argmax(nets != 0, axis=1)
    mirrored = nets * np.sign(nets[np.arange(len(nets)), first])[:, None]
    patterns, counts = np.unique(mirrored, axis=0, return_counts=True)
    return Changes(
        sizes=np.array([pair.n_samples for pair in pairs], dtype=np.float64),
        squares=np.asarray((nets**2).sum(axis=0)),
        falls=np.asarray(nets.sum(axis=0)),
        patterns=patterns,
        counts=np.asarray(counts, dtype=np.int64),
    )


def prior_shares(kinds: Sequence[SubjectKind]) -> DoubleArray:
    """Return the shares of the error rate that subjects begin with [k], in sum 1: slices get two thirds, however many classes there are.

    >>> prior_shares([SubjectKind.OVERALL, SubjectKind.NAMED, SubjectKind.NAMED]).round(2).tolist()
    [0.33, 0.33, 0.33]
    """
    is_slice = np.array(
        [kind in (SubjectKind.SLICE, SubjectKind.NAMED) for kind in kinds], dtype=np.bool_
    )
    if is_slice.all() or not is_slice.any():
        return np.full(len(kinds), 1.0 / max(len(kinds), 1))
    slices, others = SLICES_SHARE / is_slice.sum(), (1.0 - SLICES_SHARE) / (~is_slice).sum()
    return np.asarray(np.where(is_slice, slices, others), dtype=np.float64)


def shares(prior: DoubleArray, sizes: DoubleArray, squares: DoubleArray) -> DoubleArray:
    """Return which share of the error rate every subject gets [k], in sum 1.

    Part of it is as it was beforehand, the rest follows how much more changed in a subject than in the middle one. Only numbers enter
    that stay the same when the two models swap places, so the direction of a change knows nothing of the shares.

    >>> shares(np.full(3, 1 / 3), np.full(3, 100.0), np.array([20.0, 8.0, 8.0])).round(2).tolist()
    [0.76, 0.12, 0.12]
    """
    expected = np.maximum(sizes * np.median(squares / np.maximum(sizes, 1.0)), 1.0)
    excess = np.clip((squares - expected) / np.sqrt(expected), -MOST_EXCESS, MOST_EXCESS)
    tilted = prior * np.exp(STEEPNESS * excess)
    return np.asarray(KEPT_EQUAL * prior + (1.0 - KEPT_EQUAL) * tilted / tilted.sum())


def fall_p_values(changes: Changes, weights: DoubleArray, *, margin: float) -> DoubleArray:
    """Return for every subject the one-sided p-value of a fall beyond the margin, adjusted over all subjects [k].

    A margin is taken off what was lost. At the margin more is lost than gained, which flips cannot show; noise of the size of the
    margin stands in for it.

    Args:
        changes: what changed.
        weights: shares of the error rate.
        margin: the fall that is let pass, as a share of samples.
    """
    noise = np.sqrt(ADDED_NOISE * margin * changes.sizes)
    spread = np.sqrt(np.maximum(changes.squares + noise**2, 1.0))
    observed = _surprise((changes.falls - margin * changes.sizes) / spread, weights)
    order = np.argsort(observed, kind="stable")
    beaten, n_flips = np.zeros(len(order)), 0
    for flipped in _flips(changes, noise):
        least = _surprise(flipped / spread, weights)[:, order]
        least = np.minimum.accumulate(least[:, ::-1], axis=1)[:, ::-1]
        beaten += (least <= observed[order] + NEGLIGIBLE).sum(axis=0)
        n_flips += len(flipped)
    adjusted = np.empty(len(order))
    adjusted[order] = np.maximum.accumulate((1.0 + beaten) / (1.0 + n_flips))
    return adjusted


def _flips(changes: Changes, noise: DoubleArray) -> Iterator[DoubleArray]:
    """Yield the falls that the same units give with signs by chance, in parts [n, k]; the data decide the chance."""
    n_patterns = max(len(changes.counts), 1)
    n_flips = int(np.clip(MOST_DRAWS // n_patterns, FEWEST_FLIPS, N_FLIPS))
    at_once = max(AT_ONCE // n_patterns, 1)
    content = np.ascontiguousarray(changes.patterns).tobytes() + changes.counts.tobytes()
    random = generator(0, "regressions", hashlib.sha256(content).hexdigest())
    for start in range(0, n_flips, at_once):
        size = min(at_once, n_flips - start)
        signs = 2.0 * random.binomial(changes.counts, 0.5, size=(size, len(changes.counts)))
        flipped = (signs - changes.counts) @ changes.patterns
        yield np.asarray(flipped + noise * random.normal(size=flipped.shape))


def _surprise(scores: DoubleArray, weights: DoubleArray) -> DoubleArray:
    from scipy.special import log_ndtr

    return np.asarray(log_ndtr(-scores) - np.log(weights))


def _units(pair: PairedTally, place: int) -> tuple[IntArray, IntArray]:
    if pair.units is not None and pair.nets is not None:
        return pair.units, pair.nets
    own = np.repeat(np.array([1, -1]), [pair.lost, pair.gained])
    return -1 - place - np.arange(len(own)) * 1_000_003, own
