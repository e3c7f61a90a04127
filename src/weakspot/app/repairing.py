"""The repair stage: every arm is selected, trained and measured in the same way."""

import io
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from weakspot.app.config import Settings
from weakspot.app.preparation import OWN, Prepared
from weakspot.app.wiring import build_part, build_repairer
from weakspot.core.arrays import FloatArray, IntArray
from weakspot.core.dataset import Split
from weakspot.core.failures import FailureCriterion, best_f1_thresholds
from weakspot.core.heads import Head
from weakspot.core.repairs import RepairArm, RepairOutcome, RepairPlan
from weakspot.core.roles import Repairer
from weakspot.core.run import ClassNote, RunRecord
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.core.training_sets import TrainingSelection
from weakspot.repair.head_training import HeadTrainer
from weakspot.repair.measure import ArmAnswers, measure_arm, untouched
from weakspot.store.project import ProjectStore

BASELINES = ("plain", "random", "confidence")
HEAD_FILE = "repaired_head.npz"


def repair_slices(
    record: RunRecord, prepared: Prepared, settings: Settings, criterion: FailureCriterion, store: ProjectStore
) -> RunRecord:
    """Repair the confirmed slices of a run; without any, or without features, the record says why nothing was done."""
    samples, classifier = prepared.samples, prepared.classifier
    slices = [found for found, evidence in record.published() if evidence.explained is None]
    obstacle = _obstacle(slices, samples)
    if obstacle:
        note = ClassNote(class_name="repair", note=obstacle)
        return record.model_copy(
            update={"repairs": (), "notes": (*(old for old in record.notes if old.class_name != "repair"), note)}
        )
    work = _Repair(samples, settings, criterion, slices, classifier.head if classifier is not None else None)
    arms, head = work.run()
    with store.writing():
        store.runs.save_artefact(record.run_id, HEAD_FILE, _head_bytes(head, samples.dataset.class_names))
    outcome = RepairOutcome(plan=work.plan, measured_on=_use(work.measured), arms=arms, head_file=HEAD_FILE)
    return record.model_copy(update={"repairs": (outcome,)})


def _obstacle(slices: Sequence[FailureSlice], samples: SampleSet) -> str:
    if not slices:
        return "No slice was confirmed, so there is nothing to repair."
    if OWN not in samples.spaces:
        return "The features under the classifier's last layer are not known, so it cannot be retrained here."
    if not len(samples.dataset.rows_of(Split.TRAIN)):
        return "There are no training samples to retrain the last layer on."
    if not len(samples.dataset.rows_of(Split.TEST)):
        return "There are no test samples to measure a repair on."
    return ""


class _Repair:
    """One repair with its baselines."""

    def __init__(
        self,
        samples: SampleSet,
        settings: Settings,
        criterion: FailureCriterion,
        slices: Sequence[FailureSlice],
        start: Head | None,
    ) -> None:
        self._samples = samples
        self._settings = settings
        self._criterion = criterion
        self._slices = slices
        self._start = start
        self._training = self._with_features(Split.TRAIN, "training samples")
        pool = self._with_features(Split.POOL, "pool")
        self._pool = pool if len(pool) else None
        self._validation = self._with_features(Split.VALIDATION, "validation samples")
        used = [self._training.rows, pool.rows, samples.dataset.rows_of(*[Split(name) for name in settings.verify.splits])]
        self.measured = untouched(self._with_features(Split.TEST, "test samples"), used)

    @property
    def plan(self) -> RepairPlan:
        """Return what is going to be changed."""
        repair = self._settings.repair
        return RepairPlan(
            slice_ids=tuple(found.slice_id for found in self._slices),
            repairer=repair.method,
            parameters=repair.parameters,
            budget=repair.budget,
            seed=self._settings.seed,
            trained_on=_use(self._training),
        )

    def run(self) -> tuple[tuple[RepairArm, ...], Head]:
        """Return all arms, the repair first, and its head."""
        chosen = self._settings.repair.method
        repaired, head = self._arm(chosen, build_repairer(self._settings))
        others = [name for name in BASELINES if name != chosen]
        baselines = [self._arm(name, build_part("repairers", name, {}, where="baseline"))[0] for name in others]
        return (repaired, *baselines), head

    def _arm(self, name: str, repairer: Repairer) -> tuple[RepairArm, Head]:
        settings = self._settings
        selection = repairer.select(
            self._slices, training=self._training, pool=self._pool, budget=settings.repair.budget, seed=settings.seed
        )
        head = self._trained(selection)
        answers = ArmAnswers(
            arm=name,
            is_baseline=name != settings.repair.method,
            note=selection.note,
            n_trained=len(selection.rows),
            probabilities=head.probabilities(self._samples.vectors(OWN, self.measured.rows)),
            thresholds=self._thresholds(head),
        )
        return measure_arm(answers, self._slices, self.measured, self._criterion), head

    def _trained(self, selection: TrainingSelection) -> Head:
        dataset = self._samples.dataset
        features = self._samples.vectors(OWN, selection.rows)
        targets = dataset.label_matrix[selection.rows]
        return self._trainer.train(features, targets, selection.weights, task=dataset.task, start=self._start).head

    @cached_property
    def _trainer(self) -> HeadTrainer:
        """Return a trainer whose penalty is the given one, or else fits the classifier's own head: arms differ in weights only."""
        penalty = self._settings.repair.l2
        if penalty:
            return HeadTrainer(penalty=penalty)
        if self._start is None:
            return HeadTrainer()
        rows = self._training.rows[self._samples.dataset.is_labelled[self._training.rows]]
        return HeadTrainer().matched(self._samples.vectors(OWN, rows), self._samples.dataset.label_matrix[rows], self._start)

    def _thresholds(self, head: Head) -> FloatArray | None:
        """Return multi-label thresholds chosen on validation samples, as for the classifier itself."""
        dataset = self._samples.dataset
        if dataset.thresholds is None or not len(self._validation):
            return None
        probabilities = head.probabilities(self._samples.vectors(OWN, self._validation.rows))
        return best_f1_thresholds(probabilities, dataset.label_matrix[self._validation.rows])

    def _with_features(self, split: Split, name: str) -> SampleSet:
        samples = self._samples
        rows: IntArray = samples.dataset.rows_of(split)
        is_known = np.isfinite(np.asarray(samples.space(OWN).vectors[rows])).all(axis=1)
        return samples.only(rows[is_known], name=name)


def _use(samples: SampleSet) -> DataUse:
    return DataUse(name=samples.name, n_samples=len(samples), digest=samples.digest())


def _head_bytes(head: Head, class_names: tuple[str, ...]) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, weights=head.weights, bias=head.bias, class_names=np.array(class_names))
    return stream.getvalue()
