"""Sums of ranks: whether the values of some samples are larger than those of others (Wilcoxon, Mann and Whitney)."""

from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray

DIGITS = 9


@dataclass(frozen=True)
class RankSum:
    """What ranks say; sums of independent comparisons add up.

    Args:
        above: pairs of one sample of each kind in which the chosen one is larger; ties count half.
        pairs: how many pairs there are.
        variance: of `above` if nothing differs.
    """

    above: float = 0.0
    pairs: float = 0.0
    variance: float = 0.0

    @classmethod
    def of(cls, values: DoubleArray, chosen: BoolArray) -> "RankSum":
        """Compare the chosen values with the others.

        >>> RankSum.of(np.array([1.0, 2.0, 3.0, 3.0]), np.array([False, False, True, True]))
        RankSum(above=4.0, pairs=4.0, variance=1.5)
        """
        n_chosen, n_all = int(chosen.sum()), len(chosen)
        ranks = midranks(values)
        pairs = float(n_chosen * (n_all - n_chosen))
        spread = float(np.var(ranks, ddof=1)) if n_all > 1 else 0.0
        return cls(
            above=float(ranks[chosen].sum()) - n_chosen * (n_chosen + 1) / 2,
            pairs=pairs,
            variance=pairs / n_all * spread,
        )

    def __add__(self, other: "RankSum") -> "RankSum":
        return RankSum(
            self.above + other.above, self.pairs + other.pairs, self.variance + other.variance
        )

    @property
    def auc(self) -> float:
        """Return the share of pairs in which the chosen one is larger."""
        return self.above / self.pairs if self.pairs else 0.5

    @property
    def p_value(self) -> float:
        """Return the one-sided p-value that chosen values are no larger; the normal tail is longer than the exact one.

        >>> round(RankSum.of(np.arange(12.0), np.arange(12) >= 6).p_value, 3)
        0.003
        """
        from scipy.special import ndtr

        if not self.variance:
            return 1.0
        # Half a pair less: they are whole numbers.
        return float(ndtr(-(self.above - self.pairs / 2 - 0.5) / np.sqrt(self.variance)))

    @property
    def reversed(self) -> "RankSum":
        return RankSum(self.pairs - self.above, self.pairs, self.variance)


def midranks(values: DoubleArray) -> DoubleArray:
    """Return ranks from 1 on; equal values share the mean of theirs. Copies of an image may differ in the last digit.

    >>> midranks(np.array([2.0, 1.0, 2.0])).tolist()
    [2.5, 1.0, 2.5]
    """
    _, inverse, counts = np.unique(
        np.round(values, DIGITS), return_inverse=True, return_counts=True
    )
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[inverse])
