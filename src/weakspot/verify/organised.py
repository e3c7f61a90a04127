"""Confirmed slices put in order: which stand for themselves, which are worse parts of others, and which are explained by them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from weakspot.core.arrays import BoolArray, IntArray
from weakspot.core.errors import DataError
from weakspot.core.evidence import (
    ClassTree,
    Evidence,
    Explanation,
    NodeKind,
    SliceNode,
    Verdict,
    sides_of,
)
from weakspot.core.failures import ClassProblem, FailureCriterion, Side, class_problems
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice, matches
from weakspot.discover.accounting import Memberships, cells_of, excess_p

MIN_SHARED = 0.5
MAX_P = 0.05
MOSTLY = 0.8


def organise_slices(
    slices: Sequence[FailureSlice],
    evidence: Sequence[Evidence],
    confirmation: Mapping[str, SampleSet],
    criterion: FailureCriterion,
) -> tuple[tuple[Evidence, ...], tuple[ClassTree, ...]]:
    """Return the same evidence, where slices that others explain say so, and a tree of every class with confirmed slices.

    Args:
        slices: what was tested.
        evidence: one entry a slice.
        confirmation: the samples that slices were measured on, by the digest of those that they were found on.
        criterion: what counts as a failure.
    """
    if len(slices) != len(evidence):
        raise DataError(
            "Every slice needs one entry of evidence.", given=(len(slices), len(evidence))
        )
    problems = {
        digest: class_problems(samples.dataset, samples.rows, criterion) if len(samples) else ()
        for digest, samples in confirmation.items()
    }
    own: dict[tuple[str, Side | None], list[int]] = defaultdict(list)
    for place, (found, entry) in enumerate(zip(slices, evidence, strict=True)):
        if entry.verdict is Verdict.CONFIRMED and found.found_on.digest in confirmation:
            own[found.class_name, found.side].append(place)
    changed, trees = list(evidence), []
    for (class_name, side), places in sorted(own.items(), key=lambda item: item[1][0]):
        looked_at = [(slices[place], evidence[place]) for place in places]
        organising = _ClassOrganising(looked_at, confirmation, problems)
        for place, explanation in zip(places, organising.explanations, strict=True):
            if explanation is not None:
                changed[place] = evidence[place].model_copy(update={"explained": explanation})
        n_failed, n_left = organising.left_over()
        trees.append(
            ClassTree(
                class_name=class_name,
                side=side,
                n_failed=n_failed,
                n_left=n_left,
                nodes=tuple(organising.nodes()),
            )
        )
    return tuple(changed), tuple(trees)


class _Population:
    """The samples of a class that some slices were measured on."""

    def __init__(self, samples: SampleSet, problem: ClassProblem, n_failed: int) -> None:
        self.problem, self.n_failed = problem, n_failed
        self._samples = samples
        self._members: dict[str, BoolArray] = {}

    def members(self, found: FailureSlice) -> BoolArray:
        if found.slice_id not in self._members:
            self._members[found.slice_id] = sides_of(found, self._samples, [self.problem]).inside
        return self._members[found.slice_id]

    def cells(self, chosen: Sequence[FailureSlice]) -> IntArray:
        return cells_of([self.members(one) for one in chosen], len(self.problem.rows))

    def excess_p(self, found: FailureSlice, cells: IntArray) -> float:
        problem = self.problem
        return excess_p(self.members(found), problem.failed, cells, problem.groups)


class _ClassOrganising:
    """The confirmed slices of one class.

    Args:
        looked_at: slices with evidence.
        confirmation: samples, by what slices were found on.
        problems: the classes among these samples.
    """

    def __init__(
        self,
        looked_at: Sequence[tuple[FailureSlice, Evidence]],
        confirmation: Mapping[str, SampleSet],
        problems: Mapping[str, Sequence[ClassProblem]],
    ) -> None:
        self._slices = [found for found, _ in looked_at]
        self._evidence = [entry for _, entry in looked_at]
        self._limit = MAX_P / len(looked_at)
        self._populations: dict[str, _Population] = {}
        for found in self._slices:
            digest = found.found_on.digest
            problem = next((one for one in problems[digest] if matches(found, one)), None)
            if digest not in self._populations and problem is not None:
                n_failed = sum(one.n_failed for one in problems[digest])
                self._populations[digest] = _Population(confirmation[digest], problem, n_failed)
        self._own = self._without_explained(self._choose())
        self.explanations = [
            None if place in self._own else self._explanation(place)
            for place in range(len(self._slices))
        ]

    def _population(self, place: int) -> _Population:
        return self._populations[self._slices[place].found_on.digest]

    def _choose(self) -> list[int]:
        """Return, in turn, the slice that stands out most within the cells of those before it."""
        chosen: list[int] = []
        left = list(range(len(self._slices)))
        while left:
            ranked = self._ranked(left, chosen)
            following = next((place for place in ranked if self._is_own(place, chosen)), None)
            if following is None:
                break
            chosen.append(following)
            left.remove(following)
        return chosen

    def _ranked(self, left: Sequence[int], chosen: Sequence[int]) -> list[int]:
        excess: dict[int, float] = {}
        for digest, population in self._populations.items():
            own = [place for place in left if self._slices[place].found_on.digest == digest]
            members = [np.flatnonzero(population.members(self._slices[place])) for place in own]
            counted = Memberships(members, population.problem.failed)
            cells = population.cells([self._slices[place] for place in chosen])
            excess |= dict(zip(own, counted.excess(cells).tolist(), strict=True))
        return sorted(
            left,
            key=lambda place: (
                -round(excess[place], 9),
                self._evidence[place].p_value,
                self._slices[place].slice_id,
            ),
        )

    def _is_own(self, place: int, others: Sequence[int]) -> bool:
        """Return whether members fail clearly more often than other samples of their cells, or mostly where no other slice is."""
        population = self._population(place)
        chosen = [self._slices[other] for other in others]
        cells = population.cells(chosen)
        if population.excess_p(self._slices[place], cells) <= self._limit:
            return True
        failing = population.members(self._slices[place]) & population.problem.failed
        return not failing.any() or float((cells[failing] > 0).mean()) < MIN_SHARED

    def _without_explained(self, chosen: list[int]) -> list[int]:
        """Return the chosen ones that still stand out beside all others: what was chosen first may be part of a later one."""
        kept = list(chosen)
        for place in reversed(chosen):
            others = [other for other in kept if other != place]
            if not self._is_own(place, others):
                kept = others
        return kept

    def _explanation(self, place: int) -> Explanation:
        population = self._population(place)
        failed = population.problem.failed
        inside = population.members(self._slices[place])
        failing = inside & failed
        members = {other: population.members(self._slices[other]) for other in self._own}
        shares = {other: float(one[failing].mean()) for other, one in members.items()}
        best = min(shares, key=lambda other: (-shares[other], int(members[other].sum()), other))
        anywhere = np.any(list(members.values()), axis=0)
        both, beside = inside & members[best], members[best] & ~inside
        return Explanation(
            slice_id=self._slices[best].slice_id,
            shared_failures=shares[best],
            shared_by_all=float(anywhere[failing].mean()),
            n_inside=int((inside & ~anywhere).sum()),
            failures_inside=int((failing & ~anywhere).sum()),
            n_outside=int((~inside & ~anywhere).sum()),
            failures_outside=int((failed & ~inside & ~anywhere).sum()),
            n_both=int(both.sum()),
            failures_both=int((failed & both).sum()),
            n_beside=int(beside.sum()),
            failures_beside=int((failed & beside).sum()),
        )

    def nodes(self) -> list[SliceNode]:
        found = []
        for place, (slice_, explanation) in enumerate(
            zip(self._slices, self.explanations, strict=True)
        ):
            node = self._node(place)
            if explanation is not None:
                update: dict[str, object] = {
                    "kind": NodeKind.EXPLAINED,
                    "parent": explanation.slice_id,
                    "share_inside": self._share_inside(slice_, explanation),
                    "others_failed": explanation.failures_beside,
                    "n_others": explanation.n_beside,
                }
                node = node.model_copy(update=update)
            found.append(node)
        return found

    def _share_inside(self, found: FailureSlice, explanation: Explanation) -> float:
        n_members = int(self._populations[found.found_on.digest].members(found).sum())
        return explanation.n_both / n_members if n_members else 0.0

    def _node(self, place: int) -> SliceNode:
        """Return a slice in the smallest finding that most of its members lie in and that it is clearly worse than."""
        entry, population = self._evidence[place], self._population(place)
        total = max(population.n_failed, 1)
        node = SliceNode(
            slice_id=self._slices[place].slice_id,
            coverage=entry.failures_inside / total,
            excess=max(0.0, entry.failures_inside - entry.n_inside * entry.rate_outside) / total,
        )
        inside, failed = population.members(self._slices[place]), population.problem.failed
        around = [
            (int(members.sum()), other, members)
            for other in self._own
            if other != place
            and (members := population.members(self._slices[other])).sum() > inside.sum()
            and members[inside].mean() >= MOSTLY
        ]
        for _, other, members in sorted(around, key=lambda one: one[:2]):
            p_value = self._within(place, members)
            if p_value <= self._limit:
                return node.model_copy(
                    update={
                        "kind": NodeKind.WORSE,
                        "parent": self._slices[other].slice_id,
                        "share_inside": float(members[inside].mean()),
                        "others_failed": int(failed[members & ~inside].sum()),
                        "n_others": int((members & ~inside).sum()),
                        "p_value": min(1.0, p_value * len(self._slices)),
                    }
                )
        return node

    def _within(self, place: int, parent: BoolArray) -> float:
        """Return the p-value that members inside the parent fail no more often than the parent's others."""
        problem = self._population(place).problem
        inside = self._population(place).members(self._slices[place])
        groups = None if problem.groups is None else problem.groups[parent]
        one_cell = np.zeros(int(parent.sum()), dtype=np.int64)
        return excess_p(inside[parent], problem.failed[parent], one_cell, groups)

    def left_over(self) -> tuple[int, int]:
        """Return the failures of the class among most samples, and those of them that are in no finding."""
        population = max(self._populations.values(), key=lambda one: len(one.problem.rows))
        failed = population.problem.failed
        cells = population.cells([self._slices[place] for place in self._own])
        return int(failed.sum()), int((failed & (cells == 0)).sum())
