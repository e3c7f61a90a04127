"""The combinations of attribute values that stand out with failures in one class, those that account for most first."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray, IntArray
from weakspot.core.dataset import several_to_a_group
from weakspot.core.group_tests import GroupTest, group_p
from weakspot.core.statistics import fisher_ps
from weakspot.discover.accounting import Memberships
from weakspot.discover.combinations import (
    CombinationCounter,
    Combinations,
    ShuffledFailures,
    penalties_of,
    scores_of,
)

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


MIN_FAILURES = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class StandingOut:
    """The combinations of a class that passed.

    Args:
        places: [m] of the combinations among all that were counted.
        p_values: [m] Fisher's test against all other samples of the class.
        added_ps: [m] the largest p-value against any of their shorter combinations; `p_values` for single values.
    """

    places: IntArray
    p_values: DoubleArray
    added_ps: DoubleArray


def find_standing_out(
    found: Combinations, gaps: DoubleArray, *, min_gap: float, max_p: float, refine_p: float
) -> StandingOut:
    """Return the combinations with clearly more failures than the rest of the class, every value of which is needed.

    Args:
        found: all combinations of a class.
        gaps: [m] failure rate inside minus outside.
        min_gap: least gap.
        max_p: largest p-value against the rest of the class.
        refine_p: largest p-value against the rest of each shorter combination, times the values that could have been added to it.
    """
    places = np.flatnonzero((gaps >= min_gap) & (found.failed_inside >= MIN_FAILURES))
    p_values = fisher_ps(
        found.failed_inside[places],
        found.n_inside[places],
        found.n_failed - found.failed_inside[places],
        found.n_samples - found.n_inside[places],
    )
    passed = p_values <= max_p
    places, p_values = places[passed], p_values[passed]
    added_ps = np.where(found.orders[places] == 1, p_values, 0.0)
    is_needed = np.ones(len(places), dtype=np.bool_)
    for dropped in range(found.attributes.shape[1]):
        is_longer = (found.orders[places] > max(dropped, 1)) & is_needed
        own = np.flatnonzero(is_longer)
        if not len(own):
            continue
        against, factor = _against_shorter(found, places[own], dropped)
        is_needed[own] = against * factor <= refine_p
        added_ps[own] = np.maximum(against, added_ps[own])
    return StandingOut(
        places=places[is_needed], p_values=p_values[is_needed], added_ps=added_ps[is_needed]
    )


def _against_shorter(
    found: Combinations, places: IntArray, dropped: int
) -> tuple[DoubleArray, AnyArray]:
    """Return p-values against the rest of the combination without one value, and how many values could have been added to it."""
    shorter = found.without(places, dropped)
    failed, n_inside = found.failed_inside[places], found.n_inside[places]
    p_values = fisher_ps(
        failed,
        n_inside,
        found.failed_inside[shorter] - failed,
        found.n_inside[shorter] - n_inside,
    )
    singles = found.attributes[found.orders == 1, 0]
    n_values = np.bincount(singles, minlength=int(found.attributes.max(initial=0)) + 1)
    used = np.where(
        found.attributes[shorter] >= 0, n_values[np.maximum(found.attributes[shorter], 0)], 0
    )
    return p_values, len(singles) - used.sum(axis=1)


def absent_codes(values: tuple[str, ...], codes: AnyArray) -> BoolArray:
    """Return for every code of a column [len(values) + 1] whether it says that something is not there.

    A word for no does; without one, the more frequent of two values does.

    >>> absent_codes(("no", "yes"), np.array([1, 2, 2])).tolist(), absent_codes(("a", "b"), np.array([1, 2, 2])).tolist()
    ([False, True, False], [False, False, True])
    """
    words = [value.strip().lower().replace("_", " ") for value in values]
    found = np.array([False, *(_says_no(word) for word in words)])
    if len(values) == 2 and not found.any():  # noqa: PLR2004 - a column of two values
        counts = np.bincount(codes[codes > 0], minlength=3)
        found[1 + int(np.argmax(counts[1:]))] = counts[1] != counts[2]
    return found


NO_WORDS = frozenset(
    {"no", "false", "0", "0.0", "none", "absent", "without", "n", "f", "off", "not", "never"}
)


def _says_no(word: str) -> bool:
    return word in NO_WORDS or word.startswith(("no ", "not ", "without ", "non-"))


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


MAX_POOLED = 1_000
MAX_WEAK_POOLED = 200
MAX_MEMBERS = 4_000_000
STRONG = 0.05
"""A combination whose p-value stays below this when multiplied by the number of combinations stands out by itself."""
COST_OF_ABSENCE = 1.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Pool:
    """Combinations that stand out, one for each set of members; the shorter, then the larger one first.

    Args:
        places: [m] among all combinations.
        members: rows of the members of each.
        added_ps: [m] largest p-value against a shorter combination.
        penalties: [m] what is taken off the evidence for their order and for values that say that something is not there.
        is_strong: [m] whether it stands out allowing for all combinations.
    """

    places: IntArray
    members: tuple[IntArray, ...]
    added_ps: DoubleArray
    penalties: DoubleArray
    is_strong: BoolArray

    @classmethod
    def of(
        cls, counted: CountedClass, standing_out: StandingOut, is_absent: AnyArray | None
    ) -> "Pool":
        found, places = counted.found, standing_out.places
        orders = found.orders[places]
        n_alike = np.bincount(found.orders, minlength=1)[orders]
        n_orders = max(1, int(found.orders.max(initial=1)))
        is_strong = standing_out.p_values * n_alike * n_orders <= STRONG
        n_absent = _absent_values(counted, places, is_absent)
        scores = counted.scores[places] - COST_OF_ABSENCE * n_absent
        rest = np.where(is_strong, standing_out.added_ps, -scores)
        ranked = np.lexsort((-found.n_inside[places], orders, -np.round(scores, 9), rest))
        kept = np.concatenate(
            [
                ranked[is_strong[ranked]][:MAX_POOLED],
                ranked[~is_strong[ranked]][:MAX_WEAK_POOLED],
            ]
        )
        # Equal evidence goes to the shorter combination, then to the larger one.
        ties = (-found.n_inside[places[kept]], orders[kept], -np.round(scores[kept], 9))
        kept = kept[np.lexsort(ties)]
        members = [np.flatnonzero(counted.members(int(place))) for place in places[kept]]
        simplicity = list(zip(orders[kept].tolist(), n_absent[kept].tolist(), strict=True))
        shown = collapse_alike(members, scores[kept], simplicity, len(counted.failed))
        leaders = kept[np.array(shown, dtype=np.int64)]
        return cls(
            places=places[leaders],
            members=tuple(members[one] for one in shown),
            added_ps=standing_out.added_ps[leaders],
            penalties=penalties_of(found)[places[leaders]] + COST_OF_ABSENCE * n_absent[leaders],
            is_strong=is_strong[leaders],
        )

    def memberships(self, failed: BoolArray) -> Memberships:
        n_members = sum(len(rows) for rows in self.members)
        return Memberships(self.members, failed, step=1 + n_members // MAX_MEMBERS)

    def inside(self, place: int, n_samples: int) -> BoolArray:
        inside = np.zeros(n_samples, dtype=np.bool_)
        inside[self.members[place]] = True
        return inside

    def strong_first(self) -> list[int]:
        """Return the places that stand out by themselves, those first that differ most from their shorter combinations."""
        order = np.argsort(self.added_ps, kind="stable")
        return [int(place) for place in order if self.is_strong[place]]


def _absent_values(counted: CountedClass, places: IntArray, is_absent: AnyArray | None) -> IntArray:
    if is_absent is None:
        return np.zeros(len(places), dtype=np.int64)
    attributes, codes = counted.found.attributes[places], counted.found.codes[places]
    found = (attributes >= 0) & is_absent[np.maximum(attributes, 0), codes]
    return np.asarray(found.sum(axis=1), dtype=np.int64)


MAX_TESTED = 200
REFINING_DRAWS = 4_999


def keep_standing_out_in_groups(
    counted: CountedClass,
    standing_out: StandingOut,
    groups: IntArray,
    *,
    max_p: float,
    refine_p: float,
) -> StandingOut:
    """Return those that stand out at the level of groups [n] too, among the best of them by images.

    Tests of images only choose what is put to the tests of groups, which have the last word on both p-values.
    """
    best = np.argsort(standing_out.p_values, kind="stable")[:MAX_TESTED]
    chosen = StandingOut(
        places=standing_out.places[best],
        p_values=standing_out.p_values[best],
        added_ps=standing_out.added_ps[best],
    )
    insides = [counted.members(int(place)) for place in chosen.places]
    chosen = replace(chosen, p_values=np.array(GroupTest(counted.failed, groups).p_values(insides)))
    added, is_kept = chosen.added_ps.copy(), chosen.p_values <= max_p
    for number in np.flatnonzero(is_kept).tolist():
        values = counted.values(int(chosen.places[number]))
        added[number] = refining_p(counted, values, groups, otherwise=chosen.p_values[number])
        is_kept[number] = len(values) == 1 or (
            added[number] * _n_alternatives(counted, values) <= refine_p
        )
    return StandingOut(
        places=chosen.places[is_kept], p_values=chosen.p_values[is_kept], added_ps=added[is_kept]
    )


def refining_p(
    counted: CountedClass, values: Values, groups: IntArray, *, otherwise: float = 1.0
) -> float:
    """Return the largest p-value against the rest of any shorter combination; `otherwise` for a single value."""
    if len(values) == 1:
        return otherwise
    inside = counted.have_all(values)
    found = []
    for dropped in range(len(values)):
        near = counted.have_all(values[:dropped] + values[dropped + 1 :])
        test = GroupTest(counted.failed[near], groups[near], n_draws=REFINING_DRAWS)
        found.append(test.p_value(inside[near]))
    return max(found)


def _n_alternatives(counted: CountedClass, values: Values) -> int:
    """Return how many values could have been added to a shorter combination, at most."""
    attributes: AnyArray = counted.found.attributes[counted.found.orders == 1, 0]
    used = [int(np.sum(attributes == attribute)) for attribute, _ in values]
    return len(attributes) - sum(used) + max(used)


@dataclass(frozen=True, kw_only=True, eq=False)
class Finding:
    """A combination in which failures gather.

    Args:
        values: (attribute, code) of every value.
        n_inside: samples that have them all.
        gap: failure rate inside minus failure rate of the rest of the class.
        chance: of the best combination reaching as much when failures have nothing to do with attributes.
        evidence: logarithm of how much likelier the counts are with a rate of its own, minus the penalty of its order.
        is_picked: whether it accounts for failures that those picked before it do not.
    """

    values: tuple[tuple[int, int], ...]
    n_inside: int
    gap: float
    chance: float
    evidence: float
    is_picked: bool = True
