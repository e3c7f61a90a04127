"""The search for failure directions in one class: fit, judge, and see whether its failures are of several kinds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from weakspot.core.arrays import AnyArray, DoubleArray, IntArray
from weakspot.core.class_embeddings import separating_cut
from weakspot.core.group_dealing import deal_anew, dealt_first
from weakspot.core.group_dealing.kernels import count_sides
from weakspot.core.rules import LinearRule
from weakspot.core.statistics import permutation_p
from weakspot.discover.directions.grouping import best_accuracies, chance_shares, widest_split
from weakspot.discover.directions.kernels import Source
from weakspot.discover.directions.sources import ClassData
from weakspot.discover.directions.validation import (
    LEAST_PER_SIDE,
    Plan,
    chosen_model,
    group_accuracy,
    nested_scores,
    part_of,
)

LEAST_LENGTH = 1e-10
LEAST_GROUP = 5
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


@dataclass(frozen=True, kw_only=True)
class ClassSearch:
    """Finds the failure directions of one class; `DirectionsDiscoverer` says what the fields mean."""

    plan: Plan
    n_repeats: int
    n_permutations: int
    n_directions: int
    min_strength: float
    max_p: float
    cut: Literal["held-out", "boundary"]

    def run(self, data: ClassData, draws: np.random.Generator) -> tuple[list[Direction], int]:
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
            if chosen < 0 or min(n_leaving, n_rows - n_leaving) < LEAST_GROUP:
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
        length = length if length > LEAST_LENGTH else 1.0
        threshold = 0.0
        n_failing, n_right = count_sides(failed, source.groups)
        if self.cut == "held-out" and min(n_failing, n_right) >= LEAST_PER_SIDE:
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


def _orders(draws: np.random.Generator, n_orders: int, n_samples: int) -> AnyArray:
    return draws.permuted(np.tile(np.arange(n_samples), (n_orders, 1)), axis=1)


def _drawn_kinds(data: ClassData, draws: np.random.Generator) -> AnyArray:
    """Return orders of the samples by which chance is measured, whose first ones are as failures might have been."""
    if not data.has_groups:
        return _orders(draws, SPLIT_DRAWS, len(data.places))
    groups = data.chance_source.groups
    dealt = deal_anew(data.failed[data.places], groups, SPLIT_DRAWS, draws)
    return dealt_first(dealt, groups, draws)
