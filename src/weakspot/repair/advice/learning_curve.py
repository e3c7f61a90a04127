"""How much better a kind of image is served with more of it in training: the material, the curve, and a forecast with an interval."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from weakspot.core.arrays import (
    AnyArray,
    BoolArray,
    DoubleArray,
    FloatArray,
    IntArray,
    even_part,
    generator,
)
from weakspot.core.dataset import Split, Task
from weakspot.core.evidence import Interval
from weakspot.core.failures import FailureCriterion, class_problems, predicted_classes
from weakspot.core.heads import Head
from weakspot.core.samples import SampleSet
from weakspot.repair.advice.kinds import ImageKind, with_embedding
from weakspot.repair.training.trainer import HeadTrainer
from weakspot.run.preparation import FEATURES

N_REPEATS = 12
STEPS = (1, 2, 5, 10, 20, 40, 80)
MIN_UNITS = 6
HELD_OUT = 1 / 3

Judge = Callable[[FloatArray, AnyArray], BoolArray]
"""Gives for answers [n, c] and targets [n] or [n, c] which are right [n]."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelledFeatures:
    """Samples that a last layer is trained or judged on.

    Args:
        features: [n, d].
        targets: class codes [n], or labels [n, c].
        weights: what each counts [n]: more than one where it stands for others that were left out.
        was_right: whether the classifier as it is gets them right [n]; empty for training samples.
        groups: which of them belong together [n].
    """

    features: FloatArray
    targets: AnyArray
    weights: DoubleArray
    was_right: BoolArray
    groups: IntArray

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.features)

    @property
    def n_units(self) -> int:
        """Return how many there are if those that belong together count once."""
        return len(np.unique(self.groups))


@dataclass(frozen=True, kw_only=True, eq=False)
class CurveMaterial:
    """What a learning curve is drawn from.

    Args:
        training: what the last layer is trained on now.
        kind: evaluation samples of the kind, of the discovery half.
        others: other evaluation samples, of the discovery half, which may suffer.
        trainer: trains layers as a repair does.
        task: single- or multi-label.
        n_classes: how many.
        judge: says which answers are right.
        is_kind: which training samples are of the kind [n].
        is_class: which are of its class [n].
        start: the layer to begin with.
    """

    training: LabelledFeatures
    kind: LabelledFeatures
    others: LabelledFeatures
    trainer: HeadTrainer
    task: Task
    n_classes: int
    judge: Judge
    is_kind: BoolArray
    is_class: BoolArray
    start: Head | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class CurvePoint:
    """What came out with one number of added samples.

    Args:
        n_added: so many samples of the kind were added.
        changes: of every held-out sample of the kind in every repeat, 1 right now and wrong before, -1 the other way, 0 the same;
            NaN where it was not held out [r, m].
        elsewhere: mean change of accuracy on other evaluation samples.
    """

    n_added: int
    changes: DoubleArray
    elsewhere: float

    @property
    def gain(self) -> float:
        """Return the mean change of accuracy on the kind, every sample counting once."""
        seen = ~np.isnan(self.changes)
        sums, counts = np.where(seen, self.changes, 0.0).sum(axis=0), seen.sum(axis=0)
        return float(np.mean(sums[counts > 0] / counts[counts > 0]))


def draw_curve(material: CurveMaterial, *, seed: int) -> tuple[CurvePoint, ...] | None:
    """Return what adding samples of the kind does, at least two points, the first with none added.

    None if there are too few of them to hold any out.
    """
    kind = material.kind
    if kind.n_units < MIN_UNITS or not len(material.training):
        return None
    rng = generator(seed, "learning curve")
    orders = [_order(kind.groups, rng) for _ in range(N_REPEATS)]
    most = min(len(added) for added, _ in orders)
    steps = (0, *(step for step in STEPS if step < most), most)
    changes = np.full((len(steps), N_REPEATS, len(kind)), np.nan)
    elsewhere = np.zeros((len(steps), N_REPEATS))
    first = _train(material, np.zeros(0, dtype=np.int64), material.start)
    for repeat, (added, held_out) in enumerate(orders):
        head = first
        for place, step in enumerate(steps):
            head = head if step == 0 else _train(material, added[:step], head)
            changes[place, repeat, held_out] = _change(material, kind, head)[held_out]
            others = material.others
            elsewhere[place, repeat] = (
                float(_change(material, others, head).mean()) if len(others) else 0.0
            )
    return tuple(
        CurvePoint(n_added=step, changes=changes[place], elsewhere=float(elsewhere[place].mean()))
        for place, step in enumerate(steps)
    )


def weigh_kind(material: CurveMaterial) -> CurvePoint | None:
    """Return what the training samples of the kind do for it when they weigh as much as the rest of their class; None without any."""
    weights, is_rest = material.training.weights, material.is_class & ~material.is_kind
    if not material.is_kind.any() or not is_rest.any() or not len(material.kind):
        return None
    factor = float(weights[is_rest].sum() / weights[material.is_kind].sum())
    training = replace(
        material.training, weights=np.where(material.is_kind, weights * factor, weights)
    )
    head = _train(replace(material, training=training), np.zeros(0, dtype=np.int64), material.start)
    others = material.others
    return CurvePoint(
        n_added=0,
        changes=_change(material, material.kind, head)[None, :],
        elsewhere=float(_change(material, others, head).mean()) if len(others) else 0.0,
    )


def _order(groups: IntArray, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Return samples in the order in which they are added, and those that are held out; what belongs together stays together."""
    names = rng.permutation(np.unique(groups))
    n_out = max(2, round(HELD_OUT * len(names)))
    is_out = np.isin(groups, names[:n_out])
    place = {int(name): number for number, name in enumerate(names)}
    added = np.flatnonzero(~is_out)
    ranks = np.array([place[int(group)] for group in groups[added]])
    return added[np.argsort(ranks, kind="stable")], np.flatnonzero(is_out)


def _train(material: CurveMaterial, added: IntArray, start: Head | None) -> Head:
    training, kind = material.training, material.kind
    return material.trainer.train(
        np.concatenate([training.features, kind.features[added]]),
        np.concatenate([training.targets, kind.targets[added]]),
        np.concatenate([training.weights, np.ones(len(added))]),
        task=material.task,
        start=start,
        n_classes=material.n_classes,
    ).head


def _change(material: CurveMaterial, samples: LabelledFeatures, head: Head) -> DoubleArray:
    is_right = material.judge(head.probabilities(samples.features), samples.targets)
    return is_right.astype(np.float64) - samples.was_right.astype(np.float64)


LEVEL = 0.9
ENOUGH = 0.8
N_DRAWS = 4_000
PRIOR = 0.5
MIN_KEPT = 0.3
MAX_SHARED = 0.8


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """What is expected of so many more labelled images of a kind.

    Args:
        n_wanted: images of the kind to add.
        gain: expected change of accuracy on the kind.
        interval: of the change that will be measured on `n_measured` images of the kind.
        reachable: the gain with the most images that could be tried out.
        n_most: how many these were.
        elsewhere: expected change of accuracy on all other evaluation images.
        is_rising: whether the curve still rose at its end, so that more may bring more.
    """

    n_wanted: int
    gain: float
    interval: Interval
    reachable: float
    n_most: int
    elsewhere: float
    is_rising: bool

    @property
    def helps(self) -> bool:
        """Return whether a gain is to be expected, chance allowed for."""
        return self.interval.low > 0.0


def forecast_gain(
    curve: Sequence[CurvePoint], n_units: int, *, n_measured: int, seed: int
) -> Forecast:
    """Return the smallest number of images that brings `ENOUGH` of what the most that were tried bring, and its gain.

    Args:
        curve: drawn on the discovery half.
        n_units: evaluation samples of the kind that it was drawn with, those that belong together once.
        n_measured: images of the kind on which the gain will be measured.
        seed: of the draws.
    """
    last = curve[-1]
    wanted = next(
        (point for point in curve[1:] if last.gain > 0 and point.gain >= ENOUGH * last.gain),
        last,
    )
    return Forecast(
        n_wanted=wanted.n_added,
        gain=wanted.gain,
        interval=gain_interval(wanted, n_units, n_measured=n_measured, seed=seed),
        reachable=last.gain,
        n_most=last.n_added,
        elsewhere=wanted.elsewhere,
        is_rising=wanted is last
        and len(curve) > 2  # noqa: PLR2004
        and last.gain > curve[-2].gain / ENOUGH > 0,
    )


def gain_interval(point: CurvePoint, n_units: int, *, n_measured: int, seed: int) -> Interval:
    """Return an interval of the gain that will be measured, by drawing what can happen.

    Three things are not known: how the kind does in general (it is seen on few images), which images will be labelled (it matters
    which ones were added), and on which images the gain will be measured.
    """
    rng = generator(seed, "gain of labels")
    shares = _shares(point)
    likely = rng.dirichlet(shares * n_units + PRIOR / len(shares), size=N_DRAWS)
    counts = rng.multinomial(max(n_measured, 1), likely)
    measured = (counts[:, 2] - counts[:, 0]) / max(n_measured, 1)
    draws = np.clip(measured + rng.choice(_deviations(point), size=N_DRAWS), -1.0, 1.0)
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(low=float(low), high=float(high), level=LEVEL)


def _shares(point: CurvePoint) -> DoubleArray:
    """Return the shares of samples that are lost, stay and are gained, every sample counting once."""
    seen = ~np.isnan(point.changes)
    counts = seen.sum(axis=0)
    per_sample = [
        (point.changes == change).sum(axis=0)[counts > 0] / counts[counts > 0]
        for change in (-1, 0, 1)
    ]
    return np.asarray(np.mean(per_sample, axis=1), dtype=np.float64)


def _deviations(point: CurvePoint) -> DoubleArray:
    """Return by how much each repeat did better than its held-out samples usually do: what depends on which ones were added.

    Few are held out, so that most of it is chance, which is taken away. Few can be added, so that any two repeats share some of them:
    by that it is widened.
    """
    seen = ~np.isnan(point.changes)
    counts = np.maximum(seen.sum(axis=0), 1)
    usual = np.where(seen, point.changes, 0.0).sum(axis=0) / counts
    differences = np.where(seen, point.changes - usual, 0.0)
    n_out = np.maximum(seen.sum(axis=1), 1)
    own = differences.sum(axis=1) / n_out
    total = float(np.mean(own**2))
    by_chance = float(np.mean((differences**2).sum(axis=1) / n_out**2))
    kept = np.sqrt(max(total - by_chance, 0.0) / total) if total > 0 else 0.0
    shared = min(point.n_added / point.changes.shape[1], MAX_SHARED)
    return np.asarray(own * max(kept, MIN_KEPT) / np.sqrt(1.0 - shared), dtype=np.float64)


MAX_TRAINING = 1_500
MIN_OF_A_PART = 20
MAX_KIND = 200
MAX_OTHERS = 1_000
MAX_CLASSES = 20
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
        if dataset.n_classes <= MAX_CLASSES:
            return np.arange(dataset.n_classes)
        taken = np.bincount(
            predicted_classes(dataset, kind.rows), minlength=dataset.n_classes
        ).astype(np.float64)
        if dataset.probabilities is not None and len(kind.rows):
            taken += np.nan_to_num(np.asarray(dataset.probabilities)[kind.rows]).mean(axis=0)
        taken[own] = np.inf
        if self.criterion.kind == "target" and self.criterion.target in dataset.class_names:
            taken[dataset.class_code(self.criterion.target or "")] = np.inf
        return np.sort(np.argsort(-taken, kind="stable")[:MAX_CLASSES])

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
        places = even_part(known, MAX_KIND)
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
        places = even_part(np.flatnonzero(is_other), MAX_OTHERS)
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
    """Return at most about `MAX_TRAINING` rows, and how many each of them stands for.

    Args:
        rows: training rows.
        parts: the part of every row; of small parts all rows stay.
    """
    if len(rows) <= MAX_TRAINING:
        return rows, np.ones(len(rows))
    share = MAX_TRAINING / len(rows)
    chosen: list[IntArray] = []
    weights: list[DoubleArray] = []
    for part in np.unique(parts):
        own = rows[parts == part]
        kept = even_part(own, max(MIN_OF_A_PART, round(share * len(own))))
        chosen.append(kept)
        weights.append(np.full(len(kept), len(own) / len(kept)))
    return np.concatenate(chosen), np.concatenate(weights)


def _rows_of(head: Head, codes: Sequence[int] | IntArray) -> Head:
    return replace(head, weights=head.weights[codes], bias=head.bias[codes])
