"""The combinations of attribute values that stand out with failures in one class, those that account for most first."""

from dataclasses import dataclass

import numpy as np

from weakspot.core.accounting import cells_of, excess_p
from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray, IntArray
from weakspot.core.combinations import affordable_order
from weakspot.discover.attributes.counted import CountedClass
from weakspot.discover.attributes.grouped import keep_standing_out_in_groups
from weakspot.discover.attributes.pool import Pool
from weakspot.discover.attributes.standing_out import find_standing_out

MOST_CONSIDERED = 4_000_000
MOST_PICKED = 30
MOST_WEAK = 5
MOST_TRIED = 50


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


@dataclass(frozen=True, kw_only=True, eq=False)
class SearchResult:
    """What was found in one class.

    Args:
        findings: those that account for failures in the order in which they were picked, then all others that stand out.
        n_considered: combinations that enough samples have.
        order: values in a combination, at most.
    """

    findings: tuple[Finding, ...]
    n_considered: int
    order: int


@dataclass(frozen=True, kw_only=True)
class CombinationSearch:
    """Takes every combination that stands out from its class and from its own shorter combinations; nothing is set aside.

    Args:
        max_order: values in a combination, at most.
        min_support: least number of samples in a combination.
        min_gap: least difference of failure rates.
        cover: it ends when this share of the failures is covered; 1: with everything that stands out.
        max_slices: it ends after so many.
        max_p: largest p-value of Fisher's test against the rest of the class.
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
        *,
        is_absent: AnyArray | None = None,
    ) -> SearchResult:
        """Search the samples of a class.

        Args:
            codes: [n, a].
            failed: [n].
            draws: for the shuffles.
            groups: [n] number of the group of every sample; None: each is its own.
            is_absent: [a, c] which codes say that something is not there; of two combinations with the same members and evidence
                the one with fewer of them is taken.
        """
        order = affordable_order(
            codes, max_order=self.max_order, min_support=self.min_support, most=MOST_CONSIDERED
        )
        counted = CountedClass(codes, failed, groups, order=order, min_support=self.min_support)
        standing_out = find_standing_out(
            counted.found,
            counted.gaps,
            min_gap=self.min_gap,
            max_p=self.max_p,
            refine_p=self.refine_p,
        )
        if counted.groups is not None:
            standing_out = keep_standing_out_in_groups(
                counted, standing_out, counted.groups, max_p=self.max_p, refine_p=self.refine_p
            )
        pool = Pool.of(counted, standing_out, is_absent)
        picked = self._picked(counted, pool)
        others = [place for place in pool.strong_first() if place not in set(picked)]
        chosen = picked if self.cover < 1.0 else picked + others
        findings = [
            self._finding(counted, int(pool.places[place]), draws, is_picked=number < len(picked))
            for number, place in enumerate(chosen[: self.max_slices])
        ]
        return SearchResult(findings=tuple(findings), n_considered=len(counted.found), order=order)

    def _picked(self, counted: CountedClass, pool: Pool) -> list[int]:
        """Return, in turn, the place in the pool of what accounts best for the failures that those before it do not explain."""
        picked: list[int] = []
        insides: list[BoolArray] = []
        covered = np.zeros(len(counted.failed), dtype=np.bool_)
        memberships = pool.memberships(counted.failed)
        while len(picked) < min(MOST_PICKED, self.max_slices):
            cells = cells_of(insides, len(counted.failed))
            n_weak = sum(not pool.is_strong[place] for place in picked)
            place = self._next(counted, pool, memberships.excess(cells), cells, n_weak)
            if place is None or (self.cover < 1.0 and self._is_covered(counted.failed, covered)):
                break
            picked.append(place)
            insides.append(pool.inside(place, len(counted.failed)))
            covered |= insides[-1]
        return picked

    def _is_covered(self, failed: BoolArray, covered: BoolArray) -> bool:
        return int(failed[~covered].sum()) <= (1.0 - self.cover) * int(failed.sum())

    def _next(
        self,
        counted: CountedClass,
        pool: Pool,
        excess: DoubleArray,
        cells: IntArray,
        n_weak: int,
    ) -> int | None:
        is_open = (excess > 0) & (pool.is_strong | (n_weak < MOST_WEAK))
        scores = np.where(is_open, excess - pool.penalties, -np.inf)
        for place in np.argsort(-np.round(scores, 9), kind="stable")[:MOST_TRIED].tolist():
            if not is_open[place]:
                return None
            inside = pool.inside(place, len(counted.failed))
            if excess_p(inside, counted.failed, cells, counted.groups) <= self.max_p:
                return int(place)
        return None

    def _finding(
        self, counted: CountedClass, place: int, draws: np.random.Generator, *, is_picked: bool
    ) -> Finding:
        return Finding(
            values=counted.values(place),
            n_inside=int(counted.found.n_inside[place]),
            gap=float(counted.gaps[place]),
            chance=counted.chance(place, self.n_permutations, draws),
            evidence=float(counted.scores[place]),
            is_picked=is_picked,
        )
