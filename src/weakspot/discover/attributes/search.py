"""The few combinations of attribute values that explain most failures of one class."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray
from weakspot.core.combinations import affordable_order
from weakspot.discover.attributes.rounds import Round, have_all

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

    def run(self, codes: AnyArray, failed: BoolArray, draws: np.random.Generator) -> SearchResult:
        """Search the samples of a class, given codes [n, a] and failures [n]."""
        order = affordable_order(codes, max_order=self.max_order, min_support=self.min_support, most=MOST_CONSIDERED)
        everything = Round(codes, failed, order=order, min_support=self.min_support)
        left_over, this_round = np.ones(len(failed), dtype=np.bool_), everything
        findings: list[Finding] = []
        while self._goes_on(failed, left_over, len(findings)):
            place = next(self._admissible(this_round, everything), None)
            if place is None:
                break
            findings.append(self._finding(place, this_round, everything, draws))
            left_over &= ~have_all(codes, findings[-1].values)
            this_round = Round(codes[left_over], failed[left_over], order=order, min_support=self.min_support)
        return SearchResult(findings=tuple(findings), n_considered=len(everything.found), order=order)

    def _goes_on(self, failed: BoolArray, left_over: BoolArray, n_findings: int) -> bool:
        n_left = int(failed[left_over].sum())
        is_covered = n_left <= (1.0 - self.cover) * failed.sum()
        return n_findings < self.max_slices and n_left >= LEAST_FAILURES and not is_covered

    def _admissible(self, this_round: Round, everything: Round) -> Iterator[int]:
        """Yield places of combinations that may be taken, best first."""
        found, scores = this_round.found, this_round.scores
        is_candidate = (this_round.gaps >= self.min_gap) & (found.failed_inside >= LEAST_FAILURES) & np.isfinite(scores)
        candidates = np.flatnonzero(is_candidate)
        # Equal evidence goes to the shorter combination, then to the larger one.
        ranks = (-found.n_inside[candidates], found.orders[candidates], -np.round(scores[candidates], 9))
        for place in candidates[np.lexsort(ranks)][:MOST_TRIED].tolist():
            values = this_round.values(place)
            if this_round.p_value(place) > self.max_p or everything.gaps[everything.place(values)] < self.min_gap:
                continue
            if len(values) == 1 or this_round.refines(values, self.refine_p):
                yield place

    def _finding(self, place: int, this_round: Round, everything: Round, draws: np.random.Generator) -> Finding:
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
