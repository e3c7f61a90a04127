"""The few combinations of attribute values that explain most failures of one class."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray, IntArray
from weakspot.core.combinations import (
    CombinationCounter,
    ShuffledFailures,
    affordable_order,
    scores_of,
)
from weakspot.core.group_tests import GroupTest
from weakspot.core.groups import several_to_a_group
from weakspot.core.statistics import fisher_p

SHUFFLES_AT_A_TIME = 20
ENOUGH_EXCEEDING = 10
TESTED_AT_ONCE = 50
REFINING_DRAWS = 4_999

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
        self._codes, self._failed = codes, failed
        self._groups = None if groups is None else several_to_a_group(groups)
        self._group_p: dict[int, float] = {}
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

    def place(self, values: Values) -> int:
        is_same = self.found.orders == len(values)
        for slot, (attribute, code) in enumerate(values):
            is_same &= (self.found.attributes[:, slot] == attribute) & (
                self.found.codes[:, slot] == code
            )
        return int(np.flatnonzero(is_same)[0])

    def p_value(self, place: int) -> float:
        """Return the p-value against all other samples: of Fisher's test, or of the test of groups."""
        found = self.found
        if self._groups is not None:
            if place not in self._group_p:
                self.test_groups([place])
            return self._group_p[place]
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
            if self._groups is None:
                p_value = fisher_p(
                    failed, n_inside, int(self._failed[around].sum()), int(around.sum())
                )
            else:
                near = inside | around
                test = GroupTest(self._failed[near], self._groups[near], n_draws=REFINING_DRAWS)
                p_value = test.p_value(inside[near])
            if p_value * self._n_alternatives(parent) > largest_p:
                return False
        return True

    def test_groups(self, places: Sequence[int]) -> None:
        """Find the p-values of some combinations at once, which costs hardly more than one of them."""
        if self._groups is not None:
            insides = [have_all(self._codes, self.values(place)) for place in places]
            found = GroupTest(self._failed, self._groups).p_values(insides)
            self._group_p.update(zip(places, found, strict=True))

    def _n_alternatives(self, parent: Values) -> int:
        singles = self.found.attributes[self.found.orders == 1, 0]
        return int((~np.isin(singles, [attribute for attribute, _ in parent])).sum())

    def chance(self, place: int, n_shuffles: int, draws: np.random.Generator) -> float:
        """Return the chance that the best of all combinations has as much evidence; shuffling ends early when it is large.

        Without shuffles it is the p-value of the test times the number of combinations.
        """
        if not n_shuffles:
            return min(1.0, self.p_value(place) * len(self.found))
        observed = self.scores[place]
        while (
            len(self._maxima) < n_shuffles and np.sum(self._maxima >= observed) < ENOUGH_EXCEEDING
        ):
            self._shuffled = self._shuffled or ShuffledFailures(
                self._counter, self._failed, self._groups
            )
            n_more = min(SHUFFLES_AT_A_TIME, n_shuffles - len(self._maxima))
            self._maxima = np.concatenate([self._maxima, self._shuffled.maxima(n_more, draws)])
        return float(1 + np.sum(self._maxima >= observed)) / (1 + len(self._maxima))


MOST_CONSIDERED = 4_000_000
MOST_TRIED = 500
LEAST_FAILURES = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class Finding:
    """A combination in which failures gather.

    Args:
        values: (attribute, code) of every value.
        n_inside: samples that have them all.
        gap: failure rate inside minus failure rate of the rest of the class.
        chance: of the best combination reaching as much when failures have nothing to do with attributes.
        evidence: logarithm of how much likelier the counts are with a rate of its own, minus the penalty of its order.
    """

    values: tuple[tuple[int, int], ...]
    n_inside: int
    gap: float
    chance: float
    evidence: float


@dataclass(frozen=True, kw_only=True, eq=False)
class SearchResult:
    """What was found in one class.

    Args:
        findings: in the order in which they were taken.
        n_considered: combinations that enough samples have.
        order: values in a combination, at most.
    """

    findings: tuple[Finding, ...]
    n_considered: int
    order: int


@dataclass(frozen=True, kw_only=True)
class CombinationSearch:
    """Takes one combination after the other; each must stand out among the samples that those before it leave over.

    Args:
        max_order: values in a combination, at most.
        min_support: least number of samples in a combination.
        min_gap: least difference of failure rates, among all samples of the class and among those left over.
        cover: it ends when this share of the failures is covered.
        max_slices: it ends after so many.
        max_p: largest p-value of Fisher's test among the samples left over.
        refine_p: a value is added only if it makes failures more frequent beyond this chance, corrected for the values that could
            have been added instead.
        n_permutations: shuffles by which chances are found; 0 for the test's p-value times the number of combinations.
    """

    max_order: int
    min_support: int
    min_gap: float
    cover: float
    max_slices: int
    max_p: float
    refine_p: float
    n_permutations: int

    def run(
        self,
        codes: AnyArray,
        failed: BoolArray,
        draws: np.random.Generator,
        groups: IntArray | None = None,
    ) -> SearchResult:
        """Search the samples of a class, given codes [n, a], failures [n] and groups [n] if there are any."""
        order = affordable_order(
            codes, max_order=self.max_order, min_support=self.min_support, most=MOST_CONSIDERED
        )
        everything = Round(codes, failed, groups, order=order, min_support=self.min_support)
        left_over, this_round = np.ones(len(failed), dtype=np.bool_), everything
        findings: list[Finding] = []
        while self._goes_on(failed, left_over, len(findings)):
            place = next(self._admissible(this_round, everything), None)
            if place is None:
                break
            findings.append(self._finding(place, this_round, everything, draws))
            left_over &= ~have_all(codes, findings[-1].values)
            this_round = Round(
                codes[left_over],
                failed[left_over],
                None if groups is None else groups[left_over],
                order=order,
                min_support=self.min_support,
            )
        return SearchResult(
            findings=tuple(findings), n_considered=len(everything.found), order=order
        )

    def _goes_on(self, failed: BoolArray, left_over: BoolArray, n_findings: int) -> bool:
        n_left = int(failed[left_over].sum())
        is_covered = n_left <= (1.0 - self.cover) * failed.sum()
        return n_findings < self.max_slices and n_left >= LEAST_FAILURES and not is_covered

    def _admissible(self, this_round: Round, everything: Round) -> Iterator[int]:
        """Yield places of combinations that may be taken, best first."""
        found, scores = this_round.found, this_round.scores
        is_candidate = (
            (this_round.gaps >= self.min_gap)
            & (found.failed_inside >= LEAST_FAILURES)
            & np.isfinite(scores)
        )
        candidates = np.flatnonzero(is_candidate)
        # Equal evidence goes to the shorter combination, then to the larger one.
        ranks = (
            -found.n_inside[candidates],
            found.orders[candidates],
            -np.round(scores[candidates], 9),
        )
        tried = candidates[np.lexsort(ranks)][:MOST_TRIED].tolist()
        for rank, place in enumerate(tried):
            if rank % TESTED_AT_ONCE == 0:
                this_round.test_groups(tried[rank : rank + TESTED_AT_ONCE])
            values = this_round.values(place)
            if (
                this_round.p_value(place) > self.max_p
                or everything.gaps[everything.place(values)] < self.min_gap
            ):
                continue
            if len(values) == 1 or this_round.refines(values, self.refine_p):
                yield place

    def _finding(
        self, place: int, this_round: Round, everything: Round, draws: np.random.Generator
    ) -> Finding:
        values = this_round.values(place)
        place_in_all = everything.place(values)
        chance = this_round.chance(place, self.n_permutations, draws)
        if this_round is not everything:
            chance = max(chance, everything.chance(place_in_all, self.n_permutations, draws))
        return Finding(
            values=values,
            n_inside=int(everything.found.n_inside[place_in_all]),
            gap=float(everything.gaps[place_in_all]),
            chance=chance,
            evidence=float(everything.scores[place_in_all]),
        )
