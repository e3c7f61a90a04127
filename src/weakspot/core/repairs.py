"""What to change, and what changing it did."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from pydantic import Field, JsonValue

from weakspot.core.arrays import DoubleArray, FloatArray, IntArray
from weakspot.core.dataset import Task
from weakspot.core.evidence import Interval
from weakspot.core.record import Record
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse, FailureSlice


@dataclass(frozen=True, kw_only=True, eq=False)
class Head:
    """The last linear layer of a classifier.

    Args:
        weights: [c, d].
        bias: [c].
        task: softmax for single-label, one sigmoid per label for multi-label.
    """

    weights: FloatArray
    bias: FloatArray
    task: Task = Task.SINGLE_LABEL

    def logits(self, features: FloatArray) -> FloatArray:
        """Return logits [n, c] of features [n, d]."""
        return np.asarray(features @ self.weights.T + self.bias, dtype=np.float32)

    def probabilities(self, features: FloatArray) -> FloatArray:
        """Return probabilities [n, c] of features [n, d]."""
        logits = self.logits(features).astype(np.float64)
        if self.task is Task.MULTI_LABEL:
            return np.asarray(1.0 / (1.0 + np.exp(-np.clip(logits, -60, 60))), dtype=np.float32)
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True), dtype=np.float32)


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainingSelection:
    """Which samples the last layer is retrained on and how much each counts.

    Args:
        rows: rows of the data set.
        weights: weight of each of them; their mean is one.
        note: one sentence for the report on what was done.
    """

    rows: IntArray
    weights: DoubleArray
    note: str


RankRows = Callable[[FailureSlice, SampleSet, IntArray], DoubleArray]
"""Orders the rows of a slice's class: those with the largest numbers are chosen first."""


def balanced_selection(
    slices: Sequence[FailureSlice], *, training: SampleSet, pool: SampleSet | None, budget: int, rank: RankRows
) -> TrainingSelection:
    """Give the rows chosen for a slice the same total weight as the rest of its class.

    As many rows are chosen as the slice has members, and as many are added from the pool as it has members there, within the
    budget: strategies that differ only in `rank` differ only in which rows they choose. With several slices in a class every
    slice and the rest get the same total, earlier slices choosing first. The share of each class in the total stays as it was,
    and the mean weight is one.
    """
    labelled = training.rows[training.dataset.is_labelled[training.rows]]
    added = _added_rows(slices, pool, budget, rank)
    rows = np.unique(np.concatenate([labelled, *added]).astype(np.int64))
    n_chosen = [int(found.rule.members(training, found.class_rows(training)).sum()) for found in slices]
    weights = np.ones(len(rows))
    for class_key in dict.fromkeys(map(_class_key, slices)):
        rest = training.only(rows)
        groups: list[IntArray] = []
        for found, n_members, extra in zip(slices, n_chosen, added, strict=True):
            if _class_key(found) == class_key:
                groups.append(_first_by_rank(found, rest, n_members + len(extra), rank))
                rest = rest.only(np.setdiff1d(found.class_rows(rest), groups[-1]))
        groups = [group for group in [*groups, rest.rows] if len(group)]
        n_class = sum(map(len, groups))
        for group in groups:
            weights[np.searchsorted(rows, group)] *= n_class / (len(groups) * len(group))
    n_added = sum(len(extra) for extra in added)
    from_pool = f", {n_added} of them added from the pool" if n_added else ""
    note = f"{sum(n_chosen) + n_added} of {len(rows)} samples chosen{from_pool}."
    return TrainingSelection(rows=rows, weights=weights / weights.mean() if len(rows) else weights, note=note)


def _class_key(found: FailureSlice) -> tuple[str, str | None]:
    return found.class_name, found.side


def _first_by_rank(found: FailureSlice, samples: SampleSet, n_wanted: int, rank: RankRows) -> IntArray:
    candidates = found.class_rows(samples)
    order = np.argsort(-np.nan_to_num(rank(found, samples, candidates), nan=-np.inf), kind="stable")
    return np.sort(candidates[order[:n_wanted]])


def _added_rows(slices: Sequence[FailureSlice], pool: SampleSet | None, budget: int, rank: RankRows) -> list[IntArray]:
    """Return for every slice the rows it adds from the pool; what one slice cannot use is left to the next."""
    if pool is None:
        return [np.zeros(0, dtype=np.int64) for _ in slices]
    added: list[IntArray] = []
    for position, found in enumerate(slices):
        n_members = int(found.rule.members(pool, found.class_rows(pool)).sum())
        share = -(-(budget - sum(map(len, added))) // (len(slices) - position))
        added.append(_first_by_rank(found, pool, min(share, n_members), rank))
        pool = pool.only(np.setdiff1d(pool.rows, added[-1]))
    return added


class RepairPlan(Record):
    """What is going to be changed.

    Args:
        slice_ids: the slices to repair.
        repairer: registered name of the strategy.
        parameters: what the strategy is set to.
        budget: how many samples may be taken from a pool, 0 for none.
        seed: seed of the run.
        trained_on: the data that is trained on.
    """

    slice_ids: tuple[str, ...]
    repairer: str
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    budget: int = 0
    seed: int = 0
    trained_on: DataUse | None = None


class GroupKind(StrEnum):
    """What a group of a before/after table is."""

    OVERALL = "overall"
    SLICE = "slice"
    COMPLEMENT = "rest of the class"
    CLASS = "class"


class GroupChange(Record):
    """Accuracy of one group before and after.

    Args:
        group: its name.
        kind: what it is.
        n_samples: its size.
        right_before: how many were right before.
        right_after: how many are right after.
        gained: wrong before, right after.
        lost: right before, wrong after.
        interval_before: interval of the accuracy before.
        interval_after: interval of the accuracy after.
        p_value: McNemar's exact test of gained against lost.
    """

    group: str
    kind: GroupKind
    n_samples: int
    right_before: int
    right_after: int
    gained: int
    lost: int
    interval_before: Interval
    interval_after: Interval
    p_value: float

    @property
    def accuracy_before(self) -> float:
        """Return the share that was right before."""
        return self.right_before / self.n_samples if self.n_samples else float("nan")

    @property
    def accuracy_after(self) -> float:
        """Return the share that is right after."""
        return self.right_after / self.n_samples if self.n_samples else float("nan")

    @property
    def change(self) -> float:
        """Return the change of accuracy; larger is better."""
        return self.accuracy_after - self.accuracy_before


class RepairArm(Record):
    """One way of retraining, measured on all groups.

    Args:
        arm: registered name of the strategy, or of the baseline.
        is_baseline: whether it only stands there for comparison.
        note: what was done, in a sentence.
        n_trained: samples trained on.
        changes: one entry a group.
        got_worse: names of groups whose accuracy fell.
    """

    arm: str
    is_baseline: bool
    note: str
    n_trained: int
    changes: tuple[GroupChange, ...]
    got_worse: tuple[str, ...] = ()


class RepairOutcome(Record):
    """What a repair did, beside its baselines.

    Args:
        plan: what was meant to be changed.
        measured_on: data that nothing was trained, thresholded or chosen on.
        arms: the repair first, then baselines.
        head_file: the repaired last layer, relative to the run's folder; None if it was not kept.
    """

    plan: RepairPlan
    measured_on: DataUse
    arms: tuple[RepairArm, ...]
    head_file: str | None = None

    @property
    def repaired(self) -> RepairArm:
        """Return the arm of the repair itself."""
        return next(arm for arm in self.arms if not arm.is_baseline)
