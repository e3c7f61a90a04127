"""One project's repair bench: the material that strategies choose from, the trainer and the measurement that all arms share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from pydantic import JsonValue

from weakspot.core.arrays import BoolArray, FloatArray, IntArray
from weakspot.core.dataset import SPLIT_ORDER, Split, Task
from weakspot.core.evidence import Evidence
from weakspot.core.failures import (
    ClassProblem,
    FailureCriterion,
    best_f1_thresholds,
    class_problems,
)
from weakspot.core.heads import Head
from weakspot.core.repairs import RepairArm, RepairPlan
from weakspot.core.roles import Repairer
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.core.training_sets import RepairMaterial, TrainingSelection
from weakspot.pipeline.halves import Halves, used_rows
from weakspot.pipeline.preparation import FEATURES, Prepared
from weakspot.pipeline.settings import Settings
from weakspot.pipeline.wiring import build_part
from weakspot.repair.calibration import calibrated
from weakspot.repair.contamination import refuse_contamination
from weakspot.repair.head_training import HeadTrainer, TrainedHead
from weakspot.repair.measure import ArmAnswers, Elsewhere, measure_arm, untouched
from weakspot.repair.penalty_choice import PENALTIES, best_penalty, groups_of

PAPER_DECAY = 5e-4
GROUP_METHODS = ("dfr-subsample", "dfr-upsample", "group-dro")


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedHead:
    """A retrained last layer, ready to be applied.

    Args:
        head: the layer, calibrated if that was asked for.
        temperature: what its logits were divided by, None if they were not.
        thresholds: multi-label decision thresholds chosen on validation samples, None for the classifier's own.
        missing: classes that had no training sample.
    """

    head: Head
    temperature: float | None = None
    thresholds: FloatArray | None = None
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class RepairBench:
    """Everything that the arms of a repair share, so that they differ only in what they chose.

    Args:
        prepared: samples and models.
        settings: of the project.
        criterion: what counts as a failure.
        slices: what to repair.
        evidence: what was measured of them.
    """

    prepared: Prepared
    settings: Settings
    criterion: FailureCriterion
    slices: tuple[FailureSlice, ...]
    evidence: tuple[Evidence, ...]

    @classmethod
    def of(
        cls,
        prepared: Prepared,
        settings: Settings,
        criterion: FailureCriterion,
        slices: Sequence[FailureSlice],
        evidence: Sequence[Evidence] = (),
    ) -> "RepairBench":
        """Return the bench of a project, after refusing pool or generated images that are also measured on."""
        dataset = prepared.samples.dataset
        refuse_contamination(
            dataset,
            training=dataset.rows_of(Split.TRAIN),
            pool=dataset.rows_of(Split.POOL) if settings.repair.budget else None,
            synthetic=dataset.rows_of(Split.SYNTHETIC),
            verifying=dataset.rows_of(Split.VALIDATION, Split.TEST),
        )
        return cls(prepared, settings, criterion, tuple(slices), tuple(evidence))

    @property
    def samples(self) -> SampleSet:
        return self.prepared.samples

    @cached_property
    def material(self) -> RepairMaterial:
        """Return what strategies choose from: samples whose features are known."""
        budget = self.settings.repair.budget
        pool, synthetic = (
            self._with_features(Split.POOL, "pool"),
            self._with_features(Split.SYNTHETIC, "generated samples"),
        )
        return RepairMaterial(
            training=self._with_features(Split.TRAIN, "training samples"),
            pool=pool if len(pool) else None,
            synthetic=synthetic if len(synthetic) else None,
            budget=budget,
            evidence={entry.slice_id: entry for entry in self.evidence},
            n_failures=sum(problem.n_failed for problem in self._confirmation_problems),
            seed=self.settings.seed,
            assistants=self.prepared.assistants,
        )

    @cached_property
    def measured(self) -> SampleSet:
        """Return the samples that decide: of the test split, none of whose images was trained, chosen or looked at before."""
        dataset = self.samples.dataset
        used = [
            dataset.rows_of(Split.TRAIN, Split.POOL, Split.SYNTHETIC),
            used_rows(self.samples, self.settings),
        ]
        return untouched(self._with_features(Split.TEST, "test samples"), used)

    @cached_property
    def pairs(self) -> Halves:
        """Return the halves that slices were found and confirmed on."""
        return self.prepared.halves(self.settings, self.criterion, slices=self.slices)

    def parameters(self, method: str) -> dict[str, JsonValue]:
        """Return the parameters of a strategy: given ones for the chosen strategy, the column of group labels for references."""
        chosen = self.settings.repair
        given = dict(chosen.parameters) if method == chosen.method else {}
        if method in GROUP_METHODS and chosen.groups:
            given.setdefault("column", chosen.groups)
        return given

    def repairer(self, method: str, parameters: Mapping[str, JsonValue]) -> Repairer:
        """Return a strategy, ready to choose."""
        part: Repairer = build_part("repairers", method, parameters, where="[repair] parameters")
        return part

    def selection(
        self, method: str, parameters: Mapping[str, JsonValue] | None = None
    ) -> TrainingSelection:
        """Return what a strategy chooses."""
        given = self.parameters(method) if parameters is None else parameters
        return self.repairer(method, given).select(self.slices, self.material)

    def targets(self, rows: IntArray) -> IntArray | BoolArray:
        """Return class codes [n] of a single-label task, which take little memory, or labels [n, c] of a multi-label one."""
        dataset = self.samples.dataset
        return (
            dataset.labels[rows]
            if dataset.task is Task.SINGLE_LABEL
            else dataset.label_matrix[rows]
        )

    def unlabelled(self, selection: TrainingSelection) -> IntArray:
        """Return the chosen rows that have no label yet."""
        rows: IntArray = selection.rows[~self.samples.dataset.is_labelled[selection.rows]]
        return rows

    def plan(self, method: str) -> RepairPlan:
        """Return what a strategy is going to change."""
        repair = self.settings.repair
        return RepairPlan(
            slice_ids=tuple(found.slice_id for found in self.slices),
            repairer=method,
            parameters=self.parameters(method),
            budget=repair.budget,
            seed=self.settings.seed,
            trained_on=DataUse.of(self.material.training),
            penalty=self.trainer.penalty,
            solver=repair.solver,
            is_tuned=repair.tune,
        )

    def fitted(self, selection: TrainingSelection) -> FittedHead:
        """Return the last layer trained on a selection; calibration, thresholds and tuning come from validation samples."""
        dataset, rows = self.samples.dataset, self._validation.rows
        if self.settings.repair.tune and len(rows) and dataset.task is Task.SINGLE_LABEL:
            tried = {
                penalty: self._train(selection, replace(self.trainer, penalty=penalty))
                for penalty in PENALTIES
            }
            heads = {penalty: one.head for penalty, one in tried.items()}
            groups = groups_of(self.slices, self._validation)
            trained = tried[
                best_penalty(
                    heads, self.samples.embeddings(FEATURES, rows), dataset.labels[rows], groups
                )
            ]
        else:
            trained = self._train(selection, self.trainer)
        head, temperature = trained.head, None
        if self.settings.repair.calibrate and len(rows):
            head, temperature = calibrated(
                head, self.samples.embeddings(FEATURES, rows), self.targets(rows)
            )
        missing = tuple(dataset.class_names[code] for code in trained.missing_classes)
        return FittedHead(
            head=head, temperature=temperature, thresholds=self._thresholds(head), missing=missing
        )

    def _train(self, selection: TrainingSelection, trainer: HeadTrainer) -> TrainedHead:
        dataset, rows = self.samples.dataset, selection.rows
        return trainer.train(
            self.samples.embeddings(FEATURES, rows),
            self.targets(rows),
            selection.weights,
            task=dataset.task,
            start=self.start,
            group_objectives=selection.group_objectives,
            n_classes=dataset.n_classes,
        )

    def arm(
        self,
        name: str,
        selection: TrainingSelection,
        *,
        is_baseline: bool,
        fitted: FittedHead | None = None,
    ) -> RepairArm:
        """Return one way of retraining, measured."""
        ready = fitted or self.fitted(selection)
        splits = self.samples.dataset.splits[selection.rows]
        note = selection.note
        if ready.missing:
            note = f"{note} No training sample: {', '.join(ready.missing)}."
        answers = ArmAnswers(
            arm=name,
            is_baseline=is_baseline,
            note=note,
            n_trained=len(selection.rows),
            probabilities=self._answers(ready.head, self.measured),
            thresholds=ready.thresholds,
            n_added=int(np.sum(splits == SPLIT_ORDER.index(Split.POOL))),
            n_synthetic=int(np.sum(splits == SPLIT_ORDER.index(Split.SYNTHETIC))),
            temperature=ready.temperature,
        )
        elsewhere = [
            Elsewhere(samples=half, probabilities=self._answers(ready.head, half))
            for half in self._halves
        ]
        return measure_arm(
            answers,
            self.slices,
            self.measured,
            self.criterion,
            elsewhere=elsewhere,
            column=self.settings.repair.groups,
            seed=self.settings.seed,
        )

    def reference_arm(self, name: str, note: str, probabilities: FloatArray) -> RepairArm:
        """Return a way of answering that retrains nothing, measured; probabilities [n, c] are of all rows of the project."""
        answers = ArmAnswers(
            arm=name,
            is_baseline=True,
            note=note,
            n_trained=0,
            probabilities=probabilities[self.measured.rows],
        )
        elsewhere = [
            Elsewhere(samples=half, probabilities=probabilities[half.rows]) for half in self._halves
        ]
        arm = measure_arm(
            answers,
            self.slices,
            self.measured,
            self.criterion,
            elsewhere=elsewhere,
            column=self.settings.repair.groups,
            seed=self.settings.seed,
        )
        return arm.model_copy(update={"is_reference": True})

    @cached_property
    def start(self) -> Head | None:
        """Return the classifier's own last layer, in the data set's order of classes."""
        classifier = self.prepared.classifier
        if classifier is None or classifier.head is None:
            return None
        names = self.samples.dataset.class_names
        return classifier.head.reordered(classifier.class_names or names, names)

    @cached_property
    def trainer(self) -> HeadTrainer:
        """Return a trainer whose penalty is the given one, or else fits the classifier's own head: arms differ in weights only."""
        repair = self.settings.repair
        trainer = HeadTrainer(solver=repair.solver)
        if repair.l2 or repair.solver == "sgd":
            return replace(trainer, penalty=repair.l2 or PAPER_DECAY)
        rows = self.material.labelled
        if self.start is None or not len(rows):
            return trainer
        found = HeadTrainer().matched(
            self.samples.embeddings(FEATURES, rows), self.targets(rows), self.start
        )
        return replace(trainer, penalty=found.penalty)

    def _answers(self, head: Head, samples: SampleSet) -> FloatArray:
        return self.samples.by_blocks(FEATURES, samples.rows, head.probabilities)

    def _thresholds(self, head: Head) -> FloatArray | None:
        """Return multi-label thresholds chosen on validation samples, as for the classifier itself."""
        dataset, rows = self.samples.dataset, self._validation.rows
        if dataset.thresholds is None or not len(rows):
            return None
        return best_f1_thresholds(self._answers(head, self._validation), dataset.label_matrix[rows])

    @cached_property
    def _validation(self) -> SampleSet:
        known = self._with_features(Split.VALIDATION, "validation samples")
        return known.only(known.rows[self.samples.dataset.is_labelled[known.rows]])

    @cached_property
    def _halves(self) -> tuple[SampleSet, ...]:
        """Return the halves of the first fold, of samples whose features and predictions are known."""
        found = []
        for half in self.pairs[0]:
            known = self.samples.has_embeddings(FEATURES, half.rows)
            if self.samples.dataset.predictions is not None:
                known &= self.samples.dataset.predictions[half.rows] >= 0
            found.append(half.only(half.rows[known]))
        return tuple(half for half in found if len(half))

    @cached_property
    def _confirmation_problems(self) -> tuple[ClassProblem, ...]:
        return class_problems(self.samples.dataset, self.pairs[0][1].rows, self.criterion)

    def _with_features(self, split: Split, name: str) -> SampleSet:
        rows: IntArray = self.samples.dataset.rows_of(split)
        return self.samples.only(rows[self.samples.has_embeddings(FEATURES, rows)], name=name)
