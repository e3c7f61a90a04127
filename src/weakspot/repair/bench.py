"""One project's repair bench: the material that strategies choose from, the trainer and the measurement that all arms share.

Material that would make a repair look better than it is is refused here; penalty and temperature are chosen here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
from pydantic import JsonValue

from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray, FloatArray, IntArray
from weakspot.core.dataset import SPLIT_ORDER, Dataset, Split, Task
from weakspot.core.errors import DataError
from weakspot.core.evidence import Evidence
from weakspot.core.failures import (
    FailureCriterion,
    best_f1_thresholds,
    class_problems,
)
from weakspot.core.generated import MAKER, MARK, is_generated
from weakspot.core.heads import Head, RepairMaterial, TrainingSelection, class_parts
from weakspot.core.repairs import RepairArm, RepairPlan
from weakspot.core.roles import Repairer
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.repair.measure import is_image_of, measure_arm, untouched
from weakspot.repair.training.trainer import HeadTrainer, TrainedHead
from weakspot.run.halves import Halves, used_rows
from weakspot.run.preparation import FEATURES, Prepared
from weakspot.run.settings import Settings
from weakspot.run.wiring import build_part

MAX_NAMED = 5


def refuse_contamination(
    dataset: Dataset,
    *,
    training: IntArray,
    pool: IntArray | None,
    synthetic: IntArray | None,
    verifying: IntArray,
) -> None:
    """Refuse a repair whose training material is also what slices are verified or the repair is measured on.

    Training images that are repeated under another row of the verifying samples are not refused: they are left out of what is
    measured, and counted there. Pool and generated images are added on purpose, so for them it is a mistake to be fixed.

    Args:
        dataset: all samples.
        training: rows that the classifier was trained on.
        pool: rows that may be added.
        synthetic: generated rows that may be added.
        verifying: rows of the validation and test splits.

    Raises:
        DataError: if a training row is a verifying row, if a pool or generated image is also a verifying one, or if a
            generated image stands among the verifying samples. It names the samples.
    """
    nothing = np.zeros(0, dtype=np.int64)
    _refuse(
        dataset,
        training[np.isin(training, verifying)],
        "Samples that were trained on are also in the validation or test split",
        "Give every sample one split.",
    )
    _refuse(
        dataset,
        verifying[_is_generated(dataset, verifying)],
        "Generated samples are in the validation or test split",
        f"Give generated samples the split {Split.SYNTHETIC.value!r}, or leave them out; only real samples can verify.",
    )
    for rows, name in ((pool, "pool samples"), (synthetic, "generated samples")):
        added = nothing if rows is None else rows
        _refuse(
            dataset,
            added[is_image_of(dataset, added, verifying) | np.isin(added, verifying)],
            f"Images of {name} are also in the validation or test split",
            "Take them out of one of the two and ingest again; a repair that saw an image cannot be measured on it.",
        )


def _refuse(dataset: Dataset, rows: IntArray, what: str, fix: str) -> None:
    if not len(rows):
        return
    named = rows[:MAX_NAMED]
    keys = dataset.table.column("key").take(pa.array(named)).to_pylist()
    splits = [SPLIT_ORDER[code].value for code in dataset.splits[named].tolist()]
    given = [f"{key} ({split})" for key, split in zip(keys, splits, strict=True)]
    more = [f"and {len(rows) - MAX_NAMED} more"] if len(rows) > MAX_NAMED else []
    raise DataError(
        f"{what}: {len(rows)} in all.", where="the data set", given=[*given, *more], fix=fix
    )


def _is_generated(dataset: Dataset, rows: IntArray) -> BoolArray:
    found = np.asarray(dataset.splits[rows] == SPLIT_ORDER.index(Split.SYNTHETIC), dtype=np.bool_)
    names = [name for name in (MARK, MAKER) if name in dataset.metadata_names]
    if not names or not len(rows):
        return found
    columns = [dataset.metadata(name).take(pa.array(rows)).combine_chunks() for name in names]
    coded = [column.dictionary_encode(null_encoding="encode") for column in columns]
    values = [column.dictionary.to_pylist() for column in coded]
    kinds, kind_of = np.unique(
        np.stack([np.asarray(column.indices) for column in coded]), axis=1, return_inverse=True
    )
    marks = [
        {name: value[place] for name, value, place in zip(names, values, kind, strict=True)}
        for kind in kinds.T.tolist()
    ]
    return (
        found | np.array([is_generated(one) for one in marks], dtype=np.bool_)[kind_of.reshape(-1)]
    )


MIN_SAMPLES = 20
COLDEST, HOTTEST = 0.05, 20.0
NEAR_AN_END = 1.02
MIN_GAIN = 1e-9
CHUNK_ROWS = 4_096


def calibrated(
    head: Head, features: FloatArray, targets: AnyArray, *, weights: DoubleArray | None = None
) -> tuple[Head, float]:
    """Return the head whose logits are divided by the temperature with the lowest loss on given samples, and that temperature.

    The samples must not be those the head was trained on. What a head predicts stays the same. Where samples cannot tell, the
    head comes back as it is, with temperature 1: fewer than 20 of them, all of one class, one without its label, logits that do
    not differ or are no numbers, or a loss that is lowest at no temperature between 0.05 and 20 (every sample right by far, or
    answers worse than chance).

    Args:
        head: the layer.
        features: [n, d].
        targets: which labels each sample has [n, c], or codes [n] for single-label tasks.
        weights: [n] what each sample counts; None for all alike.
    """
    truth = _label_matrix(targets, len(head.bias))
    counts = np.ones(len(truth)) if weights is None else np.asarray(weights, dtype=np.float64)
    _check(features, truth, counts, head)
    is_used = counts > 0
    truth, counts = truth[is_used], counts[is_used]
    logits = head.logits(features[is_used])
    if _is_degenerate(logits, truth, head.task):
        return head, 1.0
    temperature = _coolest(logits, truth, counts / counts.sum(), head.task)
    return (head, 1.0) if temperature is None else (head.cooled(temperature), temperature)


def _check(features: AnyArray, truth: BoolArray, counts: DoubleArray, head: Head) -> None:
    if not len(features) == len(truth) == len(counts):
        raise DataError(
            "Features, targets and weights must have the same length.",
            given=(len(features), len(truth), len(counts)),
        )
    if len(features) and np.shape(features)[1] != head.weights.shape[1]:
        raise DataError(
            "Features have another width than the head.",
            given=np.shape(features)[1],
            fix=f"{head.weights.shape[1]}.",
        )
    if not np.isfinite(counts).all() or np.any(counts < 0):
        raise DataError("Weights must be numbers that are not negative.")


def _label_matrix(targets: AnyArray, n_classes: int) -> BoolArray:
    given = np.asarray(targets)
    if given.ndim == 1:
        return np.asarray(given[:, None] == np.arange(n_classes))
    if given.shape[1] != n_classes:
        raise DataError(
            "Targets have another number of classes than the head.",
            given=given.shape[1],
            fix=f"{n_classes} columns.",
        )
    return np.asarray(given, dtype=np.bool_)


def _is_degenerate(logits: FloatArray, truth: BoolArray, task: Task) -> bool:
    if len(truth) < MIN_SAMPLES or not np.isfinite(logits).all():
        return True
    if task is Task.MULTI_LABEL:
        return bool(truth.all() or not truth.any() or not np.any(logits))
    is_labelled = truth.sum(axis=1) == 1
    return bool(
        not is_labelled.all()
        or np.count_nonzero(truth.any(axis=0)) <= 1
        or np.ptp(logits, axis=1).max() == 0
    )


def _coolest(logits: FloatArray, truth: BoolArray, shares: DoubleArray, task: Task) -> float | None:
    """Return the temperature with the lowest loss, None if that is no better than one, or lies at an end of what is looked at."""
    from scipy.optimize import minimize_scalar

    def loss(logarithm: float) -> float:
        return _loss(logits, truth, shares, factor=float(np.exp(-logarithm)), task=task)

    lowest = minimize_scalar(
        loss, bounds=(np.log(COLDEST), np.log(HOTTEST)), method="bounded", options={"xatol": 1e-5}
    )
    temperature = float(np.exp(lowest.x))
    is_inside = COLDEST * NEAR_AN_END < temperature < HOTTEST / NEAR_AN_END
    return temperature if is_inside and lowest.fun < loss(0.0) - MIN_GAIN else None


def _loss(
    logits: FloatArray, truth: BoolArray, shares: DoubleArray, *, factor: float, task: Task
) -> float:
    """Return the weighted mean loss of logits [n, c] times a factor."""
    total = 0.0
    for first in range(0, len(logits), CHUNK_ROWS):
        part = slice(first, first + CHUNK_ROWS)
        values, has = logits[part].astype(np.float64) * factor, truth[part]
        if task is Task.MULTI_LABEL:
            losses = np.logaddexp(0.0, np.where(has, -values, values)).sum(axis=1)
        else:
            values -= values.max(axis=1, keepdims=True)
            losses = np.log(np.exp(values).sum(axis=1)) - values[has]
        total += float(shares[part] @ losses)
    return total


PENALTIES = (1e-3, 1e-2, 1e-1)
_DIGITS = 9


def groups_of(slices: Sequence[FailureSlice], samples: SampleSet) -> list[BoolArray]:
    """Return the parts that slices and classes cut labelled samples of a single-label task into [n each], without empty ones."""
    labels = samples.dataset.labels[samples.rows]
    parts = {one.class_name: one.groups for one in class_parts(slices, samples)}
    groups: list[BoolArray] = []
    for code, name in enumerate(samples.dataset.class_names):
        groups += (
            [np.isin(samples.rows, rows) for rows in parts[name]]
            if name in parts
            else [labels == code]
        )
    return [group for group in groups if group.any()]


def best_penalty(
    heads: Mapping[float, Head], features: FloatArray, labels: IntArray, groups: Sequence[BoolArray]
) -> float:
    """Return the penalty whose head has the largest mean accuracy over groups; of equals the largest penalty."""

    def worth(head: Head) -> float:
        right = head.logits(features).argmax(axis=1) == labels
        return round(float(np.mean([right[group].mean() for group in groups])), _DIGITS)

    return max(heads, key=lambda penalty: (worth(heads[penalty]), penalty))


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
        slices: what to repair.
        evidence: what was measured of them.
    """

    prepared: Prepared
    settings: Settings
    slices: tuple[FailureSlice, ...] = ()
    evidence: tuple[Evidence, ...] = ()

    @classmethod
    def of(
        cls,
        prepared: Prepared,
        settings: Settings,
        slices: Sequence[FailureSlice] = (),
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
        return cls(prepared, settings, tuple(slices), tuple(evidence))

    @cached_property
    def criterion(self) -> FailureCriterion:
        return self.settings.failure.criterion()

    @property
    def samples(self) -> SampleSet:
        return self.prepared.samples

    @cached_property
    def material(self) -> RepairMaterial:
        """Return what strategies choose from: samples whose features are known."""
        pool = self._with_features(Split.POOL, "pool")
        synthetic = self._with_features(Split.SYNTHETIC, "generated samples")
        confirmation = class_problems(self.samples.dataset, self.pairs[0][1].rows, self.criterion)
        return RepairMaterial(
            training=self._with_features(Split.TRAIN, "training samples"),
            pool=pool if len(pool) else None,
            synthetic=synthetic if len(synthetic) else None,
            budget=self.settings.repair.budget,
            evidence={entry.slice_id: entry for entry in self.evidence},
            n_failures=sum(problem.n_failed for problem in confirmation),
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
        return self.prepared.halves(self.settings, self.criterion)

    def parameters(self, method: str) -> dict[str, JsonValue]:
        """Return the parameters of a strategy: given ones for the chosen strategy, the column of group labels for references."""
        chosen = self.settings.repair
        given = dict(chosen.parameters) if method == chosen.method else {}
        if method in GROUP_METHODS and chosen.groups:
            given.setdefault("column", chosen.groups)
        return given

    def selection(
        self, method: str, parameters: Mapping[str, JsonValue] | None = None
    ) -> TrainingSelection:
        """Return what a strategy chooses."""
        given = self.parameters(method) if parameters is None else parameters
        part: Repairer = build_part("repairers", method, given, where="[repair] parameters")
        return part.select(self.slices, self.material)

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
        features = self.samples.embeddings(FEATURES, rows)
        if self.settings.repair.tune and len(rows) and dataset.task is Task.SINGLE_LABEL:
            tried = {
                penalty: self._train(selection, replace(self.trainer, penalty=penalty))
                for penalty in PENALTIES
            }
            heads = {penalty: one.head for penalty, one in tried.items()}
            groups = groups_of(self.slices, self._validation)
            trained = tried[best_penalty(heads, features, dataset.labels[rows], groups)]
        else:
            trained = self._train(selection, self.trainer)
        head, temperature = trained.head, None
        if self.settings.repair.calibrate and len(rows):
            head, temperature = calibrated(head, features, self.targets(rows))
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
        arm = RepairArm(
            arm=name,
            is_baseline=is_baseline,
            note=note,
            n_trained=len(selection.rows),
            changes=(),
            n_added=int(np.sum(splits == SPLIT_ORDER.index(Split.POOL))),
            n_synthetic=int(np.sum(splits == SPLIT_ORDER.index(Split.SYNTHETIC))),
            temperature=ready.temperature,
        )
        return self._measure(
            arm, lambda samples: self._answers(ready.head, samples), ready.thresholds
        )

    def reference_arm(self, name: str, note: str, probabilities: FloatArray) -> RepairArm:
        """Return a way of answering that retrains nothing, measured; probabilities [n, c] are of all rows of the project."""
        arm = RepairArm(
            arm=name, is_baseline=True, note=note, n_trained=0, changes=(), is_reference=True
        )
        return self._measure(arm, lambda samples: probabilities[samples.rows])

    def _measure(
        self,
        arm: RepairArm,
        answers: Callable[[SampleSet], FloatArray],
        thresholds: FloatArray | None = None,
    ) -> RepairArm:
        return measure_arm(
            arm,
            answers(self.measured),
            self.slices,
            self.measured,
            self.criterion,
            thresholds=thresholds,
            elsewhere=[(half, answers(half)) for half in self._halves],
            column=self.settings.repair.groups,
            seed=self.settings.seed,
        )

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

    def _with_features(self, split: Split, name: str) -> SampleSet:
        rows: IntArray = self.samples.dataset.rows_of(split)
        return self.samples.only(rows[self.samples.has_embeddings(FEATURES, rows)], name=name)
