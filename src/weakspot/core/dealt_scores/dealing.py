"""Permutations of which only the scores that are not zero are drawn: most samples do not fail, and most lie in few memberships."""

from collections.abc import Iterator, Sequence

import numpy as np

from weakspot.core.arrays import AnyArray, DoubleArray, IntArray

DRAWN_AT_ONCE = 512
MOST_NUMBERS = 4_000_000


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
        from weakspot.core.dealt_scores.kernels import deal

        order = self._order.copy()
        at_once = max(1, min(DRAWN_AT_ONCE, MOST_NUMBERS // max(len(self._scores), 1)))
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
