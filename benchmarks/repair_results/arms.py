"""Selecting, training and measuring one arm: the same for every strategy and baseline."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from pydantic import JsonValue

from repair_results.case import RepairCase
from repair_results.proving import GivenSlices
from weakspot.core.arrays import BoolArray, DoubleArray, FloatArray
from weakspot.core.dataset import SPLIT_ORDER, Split
from weakspot.core.failures import class_problems
from weakspot.core.heads import Head, RepairMaterial, TrainingSelection, class_parts
from weakspot.core.registry import registered
from weakspot.core.repairs import GroupChange, GroupKind, RepairArm
from weakspot.repair.bench import GROUP_METHODS, PENALTIES, best_penalty, groups_of
from weakspot.repair.measure import measure_arm
from weakspot.repair.training.trainer import HeadTrainer

FEATURES = "features"
LEFT_OUT = ("plain", "synthetic")


def training_methods() -> tuple[str, ...]:
    """Return the registered strategies that only weigh training samples."""
    return tuple(
        name
        for name in registered("repairers")
        if name not in (*LEFT_OUT, *GROUP_METHODS) and "pool-" not in name
    )


def pool_methods() -> tuple[str, ...]:
    """Return the registered strategies that choose from a pool."""
    return tuple(name for name in registered("repairers") if name.startswith("pool-"))


@dataclass(frozen=True, kw_only=True, eq=False)
class Workshop:
    """A case and the slices to repair in it.

    Args:
        case: samples and truth.
        given: what to repair.
        budget: how many pool samples may be added.
        penalties: what the penalty is chosen from, on validation samples.
        seed: the only source of chance.
    """

    case: RepairCase
    given: GivenSlices
    budget: int = 0
    penalties: tuple[float, ...] = PENALTIES
    seed: int = 0

    @cached_property
    def material(self) -> RepairMaterial:
        """Return what strategies choose from."""
        case = self.case
        problems = class_problems(case.confirmation.dataset, case.confirmation.rows, case.criterion)
        return RepairMaterial(
            training=case.training,
            pool=case.pool if self.budget and len(case.pool) else None,
            budget=self.budget,
            evidence={entry.slice_id: entry for entry in self.given.evidence},
            n_failures=sum(problem.n_failed for problem in problems),
            seed=self.seed,
            assistants=case.assistants,
        )

    def trained(self, selection: TrainingSelection) -> tuple[Head, float]:
        """Return the last layer with the penalty whose mean accuracy over the groups of validation samples is the largest."""
        heads = {penalty: self._head(selection, penalty) for penalty in self.penalties}
        if len(heads) == 1:
            return next((head, penalty) for penalty, head in heads.items())
        case, rows = self.case, self.case.validation.rows
        penalty = best_penalty(
            heads,
            case.samples.embeddings(FEATURES, rows),
            case.samples.dataset.labels[rows],
            self._groups,
        )
        return heads[penalty], penalty

    def measured(self, arm: str, selection: TrainingSelection) -> tuple[RepairArm, float]:
        """Return how an arm does on the true slices of the test samples, and its penalty."""
        head, penalty = self.trained(selection)
        return self.answered(arm, head, n_trained=len(selection.rows), note=selection.note), penalty

    def answered(self, arm: str, head: Head, *, n_trained: int, note: str = "") -> RepairArm:
        """Return how a last layer does on the true slices of the test samples."""
        features = self.case.samples.embeddings(FEATURES, self.case.test.rows)
        return self.said(arm, head.probabilities(features), n_trained=n_trained, note=note)

    def said(
        self, arm: str, probabilities: FloatArray, *, n_trained: int = 0, note: str = ""
    ) -> RepairArm:
        """Return how answers [n, c] on the test samples do on their true slices."""
        done = RepairArm(arm=arm, is_baseline=False, note=note, n_trained=n_trained, changes=())
        return measure_arm(
            done, probabilities, self.case.truths, self.case.test, self.case.criterion
        )

    def _head(self, selection: TrainingSelection, penalty: float) -> Head:
        dataset = self.case.samples.dataset
        return (
            HeadTrainer(penalty=penalty)
            .train(
                self.case.samples.embeddings(FEATURES, selection.rows),
                dataset.label_matrix[selection.rows],
                selection.weights,
                task=dataset.task,
                group_objectives=selection.group_objectives,
            )
            .head
        )

    @cached_property
    def _groups(self) -> tuple[BoolArray, ...]:
        """Return the slices to repair, the rest of their classes and all other classes, among validation samples."""
        return tuple(groups_of(self.given.slices, self.case.validation))


def n_added(selection: TrainingSelection, case: RepairCase) -> int:
    """Return how many of the chosen samples come from the pool."""
    return int(np.sum(case.samples.dataset.splits[selection.rows] == SPLIT_ORDER.index(Split.POOL)))


def accuracies(arm: RepairArm, case: RepairCase) -> dict[str, float]:
    """Return slice (all true slices together), rest, overall, worst group and training mix of an arm, and their changes."""
    parts = {kind: [change for change in arm.changes if change.kind is kind] for kind in GroupKind}
    classes = {found.class_name for found in case.truths}
    others = [change for change in parts[GroupKind.CLASS] if change.group not in classes]
    groups = [*parts[GroupKind.SLICE], *parts[GroupKind.COMPLEMENT], *others]
    shares = _training_shares(case, [change.group for change in others])
    values: dict[str, float] = {}
    for when in ("before", "after"):
        rates = np.array([getattr(change, f"accuracy_{when}") for change in groups])
        values[f"slice {when}"] = _pooled(parts[GroupKind.SLICE], when)
        values[f"rest {when}"] = _pooled(parts[GroupKind.COMPLEMENT], when)
        values[f"overall {when}"] = _pooled(parts[GroupKind.OVERALL], when)
        values[f"worst {when}"] = float(np.nanmin(rates))
        values[f"training mix {when}"] = float(np.nansum(rates * shares))
    names = ("slice", "rest", "overall", "worst", "training mix")
    return values | {
        f"{name} change": values[f"{name} after"] - values[f"{name} before"] for name in names
    }


def _pooled(changes: Sequence[GroupChange], when: str) -> float:
    total = sum(change.n_samples for change in changes)
    return (
        float(sum(getattr(change, f"right_{when}") for change in changes) / total)
        if total
        else float("nan")
    )


def _training_shares(case: RepairCase, others: Sequence[str]) -> DoubleArray:
    """Return the share of every true slice, rest of its class and other class among training samples, in this order."""
    parts = list(class_parts(case.truths, case.training))
    dataset, rows = case.samples.dataset, case.training.rows
    sizes = [len(inside) for one in parts for inside in one.inside] + [
        len(one.outside) for one in parts
    ]
    sizes += [int(np.sum(dataset.labels[rows] == dataset.class_code(name))) for name in others]
    return np.array(sizes, dtype=np.float64) / max(sum(sizes), 1)


def options_for(name: str, column: str) -> Mapping[str, JsonValue]:
    """Return the options that a strategy needs."""
    return {"column": column} if name in GROUP_METHODS else {}
