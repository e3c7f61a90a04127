"""Tests, intervals and dealing for samples that come in groups: every group counts once, however many images it has.

With one sample a group, everything here equals what `weakspot.core.statistics` gives.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property, reduce
from typing import Literal

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray, IntArray, generator
from weakspot.core.dataset import several_to_a_group
from weakspot.core.statistics import change_interval, fisher_p, mcnemar_p, wilson_interval

MIN_PER_BIN = 5
MAX_BLOCK = 1 << 22


def size_bins(sizes: IntArray) -> list[IntArray]:
    """Return the places of groups of about the same size; a bin of very few is taken together with the next smaller one.

    >>> [own.tolist() for own in size_bins(np.array([1, 1, 1, 1, 1, 3, 4, 4, 3, 4, 9]))]
    [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9, 10]]
    """
    order = np.ceil(np.log2(sizes)).astype(np.int64)
    bins: list[IntArray] = []
    for number in np.unique(order):
        own = np.flatnonzero(order == number)
        if bins and min(len(own), len(bins[-1])) < MIN_PER_BIN:
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
    step = max(1, MAX_BLOCK // max(len(failed), 1))
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


DRAWN_AT_ONCE = 512
MAX_NUMBERS = 4_000_000


class DealtScores:
    """Deals the scores of groups out anew among the groups of the same bin.

    Args:
        scores: of every group [g].
        bins: the groups of each bin.
        members: what part of every group each membership has [m, g].

    >>> scores, members = np.array([1, 0, 0, 0]), np.array([[1.0, 1.0, 0.0, 0.0]])
    >>> dealt = DealtScores(scores, [np.arange(4)], members)
    >>> sums = np.concatenate(list(dealt.sums(1000, np.random.default_rng(0))))
    >>> sums.shape, sorted(set(sums[:, 0].tolist())), round(float(sums.mean()), 1)
    ((1000, 1), [0.0, 1.0], 0.5)
    """

    def __init__(self, scores: IntArray, bins: Sequence[IntArray], members: DoubleArray) -> None:
        self._order = np.concatenate(bins)
        failing = [own[scores[own] != 0] for own in bins]
        self._scores = scores[np.concatenate(failing)].astype(np.float64)
        ends, score_ends = (np.cumsum([0, *map(len, lists)]) for lists in (bins, failing))
        self._bins = np.stack([ends[:-1], ends[1:], score_ends[:-1], score_ends[1:]], axis=1)
        groups, numbers = np.nonzero(members.T)
        self._starts = np.searchsorted(groups, np.arange(members.shape[1] + 1))
        self._numbers, self._shares = numbers, members[numbers, groups]
        self._n_members = len(members)

    @property
    def steps(self) -> float:
        """Return about how many additions a draw takes."""
        return len(self._scores) * (1.0 + len(self._numbers) / max(len(self._order), 1))

    def sums(self, n_draws: int, random: np.random.Generator) -> Iterator[DoubleArray]:
        """Yield sums of scores times shares [b, m] of every membership, as often as asked for in all."""
        from weakspot.core.kernels import deal

        order = self._order.copy()
        at_once = max(1, min(DRAWN_AT_ONCE, MAX_NUMBERS // max(len(self._scores), 1)))
        for start in range(0, n_draws, at_once):
            size = min(at_once, n_draws - start), len(self._scores)
            sums: AnyArray = np.zeros((size[0], self._n_members))
            deal(
                random.random(size),
                order,
                self._bins,
                self._scores,
                (self._starts, self._numbers, self._shares),
                sums,
            )
            yield sums


SCORE_STEPS = 12
"""A group's share of failures is counted in twelfths: exact for 1, 2, 3, 4, 6 and 12 images, and one lattice for all sizes."""

N_DRAWS = 19_999
MAX_GROUPS_DRAWN = 4_000
MAX_FAILING_EXACT = 800
MAX_STEPS_EXACT = 200_000_000

Alternative = Literal["two-sided", "gained", "lost"]


class GroupTest:
    """Whether failures are more frequent inside than outside, for many memberships of the same samples.

    A group is one unit with a share of failures and a share of members. The statistic is the sum of their products; under the
    null hypothesis shares of failures are exchangeable among groups of about the same size (1, 2, 3-4, 5-8, ... images). Where
    every group lies wholly inside or outside, the permutation distribution is summed exactly. Otherwise permutations are drawn,
    the same for all memberships and the same in every run; with very many groups one image of each, chosen by its place among
    them alone, is put to Fisher's test instead.

    Args:
        failed: which samples failed [n].
        groups: number of the group of every sample [n]; None: every sample is a group of its own.
        n_draws: how many permutations are drawn where they are not summed exactly.

    >>> test = GroupTest(np.array([1, 1, 0, 0, 0, 0], dtype=bool), np.array([0, 0, 1, 1, 2, 2]))
    >>> round(test.p_value(np.array([1, 1, 0, 0, 0, 0], dtype=bool)), 4)
    0.3333
    """

    def __init__(
        self, failed: BoolArray, groups: IntArray | None, *, n_draws: int = N_DRAWS
    ) -> None:
        self._n_draws = n_draws
        self._failed = np.asarray(failed, dtype=np.bool_)
        several = None if groups is None else several_to_a_group(groups)
        self.has_groups = several is not None
        self._codes = np.arange(len(self._failed)) if several is None else several

    def p_value(self, inside: BoolArray) -> float:
        """Return the one-sided p-value of one membership [n]."""
        return self.p_values([inside])[0]

    def p_values(self, insides: Sequence[BoolArray]) -> list[float]:
        """Return the one-sided p-value of every membership [n]."""
        if not self.has_groups:
            return [self._fisher(np.asarray(inside, dtype=np.bool_)) for inside in insides]
        shares = [self.shares(inside) for inside in insides]
        is_exact = [self._can_be_exact and bool(np.all((one == 0) | (one == 1))) for one in shares]
        drawn = iter(
            self._drawn_p(
                [one for one, exact in zip(shares, is_exact, strict=True) if not exact],
                [one for one, exact in zip(insides, is_exact, strict=True) if not exact],
            )
        )
        return [
            self._exact_p(one > 0) if exact else next(drawn)
            for one, exact in zip(shares, is_exact, strict=True)
        ]

    def _fisher(self, inside: BoolArray) -> float:
        failed, n_inside = self._failed, int(inside.sum())
        failures = int(failed[inside].sum())
        return fisher_p(failures, n_inside, int(failed.sum()) - failures, len(failed) - n_inside)

    def shares(self, values: AnyArray) -> DoubleArray:
        """Return the mean of some values [n] in every group [g]."""
        weights = np.asarray(values, dtype=np.float64)
        return np.bincount(self._codes, weights=weights) / self._sizes

    @cached_property
    def _sizes(self) -> IntArray:
        return np.bincount(self._codes)

    @cached_property
    def scores(self) -> IntArray:
        """Return every group's share of failures in steps [g]; one failure, or one success, never gets lost in rounding."""
        shares = self.shares(self._failed)
        scores = np.rint(shares * SCORE_STEPS).astype(np.int64)
        scores[(shares > 0) & (scores == 0)] = 1
        scores[(shares < 1) & (scores == SCORE_STEPS)] = SCORE_STEPS - 1
        step = reduce(np.gcd, np.unique(scores).tolist(), 0)
        return scores // max(int(step), 1)

    @cached_property
    def bins(self) -> list[IntArray]:
        """Return the groups of about the same size."""
        return size_bins(self._sizes)

    @cached_property
    def _can_be_exact(self) -> bool:
        sums = [self.scores[one] for one in self.bins]
        failing = [int(np.count_nonzero(one)) for one in sums]
        work = sum(
            n_failing**2 * int(one.sum())
            for one, n_failing in zip(sums, failing, strict=True)
            if len(np.unique(one[one > 0])) > 1
        )
        return work <= MAX_STEPS_EXACT and max(failing, default=0) <= MAX_FAILING_EXACT

    @cached_property
    def _chosen_sums(self) -> list[DoubleArray]:
        """Return for every bin the chance [k, s] that k of its failing groups, drawn at random, have the scores s in all."""
        return [_sums_of_chosen(self.scores[one]) for one in self.bins]

    def _exact_p(self, is_inside: BoolArray) -> float:
        if is_inside.all() or not is_inside.any():
            return 1.0
        chances = np.ones(1)
        for own, sums in zip(self.bins, self._chosen_sums, strict=True):
            n_failing = len(sums) - 1
            n_drawn = int(is_inside[own].sum())
            among = hypergeometric(n_failing, len(own) - n_failing, n_drawn)
            chances = np.convolve(chances, among @ sums)
        observed = int(self.scores[is_inside].sum())
        return min(1.0, float(chances[observed:].sum() / chances.sum()))

    def _drawn_p(self, shares: list[DoubleArray], insides: list[BoolArray]) -> list[float]:
        if not shares:
            return []
        if len(self._sizes) > MAX_GROUPS_DRAWN:
            return [self._representative_p(np.asarray(inside, np.bool_)) for inside in insides]
        members = np.stack(shares)
        # Sums of products in floating point differ in the last digits with their order; equal ones must count as equal.
        observed = members @ self.scores - 1e-6
        n_reached = np.ones(len(members), dtype=np.int64)
        fingerprint = f"{len(self._failed)} {len(self._sizes)} {int(self.scores.sum())}"
        random = generator(0, "groups", fingerprint)
        for sums in self.dealt(members).sums(self._n_draws, random):
            n_reached += np.count_nonzero(sums >= observed, axis=0)
        return [float(count) for count in n_reached / (self._n_draws + 1)]

    def dealt(self, members: DoubleArray) -> DealtScores:
        """Return what deals the scores out anew among groups of about the same size, for shares of memberships [m, g]."""
        return DealtScores(self.scores, self.bins, members)

    def _representative_p(self, inside: BoolArray) -> float:
        order = generator(0, "representatives").permutation(len(self._codes))
        _, first = np.unique(self._codes[order], return_index=True)
        chosen = order[first]
        return GroupTest(self._failed[chosen], None).p_value(inside[chosen])


def _sums_of_chosen(scores: IntArray) -> DoubleArray:
    from scipy.special import gammaln

    values, counts = np.unique(scores[scores > 0], return_counts=True)
    n_failing, total = int(counts.sum()), int(scores.sum())
    ways = np.zeros((n_failing + 1, total + 1))
    ways[0, 0] = 1.0
    reached = 0
    for value, count in zip(values.tolist(), counts.tolist(), strict=True):
        numbers = np.arange(count + 1)
        choices = np.exp(gammaln(count + 1) - gammaln(numbers + 1) - gammaln(count - numbers + 1))
        before = ways[: reached + 1].copy()
        ways[:] = 0.0
        for number, n_ways in zip(numbers.tolist(), choices.tolist(), strict=True):
            shift = number * value
            ways[number : number + reached + 1, shift:] += n_ways * before[:, : total + 1 - shift]
        reached += count
    return np.asarray(ways / ways.sum(axis=1, keepdims=True))


def hypergeometric(n_first: int, n_second: int, n_drawn: int) -> DoubleArray:
    """Return the chance of 0, 1, ... of the first kind [n_first + 1] among as many as are drawn from both."""
    from scipy.special import gammaln

    counts = np.arange(n_first + 1)
    others = n_drawn - counts
    is_possible = (others >= 0) & (others <= n_second)
    parts = [counts, n_first - counts, np.maximum(others, 0), np.maximum(n_second - others, 0)]
    logs = -np.sum([gammaln(part + 1.0) for part in parts], axis=0)
    chances = np.where(is_possible, np.exp(logs - logs[is_possible].max()), 0.0)
    return np.asarray(chances / chances.sum())


def group_p(inside: BoolArray, failed: BoolArray, groups: IntArray | None) -> float:
    """Return the one-sided p-value that failures are no more frequent inside than outside; see `GroupTest`.

    >>> group_p(np.array([True, True, True, True, False, False, False, False]), np.arange(8) < 4, None).__round__(6)
    0.014286
    """
    return GroupTest(failed, groups).p_value(inside)


def count_groups(groups: IntArray | None, chosen: BoolArray) -> int:
    """Return how many groups the chosen samples belong to; as many as samples if every one is its own."""
    return int(np.sum(chosen)) if groups is None else len(np.unique(groups[chosen]))


def effective_number(groups: IntArray | None, chosen: BoolArray) -> float:
    """Return how many independent samples the chosen ones are worth if those of a group always agree (Kish).

    >>> effective_number(np.array([0, 0, 1, 1, 2]), np.arange(5) < 4)
    2.0
    """
    if groups is None or not np.any(chosen):
        return float(np.sum(chosen))
    sizes = np.unique(groups[chosen], return_counts=True)[1].astype(np.float64)
    return float(sizes.sum() ** 2 / np.sum(sizes**2))


def group_interval(
    count: int, total: int, effective: float, *, level: float = 0.95
) -> tuple[float, float]:
    """Return Wilson's interval of a share that is worth `effective` independent samples.

    >>> group_interval(8, 10, 10.0) == wilson_interval(8, 10)
    True
    """
    if not total or effective == total:
        return wilson_interval(count, total, level=level)
    return wilson_interval(_part(count, total, effective), effective, level=level)


def _part(count: int, total: int, effective: float) -> float:
    # All of them is all of them, whatever rounding makes of it.
    return effective if count == total else count * (effective / total)


def paired_group_p(
    gained: BoolArray,
    lost: BoolArray,
    groups: IntArray | None,
    *,
    alternative: Alternative = "two-sided",
) -> float:
    """Return the exact p-value that samples are as often gained as lost, when those of a group may change together.

    The sign of every group's net change is as likely either way if nothing changed; all signs are gone through (by convolution).
    With one sample a group and two sides this is McNemar's exact test.

    Args:
        gained: wrong before and right after [n].
        lost: right before and wrong after [n].
        groups: number of the group of every sample [n]; None: every sample is a group of its own.
        alternative: what is asked: that there is any change, that more is gained, or that more is lost.

    >>> five = np.ones(5, dtype=bool)
    >>> paired_group_p(five, ~five, None), paired_group_p(five, ~five, np.array([0, 0, 1, 1, 1]))
    (0.0625, 0.5)
    """
    signs = np.asarray(gained, dtype=np.int64) - np.asarray(lost, dtype=np.int64)
    codes = None if groups is None else several_to_a_group(groups)
    if codes is None and alternative == "two-sided":
        return mcnemar_p(int(np.sum(gained)), int(np.sum(lost)))
    net = signs if codes is None else np.rint(np.bincount(codes, weights=signs)).astype(np.int64)
    up, down = _sign_tails(net)
    if alternative == "two-sided":
        return min(1.0, 2.0 * min(up, down))
    return up if alternative == "gained" else down


def _sign_tails(net: IntArray) -> tuple[float, float]:
    """Return the chance of at least and of at most the observed sum, when every sign is thrown anew."""
    from scipy.special import gammaln

    values, counts = np.unique(np.abs(net[net != 0]), return_counts=True)
    chances = np.ones(1)
    for value, count in zip(values.tolist(), counts.tolist(), strict=True):
        numbers = np.arange(count + 1)
        logs = gammaln(count + 1) - gammaln(numbers + 1) - gammaln(count - numbers + 1)
        spaced = np.zeros(count * value + 1)
        spaced[numbers * value] = np.exp(logs - count * np.log(2.0))
        chances = np.convolve(chances, spaced)
    positive = int(net[net > 0].sum())
    return (
        min(1.0, float(chances[positive:].sum())),
        min(1.0, float(chances[: positive + 1].sum())),
    )


def group_change_interval(
    gained: BoolArray, lost: BoolArray, groups: IntArray | None, *, level: float = 0.95
) -> tuple[float, float]:
    """Return the interval of a change of a rate on the same samples, counting groups.

    >>> gains = np.arange(20) < 6
    >>> group_change_interval(gains, gains & False, None) == change_interval(6, 0, 20)
    True
    """
    n_samples, up, down = len(gained), int(np.sum(gained)), int(np.sum(lost))
    codes = None if groups is None else several_to_a_group(groups)
    if codes is None:
        return change_interval(up, down, n_samples, level=level)
    effective = effective_number(codes, np.ones(n_samples, dtype=np.bool_))
    parts = _part(up, n_samples, effective), _part(down, n_samples, effective)
    return change_interval(parts[0], min(parts[1], effective - parts[0]), effective, level=level)
