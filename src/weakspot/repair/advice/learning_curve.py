"""How much better a kind of image is served when some more of its kind are trained on: tried out on evaluation images of that kind.

Evaluation images of the kind were never trained on. Of those of the discovery half, some are added to the training set, the last layer is
retrained, and the others say what it does: again and again, with 1, 2, 5, 10 ... added. Nothing of this is kept but the counts.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray, FloatArray, IntArray
from weakspot.core.dataset import Task
from weakspot.core.heads import Head
from weakspot.core.seeding import generator
from weakspot.repair.head_training import HeadTrainer

N_REPEATS = 12
STEPS = (1, 2, 5, 10, 20, 40, 80)
LEAST_UNITS = 6
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
        return float(np.mean(self.sample_means))

    @property
    def sample_means(self) -> DoubleArray:
        """Return the mean change of every sample that was ever held out."""
        seen = ~np.isnan(self.changes)
        sums = np.where(seen, self.changes, 0.0).sum(axis=0)
        counts = seen.sum(axis=0)
        return np.asarray(sums[counts > 0] / counts[counts > 0], dtype=np.float64)


@dataclass(frozen=True, kw_only=True, eq=False)
class LearningCurve:
    """Points by number of added samples, ascending; the first has none added.

    Args:
        points: at least two.
        n_units: evaluation samples of the kind that it was drawn with, those that belong together once.
    """

    points: tuple[CurvePoint, ...]
    n_units: int


def draw_curve(material: CurveMaterial, *, seed: int) -> LearningCurve | None:
    """Return what adding samples of the kind does; None if there are too few of them to hold any out."""
    kind = material.kind
    if kind.n_units < LEAST_UNITS or not len(material.training):
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
    return LearningCurve(
        points=tuple(
            CurvePoint(
                n_added=step, changes=changes[place], elsewhere=float(elsewhere[place].mean())
            )
            for place, step in enumerate(steps)
        ),
        n_units=kind.n_units,
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
