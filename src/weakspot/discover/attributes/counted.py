"""All combinations of values of the samples of one class, with their failures."""

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray, IntArray
from weakspot.core.combinations import CombinationCounter, ShuffledFailures, scores_of
from weakspot.core.group_tests import group_p
from weakspot.core.groups import several_to_a_group

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
        groups: [n] number of the group of every sample; None: each is its own.
        min_support: combinations of fewer samples are left out.
    """

    def __init__(
        self,
        codes: AnyArray,
        failed: BoolArray,
        groups: IntArray | None = None,
        *,
        order: int,
        min_support: int,
    ) -> None:
        self.groups = None if groups is None else several_to_a_group(groups)
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
        return self.have_all(self.values(place))

    def have_all(self, values: Values) -> BoolArray:
        inside = np.ones(len(self.failed), dtype=np.bool_)
        for attribute, code in values:
            inside &= self._columns[attribute] == code
        return inside

    def chance(self, place: int, n_shuffles: int, draws: np.random.Generator) -> float:
        """Return the chance that the best of all combinations has as much evidence; shuffling ends early when it is large.

        Without shuffles it is the p-value of the test times the number of combinations.
        """
        if not n_shuffles:
            own = group_p(self.members(place), self.failed, self.groups)
            return min(1.0, own * len(self.found))
        observed = self.scores[place]
        while (
            len(self._maxima) < n_shuffles and np.sum(self._maxima >= observed) < ENOUGH_EXCEEDING
        ):
            self._shuffled = self._shuffled or ShuffledFailures(
                self._counter, self.failed, self.groups
            )
            n_more = min(SHUFFLES_AT_A_TIME, n_shuffles - len(self._maxima))
            self._maxima = np.concatenate([self._maxima, self._shuffled.maxima(n_more, draws)])
        return float(1 + np.sum(self._maxima >= observed)) / (1 + len(self._maxima))
