"""Failures as directions: linear classifiers tell the samples of a class that fail from those that do not.

After Jain, Lawrence, Moitra and Madry, *Distilling Model Failures as Directions in Latent Space* (2023).
`docs/explanation/methods.md` says where this departs from the paper and why.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray, FloatArray, IntArray
from weakspot.core.assistants import NO_ASSISTANTS, Assistants
from weakspot.core.bounds import (
    Bounds,
    Count,
    NonNegative,
    NonNegativeInt,
    Positive,
    PositiveFraction,
    check_bounds,
)
from weakspot.core.dataset import several_to_a_group
from weakspot.core.discoverers import ClassDiscoverer, ClassSamples
from weakspot.core.failures import ClassProblem, FailureCriterion, class_problems
from weakspot.core.group_tests import deal_anew, dealt_first
from weakspot.core.kernels import count_sides
from weakspot.core.roles import Discovery
from weakspot.core.rules import LinearRule
from weakspot.core.samples import Need, SampleSet, separating_cut
from weakspot.core.slices import DataUse
from weakspot.core.statistics import permutation_p
from weakspot.discover.directions_kernels import (
    MIN_PER_SIDE,
    Plan,
    Source,
    best_accuracies,
    chance_shares,
    chosen_model,
    gram_of,
    group_accuracy,
    nested_scores,
    part_of,
    widest_split,
)

CHUNK_ROWS = 65_536
MIN_DEVIATION = 1e-8


def scaling_rule(samples: SampleSet, space: str) -> LinearRule:
    """Return a rule without direction that carries the centre and scale of the reference samples, or of the samples themselves."""
    rows = samples.rows if samples.reference_rows is None else samples.reference_rows
    moments = mean_and_deviation(samples, space, rows)
    if moments is None:
        moments = mean_and_deviation(samples, space, samples.rows)
    centre, scale = moments if moments is not None else (np.zeros(0), np.ones(0))
    return LinearRule(
        space=space,
        encoder_id=samples.space(space).encoder_id,
        direction=(),
        centre=tuple(centre.tolist()),
        scale=tuple(scale.tolist()),
    )


def mean_and_deviation(
    samples: SampleSet, space: str, rows: IntArray
) -> tuple[DoubleArray, DoubleArray] | None:
    """Return mean [d] and deviation [d] of the rows' embeddings, read in chunks; constant dimensions get 1; None without any."""
    count, total, squares = 0, np.zeros(1), np.zeros(1)
    shift: DoubleArray | None = None
    for start in range(0, len(rows), CHUNK_ROWS):
        values = samples.embeddings(space, rows[start : start + CHUNK_ROWS]).astype(np.float64)
        values = values[np.isfinite(values).all(axis=1)]
        if not len(values):
            continue
        shift = values.mean(axis=0) if shift is None else shift
        values -= shift
        count, total, squares = (
            count + len(values),
            total + values.sum(axis=0),
            squares + np.square(values).sum(axis=0),
        )
    if shift is None:
        return None
    deviation = np.sqrt(np.maximum(squares / count - np.square(total / count), 0.0))
    return shift + total / count, np.where(deviation > MIN_DEVIATION, deviation, 1.0)


def stratified_part(failed: BoolArray, n_most: int, draws: np.random.Generator) -> IntArray:
    """Return places of at most so many samples, drawn at random, that keep the share of failures and at least two of each side."""
    if len(failed) <= n_most:
        return np.arange(len(failed))
    parts = [
        draws.permutation(np.flatnonzero(failed == side))[
            : max(2, round(n_most * float(np.mean(failed == side))))
        ]
        for side in (True, False)
    ]
    return np.sort(np.concatenate(parts))


OWN_GRAM_ROWS = 256
GRAM_ROWS = 1_500
TOLERANCE = 1e-3


def source_of(
    embeddings: FloatArray, groups: IntArray | None = None, *, largest_gram: int = GRAM_ROWS
) -> Source:
    """Return the Gram matrix of embeddings [n, d], or the embeddings themselves if there are too many; and groups [n]."""
    values = np.ascontiguousarray(embeddings, dtype=np.float32)
    own = np.arange(len(values)) if groups is None else np.ascontiguousarray(groups, dtype=np.int64)
    if len(values) > largest_gram:
        return Source(values, is_gram=False, groups=own)
    gram = (
        gram_of(values) if len(values) <= OWN_GRAM_ROWS else np.ascontiguousarray(values @ values.T)
    )
    return Source(gram, is_gram=True, groups=own)


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassData:
    """One class.

    Args:
        embeddings: scaled embeddings [n, d].
        failed: which samples failed [n].
        source: the same embeddings for the solver.
        places: of the samples by which chance is measured: all, or a part of a large class [k].
        chance_source: Gram matrix [k, k] and groups of these.
        has_groups: whether several samples belong together.
    """

    embeddings: FloatArray
    failed: BoolArray
    source: Source
    places: IntArray
    chance_source: Source
    has_groups: bool = False

    @property
    def gram(self) -> FloatArray:
        return self.chance_source.values

    @property
    def is_whole(self) -> bool:
        return len(self.places) == len(self.failed)


def class_data(
    embeddings: FloatArray,
    failed: BoolArray,
    groups: IntArray | None = None,
    *,
    max_null_samples: int,
    draws: np.random.Generator,
) -> ClassData:
    source = source_of(embeddings, groups)
    places = stratified_part(failed, max_null_samples, draws)
    is_same = source.is_gram and len(places) == len(failed)
    chance_source = (
        source
        if is_same
        else source_of(embeddings[places], source.groups[places], largest_gram=len(places))
    )
    return ClassData(
        embeddings=embeddings,
        failed=failed,
        source=source,
        places=places,
        chance_source=chance_source,
        has_groups=groups is not None,
    )


MIN_LENGTH = 1e-10
MIN_GROUP = 5
SPLIT_DRAWS = 99
NULL_BATCH = 20
ENOUGH_EXCEEDED = 10
ROUNDING = 1e-12
Z_ONE_SIDED = 1.645


@dataclass(frozen=True, kw_only=True, eq=False)
class Direction:
    """One failure direction of a class.

    Args:
        direction: unit vector [d] towards failures.
        offset: added to the product of embedding and direction, so that the SVM's boundary lies at zero.
        threshold: where membership begins.
        cost: the chosen C.
        n_failures: failures it was fitted on.
        strength: balanced accuracy on held-out folds.
        strength_p: chance of such a strength, or None if it was not asked for.
    """

    direction: DoubleArray
    offset: float
    threshold: float
    cost: float
    n_failures: int
    strength: float
    strength_p: float | None

    def rule(self, scaling: LinearRule) -> LinearRule:
        return scaling.model_copy(
            update={
                "direction": tuple(self.direction.tolist()),
                "offset": self.offset,
                "threshold": self.threshold,
            }
        )


def _orders(draws: np.random.Generator, n_orders: int, n_samples: int) -> AnyArray:
    return draws.permuted(np.tile(np.arange(n_samples), (n_orders, 1)), axis=1)


def _drawn_kinds(data: ClassData, draws: np.random.Generator) -> AnyArray:
    """Return orders of the samples by which chance is measured, whose first ones are as failures might have been."""
    if not data.has_groups:
        return _orders(draws, SPLIT_DRAWS, len(data.places))
    groups = data.chance_source.groups
    dealt = deal_anew(data.failed[data.places], groups, SPLIT_DRAWS, draws)
    return dealt_first(dealt, groups, draws)


MAX_THREADS = 4


@dataclass(frozen=True, kw_only=True)
class DirectionsDiscoverer(ClassDiscoverer):
    """Finds the samples of a class that lie far along a failure direction; several directions when failures are of several kinds.

    After Jain, Lawrence, Moitra and Madry, *Distilling Model Failures as Directions in Latent Space* (2023).

    Args:
        space: which embeddings are read.
        costs: values of the SVM's constant C that are tried.
        cost_slack: a smaller C is preferred when it is worse than the best by at most so many standard errors; 0 takes the best.
        n_folds: folds by which C is chosen.
        n_repeats: how often these folds are drawn anew for the final choice of C.
        n_outer_folds: folds by which strength is measured; they take no part in choosing C.
        n_permutations: how often predictions are shuffled at most to find the chance of such a strength; 0 for never.
        n_directions: most directions a class can have; 1 gives the paper's single one.
        min_failures: classes with fewer failures are passed over.
        min_right: classes with fewer samples that did not fail are passed over.
        min_strength: directions that are weaker on held-out folds are not reported; 0.5 is guessing.
        max_p: failures are only divided into kinds, and one of several directions only kept, when chance explains it no more often.
        cut: where membership begins. `held-out`: at the score that separates failures best on held-out folds; `boundary`: at the
            SVM's own boundary.
        max_samples: classes with more samples are fitted on a random part that keeps the share of failures.
        max_null_samples: chance is measured on at most so many samples of a class.

    >>> from weakspot.testing.examples import CRITERION, discovery_samples
    >>> found = DirectionsDiscoverer(costs=(0.01,), n_permutations=19).discover(discovery_samples(), CRITERION, seed=0)
    >>> found.slices[0].class_name, found.slices[0].n_found
    ('disc', 16)
    """

    method = "directions"
    needs = (Need.EMBEDDINGS,)
    strongest_first = True
    auto_place = 5
    space: str = "clip"
    costs: tuple[Positive, ...] = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
    cost_slack: NonNegative = 1.0
    n_folds: Annotated[int, Bounds(ge=2)] = 2
    n_repeats: Count = 3
    n_outer_folds: Annotated[int, Bounds(ge=2)] = 5
    n_permutations: NonNegativeInt = 99
    n_directions: Count = 3
    min_failures: Annotated[int, Bounds(ge=2)] = 2
    min_right: Annotated[int, Bounds(ge=2)] = 2
    min_strength: float = 0.5
    max_p: PositiveFraction = 0.05
    cut: Literal["held-out", "boundary"] = "held-out"
    max_samples: Annotated[int, Bounds(ge=4)] = 20_000
    max_null_samples: Annotated[int, Bounds(ge=4)] = 500

    def __post_init__(self) -> None:
        none = [] if self.costs else ["The setting costs must hold at least one number."]
        check_bounds(self, problems=none)

    def discover(
        self,
        samples: SampleSet,
        criterion: FailureCriterion,
        *,
        seed: int,
        assistants: Assistants = NO_ASSISTANTS,
    ) -> Discovery:
        """Return slices of every class whose failures share directions, strongest first, and a note for every other class."""
        del assistants
        scaling, use = scaling_rule(samples, self.space), DataUse.of(samples)

        def look(problem: ClassProblem) -> Discovery:
            of = self.class_samples(samples, problem, use, seed=seed)
            return of.noted(of.obstacle) if of.obstacle else self._look(of, scaling)

        # Solvers let go of the interpreter, and classes do not know of each other: threads change the time, never the result.
        with ThreadPoolExecutor(max_workers=min(MAX_THREADS, os.cpu_count() or 1)) as pool:
            problems = class_problems(samples.dataset, samples.rows, criterion)
            return self.gathered(pool.map(look, problems))

    def _look(self, of: ClassSamples, scaling: LinearRule) -> Discovery:
        problem, draws = of.problem, self.random(of)
        kept = stratified_part(problem.failed, self.max_samples, draws)
        data = class_data(
            scaling.scaled(of.embeddings)[kept],
            problem.failed[kept],
            None if problem.groups is None else several_to_a_group(problem.groups[kept]),
            max_null_samples=self.max_null_samples,
            draws=draws,
        )
        directions, n_judged = self.search(data, draws)
        if directions[0].strength <= self.min_strength:
            note = (
                f"The {problem.n_failed} failures among {len(problem.rows)} samples share no direction "
                f"(balanced accuracy {directions[0].strength:.2f} on held-out folds, 0.5 is guessing)."
            )
            return of.noted(note, n_considered=n_judged)
        slices = [
            self.slice_of(
                of,
                direction.rule(scaling),
                strength=direction.strength,
                strength_p=direction.strength_p,
                more={
                    "seed": of.seed,
                    "n_directions_found": len(directions),
                    "chosen_cost": direction.cost,
                    "n_failures_fitted": direction.n_failures,
                },
            )
            for direction in directions
        ]
        return Discovery(slices=tuple(slices), n_considered=n_judged)

    @property
    def plan(self) -> Plan:
        """Return how models are fitted and chosen, with costs in ascending order."""
        costs = np.array(sorted(self.costs), dtype=np.float64)
        return Plan(costs, self.n_folds, self.n_outer_folds, TOLERANCE, float(self.cost_slack))

    def search(self, data: ClassData, draws: np.random.Generator) -> tuple[list[Direction], int]:
        """Return directions, strongest first and at least one, however weak; and how many were judged."""
        regions = self._regions(data, draws)
        n_groups = int(regions.max()) + 1
        if n_groups > 1:
            kept = [
                found for found in self._judge(data, regions, draws) if self._is_clear(found, data)
            ]
            if len(kept) > 1:
                return sorted(kept, key=lambda found: -found.strength), n_groups
        return self._judge(
            data, np.zeros_like(regions), draws
        ), 1 if n_groups == 1 else n_groups + 1

    def _regions(self, data: ClassData, draws: np.random.Generator) -> IntArray:
        """Return the group of failures that every sample [n] lies nearest to; all zero when failures are of one kind."""
        groups = np.where(data.failed[data.places], 0, -1)
        for group in range(1, self.n_directions):
            chosen, leaving, share = widest_split(data.gram, groups, group)
            n_rows, n_leaving = int(np.sum(groups == chosen)), len(leaving)
            if chosen < 0 or min(n_leaving, n_rows - n_leaving) < MIN_GROUP:
                break
            shares = chance_shares(data.gram, _drawn_kinds(data, draws), n_rows)
            if permutation_p(share - ROUNDING, shares) > self.max_p:
                break
            groups[leaving] = group
        means = np.stack(
            [
                data.embeddings[data.places[groups == group]].mean(axis=0)
                for group in range(int(groups.max()) + 1)
            ]
        )
        distances = np.square(means).sum(axis=1) - 2.0 * (data.embeddings @ means.T)
        return np.asarray(np.argmin(distances, axis=1), dtype=np.int64)

    def _judge(
        self, data: ClassData, regions: IntArray, draws: np.random.Generator
    ) -> list[Direction]:
        order, failed = draws.permutation(len(data.failed)), data.failed
        groups = range(int(regions.max()) + 1)
        strengths = [
            group_accuracy(data.source, failed, regions, group, order, self.plan)
            for group in groups
        ]
        chances = self._chances(data, regions, strengths, draws)
        found = []
        for group, strength, chance in zip(groups, strengths, chances, strict=True):
            rows = np.flatnonzero(~failed | (regions == group))
            source = data.source if len(rows) == len(failed) else part_of(data.source, rows)
            found.append(self._fit(data, rows, source, (strength, chance), draws))
        return found

    def _fit(
        self,
        data: ClassData,
        rows: IntArray,
        source: Source,
        judged: tuple[float, float | None],
        draws: np.random.Generator,
    ) -> Direction:
        failed = data.failed[rows]
        chosen, signed, biases = chosen_model(
            source, failed, _orders(draws, self.n_repeats, len(rows)), self.plan
        )
        weights = signed[0] @ data.embeddings[rows].astype(np.float64)
        length = float(np.linalg.norm(weights))
        length = length if length > MIN_LENGTH else 1.0
        threshold = 0.0
        n_failing, n_right = count_sides(failed, source.groups)
        if self.cut == "held-out" and min(n_failing, n_right) >= MIN_PER_SIDE:
            fixed = self.plan._replace(costs=self.plan.costs[chosen : chosen + 1])
            cut = separating_cut(
                nested_scores(source, failed, draws.permutation(len(rows)), fixed), failed
            )
            threshold = 0.0 if cut is None else cut
        return Direction(
            direction=weights / length,
            offset=float(biases[0]) / length,
            threshold=threshold,
            cost=float(self.plan.costs[chosen]),
            n_failures=int(failed.sum()),
            strength=judged[0],
            strength_p=judged[1],
        )

    def _chances(
        self,
        data: ClassData,
        regions: IntArray,
        strengths: Sequence[float],
        draws: np.random.Generator,
    ) -> list[float | None]:
        """Return the chance of each strength, by dividing and judging shuffled failures in the same way; large ones end early."""
        if not self.n_permutations or max(strengths) <= self.min_strength:
            return [None for _ in strengths]
        failed, places, n_groups = data.failed[data.places], data.places, len(strengths)
        observed = np.array(strengths)
        if not data.is_whole:
            order, source = draws.permutation(len(places)), data.chance_source
            observed = np.array(
                [
                    group_accuracy(source, failed, regions[places], group, order, self.plan)
                    for group in range(n_groups)
                ]
            )
        exceeded, n_generated = np.zeros(n_groups, dtype=np.int64), 0
        while n_generated < self.n_permutations and exceeded.min() < ENOUGH_EXCEEDED:
            size = min(NULL_BATCH, self.n_permutations - n_generated)
            predictions = (
                deal_anew(failed, data.chance_source.groups, size, draws)
                if data.has_groups
                else draws.permuted(np.tile(failed, (size, 1)), axis=1)
            )
            best = best_accuracies(
                data.chance_source,
                predictions,
                _orders(draws, size, len(failed)),
                self.plan,
                n_groups,
            )
            exceeded += np.sum(best[:, None] >= observed - ROUNDING, axis=0)
            n_generated += size
        return [float(1 + count) / (1 + n_generated) for count in exceeded]

    def _is_clear(self, found: Direction, data: ClassData) -> bool:
        if found.strength <= self.min_strength:
            return False
        if found.strength_p is not None:
            return found.strength_p <= self.max_p
        n_samples, n_units = len(data.failed), len(np.unique(data.source.groups))
        error = 0.25 * np.sqrt(1.0 / found.n_failures + 1.0 / max(n_samples - found.n_failures, 1))
        error *= np.sqrt(n_samples / n_units)
        return bool(found.strength > 0.5 + Z_ONE_SIDED * error)
