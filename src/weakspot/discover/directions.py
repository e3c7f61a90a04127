"""Failures as directions: one linear classifier per class tells the samples that fail from those that do not.

After Jain, Lawrence, Moitra and Madry, *Distilling Model Failures as Directions in Latent Space* (2023).
`docs/reference/methods.md` says where this departs from the paper and why.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np
from pydantic import JsonValue

from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray, FloatArray, IntArray
from weakspot.core.assistants import NOBODY, Assistants
from weakspot.core.class_vectors import obstacle, with_vectors
from weakspot.core.errors import ConfigError
from weakspot.core.failures import ClassProblem, FailureCriterion, class_problems
from weakspot.core.roles import Discovery
from weakspot.core.rules import LinearRule
from weakspot.core.run import ClassNote
from weakspot.core.samples import SampleSet
from weakspot.core.seeding import generator
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.core.statistics import balanced_accuracy, permutation_p

METHOD = "directions"
CHUNK_ROWS = 65_536
LEAST_PER_SIDE = 2
LEAST_DEVIATION = 1e-8


@dataclass(frozen=True, kw_only=True)
class DirectionsDiscoverer:
    """Finds at most one slice per class: the samples that lie far along the class's failure direction.

    Args:
        space: which vectors are read.
        costs: values of the SVM's constant C that are tried.
        n_folds: folds by which C is chosen.
        n_repeats: how often these folds are drawn anew for the final choice of C.
        n_outer_folds: folds by which strength is measured; they take no part in choosing C.
        n_permutations: how often outcomes are shuffled to find the chance of such a strength; 0 for never.
        min_failures: classes with fewer failures are passed over.
        min_right: classes with fewer samples that did not fail are passed over.
        min_strength: directions that are weaker on held-out folds are not reported; 0.5 is guessing.
        cut: where membership begins. `held-out`: at the score that separates failures best on held-out folds; `boundary`: at the
            SVM's own boundary.
        max_samples: classes with more samples are fitted on a random part that keeps the share of failures.
    """

    space: str = "joint"
    costs: tuple[float, ...] = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
    n_folds: int = 2
    n_repeats: int = 3
    n_outer_folds: int = 5
    n_permutations: int = 0
    min_failures: int = 2
    min_right: int = 2
    min_strength: float = 0.5
    cut: Literal["held-out", "boundary"] = "held-out"
    max_samples: int = 20_000

    def __post_init__(self) -> None:
        """Refuse settings that cannot mean anything."""
        if not self.costs or min(self.costs) <= 0:
            raise ConfigError("The setting costs needs positive numbers.", given=self.costs)
        for name, least in (("n_folds", 2), ("n_repeats", 1), ("n_outer_folds", 2), ("min_failures", 2), ("min_right", 2)):
            if getattr(self, name) < least:
                raise ConfigError(f"The setting {name} must be at least {least}.", given=getattr(self, name))

    @property
    def is_baseline(self) -> bool:
        """Return False."""
        return False

    def discover(self, samples: SampleSet, criterion: FailureCriterion, *, seed: int, assistants: Assistants = NOBODY) -> Discovery:
        """Return one slice for every class whose failures share a direction, and a note for every other class."""
        del assistants
        scaling = self._scaling(samples)
        slices: list[FailureSlice] = []
        notes: list[ClassNote] = []
        for problem in class_problems(samples.dataset, samples.rows, criterion):
            known, raw = with_vectors(samples, problem, self.space)
            vectors = scaling.scaled(raw) if len(raw) else raw
            n_without = len(problem.rows) - len(known.rows)
            note = obstacle(known, min_failures=self.min_failures, min_right=self.min_right, n_without=n_without)
            found = None if note else self._direction(samples, known, vectors, scaling, seed=seed)
            if found is not None and (found.strength or 0.0) > self.min_strength:
                slices.append(found)
                continue
            if found is not None:
                note = (
                    f"The {known.n_failed} failures among {len(known.rows)} samples share no direction "
                    f"(balanced accuracy {found.strength:.2f} on held-out folds, 0.5 is guessing)."
                )
            notes.append(ClassNote(class_name=problem.title, note=note))
        return Discovery(slices=tuple(slices), notes=tuple(notes))

    def _scaling(self, samples: SampleSet) -> LinearRule:
        """Return a rule without direction that carries the centre and scale of the reference samples."""
        rows = samples.rows if samples.reference_rows is None else samples.reference_rows
        moments = mean_and_deviation(samples, self.space, rows)
        if moments is None:
            moments = mean_and_deviation(samples, self.space, samples.rows)
        centre, scale = moments if moments is not None else (np.zeros(0), np.ones(0))
        return LinearRule(
            space=self.space,
            encoder_id=samples.space(self.space).encoder_id,
            direction=(),
            centre=tuple(centre.tolist()),
            scale=tuple(scale.tolist()),
        )

    def _direction(
        self, samples: SampleSet, problem: ClassProblem, vectors: FloatArray, scaling: LinearRule, *, seed: int
    ) -> FailureSlice:
        draws = generator(seed, METHOD, problem.title)
        kept = _stratified_part(problem.failed, self.max_samples, draws)
        reduced, basis = row_space(vectors[kept])
        failed = problem.failed[kept]
        strength, strength_p = self._strength(reduced, failed, draws)
        cost = self._best_cost(reduced, failed, draws, n_repeats=self.n_repeats)
        threshold = self._threshold(reduced, failed, cost, draws) if self.cut == "held-out" else 0.0
        direction, offset = fit_direction(reduced, failed, cost)
        rule = scaling.model_copy(
            update={
                "direction": tuple((direction if basis is None else direction @ basis).tolist()),
                "offset": offset,
                "threshold": threshold,
            }
        )
        parameters: dict[str, JsonValue] = {**asdict(self), "costs": list(self.costs), "chosen_cost": cost, "seed": seed}
        return FailureSlice(
            class_name=problem.class_name,
            side=problem.side,
            rule=rule,
            method=METHOD,
            parameters=parameters,
            found_on=DataUse.of(samples),
            strength=strength,
            strength_p=strength_p,
            n_found=int(rule.members(samples, problem.rows).sum()),
        )

    def _strength(self, vectors: AnyArray, failed: BoolArray, draws: np.random.Generator) -> tuple[float, float | None]:
        observed = self._nested_accuracy(vectors, failed, draws)
        if not self.n_permutations:
            return observed, None
        shuffled = [self._nested_accuracy(vectors, draws.permutation(failed), draws) for _ in range(self.n_permutations)]
        return observed, permutation_p(observed, shuffled)

    def _nested_accuracy(self, vectors: AnyArray, failed: BoolArray, draws: np.random.Generator) -> float:
        predicted = np.zeros(len(failed), dtype=np.bool_)
        for inside, held_out in stratified_folds(failed, self.n_outer_folds, draws):
            cost = self._best_cost(vectors[inside], failed[inside], draws, n_repeats=1)
            direction, offset = fit_direction(vectors[inside], failed[inside], cost)
            predicted[held_out] = vectors[held_out] @ direction + offset >= 0
        return balanced_accuracy(failed, predicted)

    def _best_cost(self, vectors: AnyArray, failed: BoolArray, draws: np.random.Generator, *, n_repeats: int) -> float:
        if len(self.costs) == 1 or min(failed.sum(), (~failed).sum()) < LEAST_PER_SIDE:
            return self.costs[len(self.costs) // 2]
        folds = [fold for _ in range(n_repeats) for fold in stratified_folds(failed, self.n_folds, draws)]
        accuracies = [np.mean([_accuracy(vectors, failed, fold, cost) for fold in folds]) for cost in self.costs]
        return self.costs[int(np.argmax(np.round(accuracies, 9)))]

    def _threshold(self, vectors: AnyArray, failed: BoolArray, cost: float, draws: np.random.Generator) -> float:
        scores = np.zeros(len(failed))
        for inside, held_out in stratified_folds(failed, self.n_outer_folds, draws):
            direction, offset = fit_direction(vectors[inside], failed[inside], cost)
            scores[held_out] = vectors[held_out] @ direction + offset
        return best_cut(scores, failed)


def mean_and_deviation(samples: SampleSet, space: str, rows: IntArray) -> tuple[DoubleArray, DoubleArray] | None:
    """Return mean [d] and deviation [d] of the rows' vectors, read in chunks; constant dimensions get 1, None without vectors."""
    count, total, squares = 0, np.zeros(1), np.zeros(1)
    shift: DoubleArray | None = None
    for start in range(0, len(rows), CHUNK_ROWS):
        values = samples.vectors(space, rows[start : start + CHUNK_ROWS]).astype(np.float64)
        values = values[np.isfinite(values).all(axis=1)]
        if not len(values):
            continue
        shift = values.mean(axis=0) if shift is None else shift
        values -= shift
        count, total, squares = count + len(values), total + values.sum(axis=0), squares + np.square(values).sum(axis=0)
    if shift is None:
        return None
    deviation = np.sqrt(np.maximum(squares / count - np.square(total / count), 0.0))
    return shift + total / count, np.where(deviation > LEAST_DEVIATION, deviation, 1.0)


def row_space(vectors: AnyArray) -> tuple[DoubleArray, DoubleArray | None]:
    """Return vectors [n, d] in coordinates of the space they span, and its basis; unchanged if there are more rows than columns.

    A linear classifier with a quadratic penalty has its solution in that space, so nothing is lost and fits get much cheaper.
    """
    values = np.asarray(vectors, dtype=np.float64)
    if values.shape[0] >= values.shape[1]:
        return values, None
    left, lengths, basis = np.linalg.svd(values, full_matrices=False)
    return left * lengths, basis


def fit_direction(vectors: AnyArray, failed: BoolArray, cost: float) -> tuple[DoubleArray, float]:
    """Return the unit direction towards failures and the offset that puts zero midway between failures and the rest."""
    from sklearn.svm import LinearSVC

    classifier = LinearSVC(C=cost, class_weight="balanced", dual=False, tol=1e-4, max_iter=5_000, random_state=0)
    classifier.fit(vectors, ~failed)
    direction = -np.asarray(classifier.coef_[0], dtype=np.float64)
    direction /= max(float(np.linalg.norm(direction)), 1e-300)
    scores = vectors @ direction
    return direction, -float(scores[failed].mean() + scores[~failed].mean()) / 2


def stratified_folds(failed: BoolArray, n_folds: int, draws: np.random.Generator) -> list[tuple[IntArray, IntArray]]:
    """Return (kept, held out) positions of shuffled folds that each hold failures and others, as many as that allows."""
    n_possible = max(2, min(n_folds, int(failed.sum()), int((~failed).sum())))
    fold_of = np.zeros(len(failed), dtype=np.int64)
    for side in (True, False):
        positions = draws.permutation(np.flatnonzero(failed == side))
        fold_of[positions] = np.arange(len(positions)) % n_possible
    return [(np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)) for fold in range(n_possible)]


def best_cut(scores: AnyArray, failed: BoolArray) -> float:
    """Return the score from which on failures stand out most: the largest association of membership with failure.

    The cut lies midway between two neighbouring scores, never so that all samples or none are members.

    >>> best_cut(np.array([0.1, 0.2, 0.7, 0.9]), np.array([False, False, True, True])).__round__(2)
    0.45
    """
    order = np.argsort(-scores, kind="stable")
    ranked, n_samples = scores[order], len(scores)
    ends = np.flatnonzero(ranked[:-1] > ranked[1:])
    if not len(ends):
        return float(ranked[0])
    share = (ends + 1) / n_samples
    both = np.cumsum(failed[order])[ends] / n_samples
    # The phi coefficient of every cut, up to a factor that is the same for all.
    strengths = (both - share * failed.mean()) / np.sqrt(share * (1 - share))
    best = ends[int(np.argmax(np.round(strengths, 9)))]
    return float((ranked[best] + ranked[best + 1]) / 2)


def _accuracy(vectors: AnyArray, failed: BoolArray, fold: tuple[IntArray, IntArray], cost: float) -> float:
    inside, held_out = fold
    direction, offset = fit_direction(vectors[inside], failed[inside], cost)
    return balanced_accuracy(failed[held_out], vectors[held_out] @ direction + offset >= 0)


def _stratified_part(failed: BoolArray, n_most: int, draws: np.random.Generator) -> IntArray:
    if len(failed) <= n_most:
        return np.arange(len(failed))
    parts: Sequence[IntArray] = [
        draws.permutation(np.flatnonzero(failed == side))[: max(2, round(n_most * float(np.mean(failed == side))))]
        for side in (True, False)
    ]
    return np.sort(np.concatenate(parts))
