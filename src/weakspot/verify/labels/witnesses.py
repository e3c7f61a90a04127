"""Witnesses against a label that never saw a prediction: a probe on training labels, the place of the failures, and captions."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray, IntArray
from weakspot.core.assistants import CaptionRows
from weakspot.core.dataset import Dataset, Task
from weakspot.core.failures import ClassProblem
from weakspot.core.pair_probe import (
    LEAST_ROWS,
    PairProbe,
    pair_rows,
    squared_distance,
    unit_embeddings,
)
from weakspot.core.rules import Rule
from weakspot.core.samples import SampleSet

MOST_RIVALS = 5


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelPairs:
    """A class and those that its failures are taken for, as training samples show them.

    Args:
        problem: the class.
        training: whose labels are asked.
        evaluation: whose failures are looked at.
        space: whose embeddings are read.
    """

    problem: ClassProblem
    training: SampleSet
    evaluation: SampleSet
    space: str
    probes: dict[int, PairProbe | None] = field(default_factory=dict)

    def sides(self, rows: IntArray, accused: IntArray) -> tuple[BoolArray, BoolArray]:
        """Return which rows lie where only the class [n] lies that they are taken for, and which lie in the bulk of both.

        Classes that few rows are taken for are left out: both are False there.
        """
        only, either = np.zeros((2, len(rows)), dtype=np.bool_)
        for _, probe, places in self._rivals(rows, accused):
            embeddings = unit_embeddings(self.evaluation, rows[places], self.space)
            if len(embeddings) == len(places):
                only[places], either[places] = (
                    probe.is_rival_only(embeddings),
                    probe.is_either(embeddings),
                )
        return only, either

    def distance_share(self, rows: IntArray, accused: IntArray, rule: Rule) -> float | None:
        """Return the squared distance of rows from the classes they are taken for, as a part of that between the classes.

        Samples with a wrong label are ordinary samples of the other class, so it is near 0 for them; a kind of its own keeps its
        distance. The other class is taken as a whole and by those of its samples that the rule takes in, whichever is nearer.
        """
        parts = [
            _distances(probe, self._without_gaps(rows[places]), self._members(code, rule))
            for code, probe, places in self._rivals(rows, accused)
        ]
        known = np.concatenate(parts) if parts else np.zeros(0)
        return float(known.mean()) if len(known) else None

    def _without_gaps(self, rows: IntArray) -> DoubleArray:
        return unit_embeddings(self.evaluation, rows, self.space)

    def _members(self, code: int, rule: Rule) -> DoubleArray:
        _, rival = self._pair(code)
        return unit_embeddings(self.training, rival[rule.members(self.training, rival)], self.space)

    def _pair(self, code: int) -> tuple[IntArray, IntArray]:
        names, problem = self.training.dataset.class_names, self.problem
        return pair_rows(self.training, problem.class_name, problem.side, names[code])

    def _rivals(
        self, rows: IntArray, accused: IntArray
    ) -> Iterator[tuple[int, PairProbe, IntArray]]:
        """Yield the most frequent accused classes with a probe and the places of their rows that have an embedding."""
        has = self.evaluation.has_embeddings(self.space, rows)
        counts = Counter(accused[(accused >= 0) & has].tolist())
        for code, _ in counts.most_common(MOST_RIVALS):
            if code not in self.probes:
                self.probes[code] = PairProbe.of(self.training, *self._pair(code), self.space)
            probe = self.probes[code]
            if probe is not None:
                yield code, probe, np.flatnonzero((accused == code) & has)


def _distances(probe: PairProbe, failing: DoubleArray, members: DoubleArray) -> DoubleArray:
    between = max(squared_distance(probe.own, probe.rival), 1e-12)
    found = []
    for others in (probe.rival, members):
        if len(others) >= LEAST_ROWS:
            scatter = others.var(axis=0, ddof=1).sum()
            found.append(np.square(failing - others.mean(axis=0)).sum(axis=1) - scatter)
    nearest = min(found, key=lambda distances: float(distances.mean()))
    return np.asarray(nearest / between)


def captions_agree(
    captions: CaptionRows,
    dataset: Dataset,
    problem: ClassProblem,
    rows: IntArray,
    accused: IntArray,
) -> tuple[BoolArray, BoolArray]:
    """Return for which rows the caption names the accused class and not the label, and for which it names the label alone."""
    if dataset.task is not Task.SINGLE_LABEL or not len(rows):
        return np.zeros(len(rows), dtype=np.bool_), np.zeros(len(rows), dtype=np.bool_)
    own = _pattern(problem.class_name)
    agrees, objects = [], []
    for caption, code in zip(captions(rows), accused.tolist(), strict=True):
        names_own = bool(own.search(caption))
        names_other = code >= 0 and bool(_pattern(dataset.class_names[code]).search(caption))
        agrees.append(names_other and not names_own)
        objects.append(names_own and not names_other)
    return np.array(agrees, dtype=np.bool_), np.array(objects, dtype=np.bool_)


def _pattern(class_name: str) -> re.Pattern[str]:
    """Return what finds a class in a caption, with or without a plural s.

    >>> bool(_pattern("sea_lion").search("Two sea lions on a rock")), bool(_pattern("ear").search("a bear"))
    (True, False)
    """
    words = re.escape(class_name.replace("_", " ").strip())
    return re.compile(rf"\b{words}s?\b", re.IGNORECASE)
