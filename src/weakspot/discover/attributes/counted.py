"""All combinations of values of the samples of one class, with their failures."""

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray
from weakspot.core.combinations import CombinationCounter, ShuffledFailures, scores_of
from weakspot.core.statistics import fisher_p

SHUFFLES_AT_A_TIME = 20
ENOUGH_EXCEEDING = 10

Values = tuple[tuple[int, int], ...]
"""(attribute, code) of every value of a combination."""


class CountedClass:
    """All combinations of the samples of a class.

    Args:
        codes: [n, a], 0 where nothing is known.
        failed: [n].
        order: values in a combination, at most.
        min_support: combinations of fewer samples are left out.
    """

    def __init__(self, codes: AnyArray, failed: BoolArray, *, order: int, min_support: int) -> None:
        self._columns, self.failed = np.ascontiguousarray(codes.T), failed
        self._counter = CombinationCounter.of(codes, max_order=order, min_support=min_support)
        self.found = self._counter.count(failed)
        self.scores: DoubleArray = scores_of(self.found)
        found = self.found
        outside = np.maximum(found.n_samples - found.n_inside, 1)
        self.gaps: DoubleArray = (
            found.failed_inside / found.n_inside - (found.n_failed - found.failed_inside) / outside
        )
        self._shuffled: ShuffledFailures | None = None
        self._maxima = np.zeros(0)

    def values(self, place: int) -> Values:
        pairs = zip(
            self.found.attributes[place].tolist(), self.found.codes[place].tolist(), strict=True
        )
        return tuple((attribute, code) for attribute, code in pairs if attribute >= 0)

    def members(self, place: int) -> BoolArray:
        """Return which samples have all the values of a combination."""
        inside = np.ones(len(self.failed), dtype=np.bool_)
        for attribute, code in self.values(place):
            inside &= self._columns[attribute] == code
        return inside

    def chance(self, place: int, n_shuffles: int, draws: np.random.Generator) -> float:
        """Return the chance that the best of all combinations has as much evidence; shuffling ends early when it is large.

        Without shuffles it is the p-value of Fisher's test times the number of combinations.
        """
        found = self.found
        if not n_shuffles:
            failed, n_inside = int(found.failed_inside[place]), int(found.n_inside[place])
            table = (failed, n_inside, found.n_failed - failed, found.n_samples - n_inside)
            return min(1.0, fisher_p(*table) * len(found))
        observed = self.scores[place]
        while (
            len(self._maxima) < n_shuffles and np.sum(self._maxima >= observed) < ENOUGH_EXCEEDING
        ):
            self._shuffled = self._shuffled or ShuffledFailures(self._counter, self.failed)
            n_more = min(SHUFFLES_AT_A_TIME, n_shuffles - len(self._maxima))
            self._maxima = np.concatenate([self._maxima, self._shuffled.maxima(n_more, draws)])
        return float(1 + np.sum(self._maxima >= observed)) / (1 + len(self._maxima))
