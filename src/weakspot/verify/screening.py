"""Which candidates are worth testing on confirmation samples, judged on discovery samples alone."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import BoolArray, FloatArray
from weakspot.core.evidence import SliceSides, sides_of, sides_p
from weakspot.core.failures import FailureCriterion, class_problems
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.discover.accounting import cells_of, excess_p

BY_FAR = 1e-9
MAX_OTHERS = 200
MOSTLY = 0.5
CLEARLY = 0.001
"""Words have their limits fitted to failures, so chance alone passes 0.01 now and then (docs/decisions/031)."""


@dataclass(frozen=True, kw_only=True)
class Screened:
    """Candidates that passed, and how many did not.

    Args:
        kept: in the order they were given.
        n_dropped: all others.
        n_repeated: those among the dropped that repeat a better candidate of the same method.
        n_explaining: those among the dropped that are words for what other candidates hold.
    """

    kept: tuple[FailureSlice, ...]
    n_dropped: int
    n_repeated: int = 0
    n_explaining: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class _Judged:
    place: int
    found: FailureSlice
    sides: SliceSides
    p_value: float

    @property
    def class_key(self) -> tuple[str, str | None]:
        return self.found.class_name, self.found.side

    @property
    def inside(self) -> BoolArray:
        return self.sides.inside


def screened(
    slices: Sequence[FailureSlice],
    samples: SampleSet,
    criterion: FailureCriterion,
    *,
    largest_p: float,
    most: int,
    same_at: float = 0.8,
    words: Collection[str] = (),
) -> Screened:
    """Keep the candidates that stand out on the samples they were found on; the order stays.

    The p-values are too small for rules that were fitted to the same samples. They only serve to choose, and methods take turns,
    each with its best candidate next, so that a method that fits closely does not crowd out the others.

    Args:
        slices: candidates of all methods.
        samples: the discovery samples.
        criterion: what counts as a failure.
        largest_p: candidates with a larger p-value are dropped.
        most: at most so many are kept; of those that do not stand out by far at most 200, which half of the number is left to. The
            others hardly make them pay, and cutting those would hide severe slices behind broad ones.
        same_at: of a method's candidates whose members overlap at least so much (Jaccard), only the best is kept. Those of
            different methods are all kept: the verifier tests one and says that the others are the same.
        words: methods whose candidates are words. Words explain slices: one becomes a test of its own only if most of its failures
            are in no candidate kept so far, of other methods or of better words, or if it stands out clearly within these.
    """
    passed = [one for one in _judge(slices, samples, criterion) if one.p_value <= largest_p]
    groups: dict[str, _Distinct] = defaultdict(
        lambda: _Distinct(same_at=same_at, most=most + MAX_OTHERS)
    )
    for one in sorted(passed, key=lambda one: (one.p_value, one.place)):
        groups[one.found.method].add(one)
    n_distinct = sum(len(group.kept) for group in groups.values())
    tested = _without_explaining((one for group in groups.values() for one in group.kept), words)
    for method, group in groups.items():
        group.kept = [one for one in tested if one.found.method == method]
    turns = [
        (turn, one.p_value, one.place)
        for group in groups.values()
        for turn, one in enumerate(group.kept)
    ]
    by_far = [turn for turn in turns if turn[1] <= BY_FAR]
    others = [turn for turn in turns if turn[1] > BY_FAR]
    chosen = sorted(by_far)[: most - min(len(others), MAX_OTHERS, most // 2)]
    chosen += sorted(others)[: min(MAX_OTHERS, most - len(chosen))]
    places = sorted(place for _, _, place in chosen)
    return Screened(
        kept=tuple(slices[place] for place in places),
        n_dropped=len(slices) - len(places),
        n_repeated=sum(group.n_repeated for group in groups.values()),
        n_explaining=n_distinct - len(tested),
    )


def _without_explaining(judged: Iterable[_Judged], words: Collection[str]) -> list[_Judged]:
    """Return the candidates, best first, without words for failures that others hold already."""
    ordered = sorted(judged, key=lambda one: (one.found.method in words, one.p_value, one.place))
    kept: list[_Judged] = []
    held: dict[tuple[str, str | None], list[BoolArray]] = defaultdict(list)
    for one in ordered:
        others = held[one.class_key]
        if one.found.method not in words or _adds_failures(one.sides, others):
            kept.append(one)
            others.append(one.inside)
    return sorted(kept, key=lambda one: (one.p_value, one.place))


def _adds_failures(sides: SliceSides, others: Sequence[BoolArray]) -> bool:
    """Return whether members fail mostly where no other candidate is, or clearly more often than others of the same candidates."""
    problem = sides.problem
    if problem is None or not others:
        return True
    cells = cells_of(others, len(problem.rows))
    failing = sides.inside & problem.failed
    if not failing.any() or float((cells[failing] > 0).mean()) < MOSTLY:
        return True
    return excess_p(sides.inside, problem.failed, cells, problem.groups) <= CLEARLY


class _Distinct:
    """The best candidates of one method, no two of them alike."""

    def __init__(self, *, same_at: float, most: int) -> None:
        self.kept: list[_Judged] = []
        self.n_repeated = 0
        self._same_at, self._most = same_at, most
        self._members: dict[tuple[str, str | None], list[FloatArray]] = defaultdict(list)

    def add(self, one: _Judged) -> None:
        """Keep a candidate unless there are enough, or one that is alike is kept already."""
        if len(self.kept) >= self._most:
            return
        group = self._members[one.class_key]
        inside = one.inside.astype(np.float32)
        if group:
            members = np.stack(group)
            common = members @ inside
            either = members.sum(axis=1) + inside.sum() - common
            if np.any((common >= self._same_at * either) & (either > 0)):
                self.n_repeated += 1
                return
        group.append(inside)
        self.kept.append(one)


def _judge(
    slices: Sequence[FailureSlice], samples: SampleSet, criterion: FailureCriterion
) -> Iterator[_Judged]:
    """Yield candidates that can be tested at all: of a class that is there, and not by predictions."""
    problems = class_problems(samples.dataset, samples.rows, criterion) if len(samples) else ()
    testable = [
        (place, found, sides)
        for place, found in enumerate(slices)
        if not found.rule.reads_predictions
        and (sides := sides_of(found, samples, problems)).problem is not None
    ]
    p_values = sides_p([sides for _, _, sides in testable])
    for (place, found, sides), p_value in zip(testable, p_values, strict=True):
        yield _Judged(place=place, found=found, sides=sides, p_value=p_value)
