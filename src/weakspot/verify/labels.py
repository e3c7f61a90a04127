"""Do the failures of a slice look like wrong labels rather than wrong predictions?

Two witnesses must agree. The first is the idea of confident learning (Northcutt, Jiang and Chuang, *Confident Learning: Estimating
Uncertainty in Dataset Labels*, 2021): a label is suspect when another class is likelier than is usual for samples that carry that
class's label. A classifier with a blind spot is also confident and wrong there, so it cannot accuse labels alone. The second is
independent of it: the training samples nearest in a space that the classifier did not make.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray, FloatArray, IntArray, unit_rows
from weakspot.core.dataset import Dataset, Task
from weakspot.core.errors import ConfigError
from weakspot.core.evidence import Cause, Evidence, LabelFinding, Share, SliceSides, Verdict, sides_of
from weakspot.core.failures import ClassProblem, FailureCriterion, Side, class_problems, predicted_classes, probabilities_of
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.core.statistics import fisher_p

CHUNK_ROWS = 16_384
BLOCK_FAILURES = 256
PROBABILITIES, PREDICTION, NEIGHBOURS = "probabilities", "prediction", "neighbours"
MOST = 0.5


@dataclass(frozen=True, kw_only=True)
class LabelChecker:
    """Flags confirmed slices whose labels should be looked at first.

    Args:
        space: whose vectors tell which training samples are near; not the classifier's own, which shares its blind spots.
        n_neighbours: how many training samples are asked.
        min_suspect: least number of suspect labels for a flag.
        flag_share: a slice is flagged if at least this share of its failures has a suspect label,
        flag_less: or at least this share, if it is also larger than among the failures outside.
        largest_p: of Fisher's test of that difference.
        level: of the intervals.
        max_failures: of more failures inside, or outside, an even part of this size is looked at: neighbours of all failures among
            all training samples would cost the square of the data set.
    """

    space: str = "joint"
    n_neighbours: int = 10
    min_suspect: int = 3
    flag_share: float = 0.5
    flag_less: float = 0.25
    largest_p: float = 0.05
    level: float = 0.95
    max_failures: int = 500

    def __post_init__(self) -> None:
        """Refuse settings that cannot mean anything."""
        for name in ("n_neighbours", "min_suspect", "max_failures"):
            if getattr(self, name) < 1:
                raise ConfigError(f"The setting {name} must be at least 1.", given=getattr(self, name))
        for name in ("flag_share", "flag_less", "largest_p"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ConfigError(f"The setting {name} must lie between 0 and 1.", given=getattr(self, name))

    def check(
        self,
        slices: Sequence[FailureSlice],
        evidence: Sequence[Evidence],
        *,
        training: SampleSet,
        evaluation: SampleSet,
        criterion: FailureCriterion,
    ) -> tuple[Evidence, ...]:
        """Return the same evidence, in the same order, with a look at the labels of every confirmed slice.

        Wrong labels explain away other causes: where a slice is flagged, its cause, if it was looked into before, becomes that.

        Args:
            slices: all slices.
            evidence: what was measured of them.
            training: whose labels are asked as neighbours.
            evaluation: the samples that slices were confirmed on; the classifier must not have been trained on them.
            criterion: what counts as a failure.
        """
        by_id = {found.slice_id: found for found in slices}
        wanted = {entry.slice_id for entry in evidence if entry.verdict is Verdict.CONFIRMED} & by_id.keys()
        problems = class_problems(evaluation.dataset, evaluation.rows, criterion) if wanted else ()
        findings = {}
        for slice_id in wanted:
            sides = sides_of(by_id[slice_id], evaluation, problems)
            findings[slice_id] = None if sides.problem is None else self._finding(sides, sides.problem, training, evaluation)
        return tuple(
            _with_labels(entry, findings.get(entry.slice_id)) if entry.verdict is Verdict.CONFIRMED else entry for entry in evidence
        )

    def suspect_rows(
        self, found: FailureSlice, *, training: SampleSet, evaluation: SampleSet, criterion: FailureCriterion
    ) -> IntArray:
        """Return the failures inside a slice whose label is suspect, ascending; none if no independent witness can be asked."""
        problems = class_problems(evaluation.dataset, evaluation.rows, criterion)
        sides = sides_of(found, evaluation, problems)
        if sides.problem is None:
            return np.zeros(0, dtype=np.int64)
        failing = np.sort(sides.problem.rows[sides.problem.failed & sides.inside])
        is_suspect, witnesses = self._suspects(sides.problem, failing, training, evaluation)
        return failing[is_suspect] if NEIGHBOURS in witnesses else failing[:0]

    def _finding(self, sides: SliceSides, problem: ClassProblem, training: SampleSet, evaluation: SampleSet) -> LabelFinding | None:
        asked = self._asked(sides, problem)
        is_suspect, witnesses = self._suspects(problem, problem.rows[asked], training, evaluation)
        if not witnesses:
            return None
        inside, outside = sides.inside[asked], sides.outside[asked]
        within = Share.of(int(is_suspect[inside].sum()), int(inside.sum()), level=self.level)
        without = Share.of(int(is_suspect[outside].sum()), int(outside.sum()), level=self.level)
        is_flagged = NEIGHBOURS in witnesses and self._is_flagged(within, without)
        return LabelFinding(
            n_suspect=within.count,
            share=within.value,
            inside=within,
            outside=without,
            witnesses=witnesses,
            is_flagged=is_flagged,
            sentence=_sentence(within, without, witnesses, is_flagged=is_flagged),
        )

    def _asked(self, sides: SliceSides, problem: ClassProblem) -> IntArray:
        """Return the places of the failures whose labels are looked at, ascending: all, or an even part of those on each side."""
        inside, outside = np.flatnonzero(sides.inside & problem.failed), np.flatnonzero(sides.outside & problem.failed)
        if max(len(inside), len(outside)) <= self.max_failures:
            return np.flatnonzero(problem.failed)
        return np.sort(np.concatenate([_even_part(inside, self.max_failures), _even_part(outside, self.max_failures)]))

    def _is_flagged(self, inside: Share, outside: Share) -> bool:
        if inside.count < self.min_suspect:
            return False
        is_more = fisher_p(inside.count, inside.total, outside.count, outside.total) <= self.largest_p
        return inside.value >= self.flag_share or (inside.value >= self.flag_less and is_more)

    def _suspects(
        self, problem: ClassProblem, failing: IntArray, training: SampleSet, evaluation: SampleSet
    ) -> tuple[BoolArray, tuple[str, ...]]:
        """Return which failures have a suspect label, and who says so."""
        dataset = evaluation.dataset
        near = self._neighbours(failing, training, evaluation)
        if dataset.probabilities is None:
            accused = predicted_classes(dataset, failing) if dataset.task is Task.SINGLE_LABEL else np.zeros(len(failing), np.int64)
        else:
            accused = confidently_other(dataset, evaluation.rows, problem, failing)
        if near is None:
            return accused >= 0, () if dataset.probabilities is None else (PROBABILITIES,)
        is_suspect = (accused >= 0) & _neighbours_agree(dataset, problem, accused, near)
        return is_suspect, (PREDICTION if dataset.probabilities is None else PROBABILITIES, NEIGHBOURS)

    def _neighbours(self, rows: IntArray, training: SampleSet, evaluation: SampleSet) -> IntArray | None:
        """Return the nearest training rows [n, k] of rows, -1 where a row has no vector; None if nobody can be asked."""
        if self.space not in evaluation.spaces or self.space not in training.spaces:
            return None
        labelled = training.rows[training.dataset.is_labelled[training.rows]]
        vectors = unit_rows(evaluation.vectors(self.space, rows))
        best, found = nearest_rows(vectors, training, labelled, space=self.space, n_nearest=self.n_neighbours)
        if len(labelled) < self.n_neighbours or not np.isfinite(best).any():
            return None
        return np.where(np.isfinite(best), found, -1)


def _even_part(places: IntArray, n_most: int) -> IntArray:
    """Return at most so many of the places, evenly spread.

    >>> _even_part(np.arange(10), 4).tolist(), _even_part(np.arange(3), 4).tolist()
    ([0, 2, 5, 7], [0, 1, 2])
    """
    return places if len(places) <= n_most else places[np.arange(n_most) * len(places) // n_most]


def _with_labels(entry: Evidence, finding: LabelFinding | None) -> Evidence:
    cause = entry.cause
    if finding is not None and finding.is_flagged and cause is not None:
        cause = cause.model_copy(update={"cause": Cause.LABELS})
    return entry.model_copy(update={"labels": finding, "cause": cause})


def class_thresholds(labels: IntArray, probabilities: AnyArray) -> DoubleArray:
    """Return how likely every class [c] usually is for samples that carry its label; 1 for a class that nobody carries.

    >>> class_thresholds(np.array([0, 0, 1]), np.array([[0.9, 0.1], [0.7, 0.3], [0.2, 0.8]])).round(2).tolist()
    [0.8, 0.8]
    """
    n_classes = probabilities.shape[1]
    counts = np.bincount(labels, minlength=n_classes)
    own = np.asarray(probabilities[np.arange(len(labels)), labels], dtype=np.float64)
    sums = np.bincount(labels, weights=own, minlength=n_classes)
    return np.where(counts > 0, sums / np.maximum(counts, 1), 1.0)


def confident_class(probabilities: AnyArray, thresholds: DoubleArray) -> IntArray:
    """Return for every row the likeliest of the classes that reach their threshold, -1 if none does.

    >>> confident_class(np.array([[0.5, 0.4, 0.1], [0.3, 0.6, 0.1]]), np.array([0.8, 0.5, 0.5])).tolist()
    [-1, 1]
    """
    reached = np.where(probabilities >= thresholds, probabilities, -1.0)
    return np.where(reached.max(axis=1) >= 0, reached.argmax(axis=1), -1).astype(np.int64)


def confidently_other(dataset: Dataset, reference: IntArray, problem: ClassProblem, failing: IntArray) -> IntArray:
    """Return for every failure the class that it confidently is instead of its label, -1 if it is none.

    In a multi-label task there is one alternative, the other side, and 0 stands for it.

    Args:
        dataset: all samples.
        reference: rows that thresholds are taken from; the classifier must not have been trained on them.
        problem: the class.
        failing: rows of the class.
    """
    labelled = reference[dataset.is_labelled[reference]]
    probabilities = probabilities_of(dataset, labelled, purpose="suspect labels")
    has_outcome = np.isfinite(probabilities).all(axis=1)
    known, probabilities = labelled[has_outcome], probabilities[has_outcome]
    given = probabilities_of(dataset, failing, purpose="suspect labels")
    code = dataset.class_code(problem.class_name)
    if dataset.task is Task.SINGLE_LABEL:
        found = confident_class(given, class_thresholds(dataset.labels[known], probabilities))
        return np.where(found == code, -1, found)
    has_label = dataset.label_matrix[known, code]
    present = float(probabilities[has_label, code].mean()) if has_label.any() else 1.0
    absent = float(probabilities[~has_label, code].mean()) if not has_label.all() else 0.0
    is_other = given[:, code] >= present if problem.side is Side.ABSENT else given[:, code] <= absent
    return np.where(is_other, 0, -1)


def _neighbours_agree(dataset: Dataset, problem: ClassProblem, accused: IntArray, near: IntArray) -> BoolArray:
    """Return for which failures most neighbours carry the label that the classifier is confident of."""
    if not len(near):
        return np.zeros(0, dtype=np.bool_)
    if dataset.task is Task.SINGLE_LABEL:
        agrees = np.equal(dataset.labels[near], accused[:, None])
    else:
        carries = dataset.label_matrix[near, dataset.class_code(problem.class_name)]
        agrees = carries if problem.side is Side.ABSENT else ~carries
    return np.asarray((agrees & (near >= 0)).mean(axis=1) > MOST, dtype=np.bool_)


def nearest_rows(
    vectors: FloatArray, training: SampleSet, rows: IntArray, *, space: str, n_nearest: int
) -> tuple[FloatArray, IntArray]:
    """Return similarity and row of the nearest training samples, chunk by chunk; minus infinity where there are fewer."""
    best = np.full((len(vectors), n_nearest), -np.inf, dtype=np.float32)
    found = np.full((len(vectors), n_nearest), -1, dtype=np.int64)
    for start in range(0, len(rows), CHUNK_ROWS):
        chunk = rows[start : start + CHUNK_ROWS]
        near = unit_rows(training.vectors(space, chunk))
        for first in range(0, len(vectors), BLOCK_FAILURES):
            block = slice(first, first + BLOCK_FAILURES)
            _take_nearer(best[block], found[block], vectors[block] @ near.T, chunk)
    return best, found


def _take_nearer(best: FloatArray, found: IntArray, similarities: FloatArray, rows: IntArray) -> None:
    """Put rows [m] that are nearer than the farthest found so far in its place; both arrays [n, k] are changed."""
    for place in np.flatnonzero((similarities > best.min(axis=1, keepdims=True)).any(axis=1)):
        nearer = np.flatnonzero(similarities[place] > best[place].min())
        values = np.concatenate([best[place], similarities[place, nearer]])
        order = np.argsort(-values, kind="stable")[: best.shape[1]]
        found[place] = np.concatenate([found[place], rows[nearer]])[order]
        best[place] = values[order]


def _sentence(inside: Share, outside: Share, witnesses: Sequence[str], *, is_flagged: bool) -> str:
    if is_flagged:
        others = f", against {outside.count} of {outside.total} outside" if outside.total else ""
        return (
            f"{inside.count} of {inside.total} failures inside look like wrong labels{others}: the classifier and most of the "
            "nearest training samples agree on another label. Look at these labels before repairing anything."
        )
    if NEIGHBOURS not in witnesses:
        return (
            f"The classifier alone would call {inside.count} of {inside.total} labels wrong; without vectors of an independent "
            "encoder that cannot be told from a blind spot."
        )
    return f"The labels look right: {inside.count} of {inside.total} failures have a suspect label."
