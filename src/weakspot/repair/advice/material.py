"""What a learning curve of a kind is drawn from, small enough that it takes seconds however large the data set is."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray, FloatArray, IntArray, even_part
from weakspot.core.dataset import Split, Task
from weakspot.core.failures import FailureCriterion, class_problems, predicted_classes
from weakspot.core.heads import Head
from weakspot.core.samples import SampleSet
from weakspot.pipeline.preparation import FEATURES
from weakspot.repair.advice.kinds import ImageKind
from weakspot.repair.advice.learning_curve import CurveMaterial, Judge, LabelledFeatures
from weakspot.repair.advice.likeness import with_embedding
from weakspot.repair.head_training import HeadTrainer

MOST_TRAINING = 1_500
LEAST_OF_A_PART = 20
MOST_KIND = 200
MOST_OTHERS = 1_000
MOST_CLASSES = 20
TOLERANCE = 1e-3


@dataclass(frozen=True, kw_only=True, eq=False)
class CurveBuilder:
    """Builds the material of learning curves.

    Args:
        samples: all samples, with features.
        criterion: what counts as a failure.
        start: the classifier's own last layer, rows in the order of the data set's classes; None if it is not known.
        penalty: of the layers that repairs train; None: the one that fits `start`.
    """

    samples: SampleSet
    criterion: FailureCriterion
    start: Head | None = None
    penalty: float | None = None

    def material(self, kind: ImageKind) -> CurveMaterial | None:
        """Return what the curve of a kind is drawn from; None if nothing can be trained, or an answer cannot be judged."""
        dataset = self.samples.dataset
        rows = dataset.rows_of(Split.TRAIN)
        rows = with_embedding(self.samples, rows[dataset.is_labelled[rows]], FEATURES)
        codes = self._codes(kind)
        if dataset.task is Task.SINGLE_LABEL:
            rows = rows[np.isin(dataset.labels[rows], codes)]
        own = kind.training if kind.training is not None else rows[:0]
        chosen, weights = thinned(rows, self._strata(rows, own, codes))
        if not len(chosen):
            return None
        start = None if self.start is None else _rows_of(self.start, codes)
        training = self._labelled(chosen, codes, weights=weights)
        return CurveMaterial(
            training=training,
            kind=self._kind(kind, codes),
            others=self._others(kind, codes),
            trainer=self._trainer(training, start),
            task=dataset.task,
            n_classes=len(codes),
            judge=self._judge(codes),
            is_kind=np.isin(chosen, own),
            is_class=kind.is_of_class(chosen),
            start=start,
        )

    def _codes(self, kind: ImageKind) -> IntArray:
        """Return the classes that matter: the label alone of a multi-label task, all classes, or those that the kind is taken for."""
        dataset = self.samples.dataset
        own = dataset.class_code(kind.class_name)
        if dataset.task is Task.MULTI_LABEL:
            return np.array([own])
        if dataset.n_classes <= MOST_CLASSES:
            return np.arange(dataset.n_classes)
        taken = np.bincount(
            predicted_classes(dataset, kind.rows), minlength=dataset.n_classes
        ).astype(np.float64)
        if dataset.probabilities is not None and len(kind.rows):
            taken += np.nan_to_num(np.asarray(dataset.probabilities)[kind.rows]).mean(axis=0)
        taken[own] = np.inf
        if self.criterion.kind == "target" and self.criterion.target in dataset.class_names:
            taken[dataset.class_code(self.criterion.target or "")] = np.inf
        return np.sort(np.argsort(-taken, kind="stable")[:MOST_CLASSES])

    def _strata(self, rows: IntArray, own: IntArray, codes: IntArray) -> IntArray:
        """Return the part of every training row [n]: its class, and whether it is of the kind."""
        targets = self._targets(rows, codes)
        classes = targets if targets.ndim == 1 else targets[:, 0].astype(np.int64)
        return np.asarray(2 * classes + np.isin(rows, own), dtype=np.int64)

    def _targets(self, rows: IntArray, codes: IntArray) -> AnyArray:
        dataset = self.samples.dataset
        if dataset.task is Task.MULTI_LABEL:
            return dataset.label_matrix[rows][:, codes]
        return np.searchsorted(codes, dataset.labels[rows])

    def _labelled(
        self,
        rows: IntArray,
        codes: IntArray,
        *,
        weights: DoubleArray | None = None,
        was_right: BoolArray | None = None,
    ) -> LabelledFeatures:
        return LabelledFeatures(
            features=self.samples.embeddings(FEATURES, rows),
            targets=self._targets(rows, codes),
            weights=np.ones(len(rows)) if weights is None else weights,
            was_right=np.zeros(len(rows), dtype=np.bool_) if was_right is None else was_right,
            groups=self.samples.dataset.groups[rows],
        )

    def _kind(self, kind: ImageKind, codes: IntArray) -> LabelledFeatures:
        known = np.flatnonzero(self.samples.has_embeddings(FEATURES, kind.rows))
        places = even_part(known, MOST_KIND)
        return self._labelled(kind.rows[places], codes, was_right=~kind.failed[places])

    def _others(self, kind: ImageKind, codes: IntArray) -> LabelledFeatures:
        """Return other samples of the half, of the classes that matter."""
        dataset = self.samples.dataset
        single = dataset.task is Task.SINGLE_LABEL
        problems = [
            one
            for one in class_problems(dataset, kind.discovery.rows, self.criterion)
            if single or one.class_name == kind.class_name
        ]
        rows = np.concatenate([np.zeros(0, np.int64), *(one.rows for one in problems)])
        failed = np.concatenate([np.zeros(0, np.bool_), *(one.failed for one in problems)])
        is_other = ~np.isin(rows, kind.rows)
        if single:
            is_other &= np.isin(dataset.labels[rows], codes)
        is_other &= self.samples.has_embeddings(FEATURES, rows)
        places = even_part(np.flatnonzero(is_other), MOST_OTHERS)
        return self._labelled(rows[places], codes, was_right=~failed[places])

    def _judge(self, codes: IntArray) -> Judge:
        dataset, criterion = self.samples.dataset, self.criterion
        if dataset.task is Task.SINGLE_LABEL:
            names = [dataset.class_names[code] for code in codes]
            return lambda answers, targets: ~criterion.failed_predictions(answers, targets, names)
        bar = 0.5 if dataset.thresholds is None else float(dataset.thresholds[codes[0]])

        def judge(answers: FloatArray, targets: AnyArray) -> BoolArray:
            truth = targets[:, 0]
            if criterion.kind == "low-confidence":
                sure = np.where(truth, answers[:, 0], 1.0 - answers[:, 0])
                return np.greater_equal(sure, criterion.threshold)
            return np.equal(answers[:, 0] >= bar, truth)

        return judge

    def _trainer(self, training: LabelledFeatures, start: Head | None) -> HeadTrainer:
        trainer = HeadTrainer(tolerance=TOLERANCE)
        if self.penalty is not None:
            return replace(trainer, penalty=self.penalty)
        if start is None:
            return trainer
        return trainer.matched(training.features, training.targets, start)


def thinned(rows: IntArray, parts: IntArray) -> tuple[IntArray, DoubleArray]:
    """Return at most about `MOST_TRAINING` rows, and how many each of them stands for.

    Args:
        rows: training rows.
        parts: the part of every row; of small parts all rows stay.
    """
    if len(rows) <= MOST_TRAINING:
        return rows, np.ones(len(rows))
    share = MOST_TRAINING / len(rows)
    chosen: list[IntArray] = []
    weights: list[DoubleArray] = []
    for part in np.unique(parts):
        own = rows[parts == part]
        kept = even_part(own, max(LEAST_OF_A_PART, round(share * len(own))))
        chosen.append(kept)
        weights.append(np.full(len(kept), len(own) / len(kept)))
    return np.concatenate(chosen), np.concatenate(weights)


def _rows_of(head: Head, codes: Sequence[int] | IntArray) -> Head:
    return replace(head, weights=head.weights[codes], bias=head.bias[codes])
