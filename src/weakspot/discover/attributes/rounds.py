"""All combinations among the samples that are left over, with their evidence."""

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray
from weakspot.core.combinations import CombinationCounter, ShuffledFailures, scores_of
from weakspot.core.statistics import fisher_p

SHUFFLES_AT_A_TIME = 20
ENOUGH_EXCEEDING = 10

Values = tuple[tuple[int, int], ...]
"""(attribute, code) of every value of a combination."""


def have_all(codes: AnyArray, values: Values) -> BoolArray:
    """Return which rows of codes [n, a] have all the values."""
    inside = np.ones(len(codes), dtype=np.bool_)
    for attribute, code in values:
        inside &= codes[:, attribute] == code
    return inside


class Round:
    """Combinations of some samples, counted.

    Args:
        codes: [n, a], 0 where nothing is known.
        failed: [n].
        order: values in a combination, at most.
        min_support: combinations of fewer samples are left out.
    """

    def __init__(self, codes: AnyArray, failed: BoolArray, *, order: int, min_support: int) -> None:
        self._codes, self._failed = codes, failed
        self._counter = CombinationCounter.of(codes, max_order=order, min_support=min_support)
        self.found = self._counter.count(failed)
        self.scores: DoubleArray = scores_of(self.found)
        found = self.found
        outside = np.maximum(found.n_samples - found.n_inside, 1)
        self.gaps: DoubleArray = found.failed_inside / found.n_inside - (found.n_failed - found.failed_inside) / outside
        self._shuffled: ShuffledFailures | None = None
        self._maxima = np.zeros(0)

    def values(self, place: int) -> Values:
        """Return the values of a combination."""
        pairs = zip(self.found.attributes[place].tolist(), self.found.codes[place].tolist(), strict=True)
        return tuple((attribute, code) for attribute, code in pairs if attribute >= 0)

    def place(self, values: Values) -> int:
        """Return where a combination is."""
        is_same = self.found.orders == len(values)
        for slot, (attribute, code) in enumerate(values):
            is_same &= (self.found.attributes[:, slot] == attribute) & (self.found.codes[:, slot] == code)
        return int(np.flatnonzero(is_same)[0])

    def p_value(self, place: int) -> float:
        """Return the p-value of Fisher's test against all other samples."""
        found = self.found
        failed, n_inside = int(found.failed_inside[place]), int(found.n_inside[place])
        return fisher_p(failed, n_inside, found.n_failed - failed, found.n_samples - n_inside)

    def refines(self, values: Values, largest_p: float) -> bool:
        """Return whether every value is needed: without any of them, failures are clearly less frequent.

        The p-value of each comparison counts as often as there are values that could have been added instead.
        """
        inside = have_all(self._codes, values)
        failed, n_inside = int(self._failed[inside].sum()), int(inside.sum())
        for dropped in range(len(values)):
            parent = values[:dropped] + values[dropped + 1 :]
            around = have_all(self._codes, parent) & ~inside
            p_value = fisher_p(failed, n_inside, int(self._failed[around].sum()), int(around.sum()))
            if p_value * self._n_alternatives(parent) > largest_p:
                return False
        return True

    def _n_alternatives(self, parent: Values) -> int:
        singles = self.found.attributes[self.found.orders == 1, 0]
        return int((~np.isin(singles, [attribute for attribute, _ in parent])).sum())

    def chance(self, place: int, n_shuffles: int, draws: np.random.Generator) -> float:
        """Return the chance that the best of all combinations has as much evidence; shuffling ends early when it is large.

        Without shuffles it is the p-value of Fisher's test times the number of combinations.
        """
        if not n_shuffles:
            return min(1.0, self.p_value(place) * len(self.found))
        observed = self.scores[place]
        while len(self._maxima) < n_shuffles and np.sum(self._maxima >= observed) < ENOUGH_EXCEEDING:
            self._shuffled = self._shuffled or ShuffledFailures(self._counter, self._failed)
            n_more = min(SHUFFLES_AT_A_TIME, n_shuffles - len(self._maxima))
            self._maxima = np.concatenate([self._maxima, self._shuffled.maxima(n_more, draws)])
        return float(1 + np.sum(self._maxima >= observed)) / (1 + len(self._maxima))
