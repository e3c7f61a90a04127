"""Training the last layer with generated samples beside the training samples, and how much they should count."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from PIL import Image

from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray, FloatArray, IntArray
from weakspot.core.dataset import Dataset, Task
from weakspot.core.errors import NotEnoughDataError
from weakspot.core.evidence import Share
from weakspot.core.failures import best_f1_thresholds
from weakspot.core.group_tests import paired_group_p
from weakspot.core.heads import Head
from weakspot.core.samples import SampleSet
from weakspot.core.seeding import generator
from weakspot.lab.refine.request import Images, SeesImages, Wanted
from weakspot.lab.refine.subjects import Subject
from weakspot.media.images import decode_image
from weakspot.media.locations import read_location
from weakspot.pipeline.preparation import FEATURES
from weakspot.repair.feature_mixing import mixed_features
from weakspot.repair.head_training import HeadTrainer
from weakspot.repair.measure.predictions import Comparison, compare
from weakspot.repair.pixel_mixing import mixed_image


def share(right: BoolArray) -> Share:
    return Share.of(int(np.sum(right)), len(right))


@dataclass(frozen=True, kw_only=True)
class Step:
    """How generated images change a layer.

    Args:
        debug_weight: how much they count together beside all training samples together.
        share: how far the layer goes from the old one to one that is retrained with a pull to the old one; None: all the way to one
            that is trained from nothing, as in the paper.
    """

    debug_weight: float
    share: float | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Added:
    """Samples that are added to the training samples.

    Args:
        features: [n, d].
        targets: class codes [n] or labels [n, c].
        weights: [n], they sum to one.
        n_kept: images of every prompt, in the order of what was wanted.
    """

    features: FloatArray
    targets: AnyArray
    weights: DoubleArray
    n_kept: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class RefinedHead:
    """A retrained last layer.

    Args:
        head: the layer.
        thresholds: multi-label decision thresholds chosen on the discovery half, None for single-label tasks.
        step: how it came about; the weight is 0 without added samples.
    """

    head: Head
    step: Step
    thresholds: FloatArray | None = None


def kept_of_classes(wanted: Sequence[Wanted], added: Added) -> dict[str, int]:
    """Return how many images of every class an arm trains on."""
    found: dict[str, int] = {}
    for one, n_kept in zip(wanted, added.n_kept, strict=True):
        found[one.prompt.class_name] = found.get(one.prompt.class_name, 0) + n_kept
    return found


def more_images(wanted: Sequence[Wanted], factor: int) -> tuple[Wanted, ...]:
    return tuple(replace(one, n_images=factor * one.n_images) for one in wanted)


def _trimmed(wanted: Sequence[Wanted], n_kept: Sequence[int], most: Mapping[str, int]) -> list[int]:
    """Return how many images of every prompt are used, so that no class has more than given; the fullest prompts give first."""
    used = list(n_kept)
    for class_name, limit in most.items():
        own = [place for place, one in enumerate(wanted) if one.prompt.class_name == class_name]
        while sum(used[place] for place in own) > limit:
            used[max(own, key=lambda place: used[place])] -= 1
    return used


def added_images(
    subject: Subject,
    wanted: Sequence[Wanted],
    images: Images,
    most: Mapping[str, int] | None = None,
) -> Added:
    """Return what a model makes of an arm's images; a prompt counts as much however many of its images were kept.

    Args:
        subject: the model.
        wanted: what was generated.
        images: the generator.
        most: of classes, how many images are used at most.

    Raises:
        NotEnoughDataError: if not one image was kept.
    """
    found = [images.features(subject.name, one.prompt, one.n_images) for one in wanted]
    used = _trimmed(wanted, [len(features) for features in found], most or {})
    found = [features[:number] for features, number in zip(found, used, strict=True)]
    n_kept = [len(features) for features in found]
    if not any(n_kept):
        raise NotEnoughDataError("Not one generated image can be used.", given=images.rejected())
    codes = np.repeat([subject.dataset.class_code(one.prompt.class_name) for one in wanted], n_kept)
    shares = [np.full(n, one.weight / n) for one, n in zip(wanted, n_kept, strict=True) if n]
    weights = np.concatenate(shares)
    return Added(
        features=np.concatenate([features for features in found if len(features)]),
        targets=codes
        if subject.dataset.task is Task.SINGLE_LABEL
        else np.eye(subject.dataset.n_classes, dtype=np.bool_)[codes],
        weights=weights / weights.sum(),
        n_kept=tuple(n_kept),
    )


def added_mixtures(subject: Subject, n_mixed: int) -> Added:
    rows = subject.bench.material.labelled
    random = generator(subject.bench.settings.seed, "refine", "cutmix")
    mixed = mixed_features(
        subject.bench.samples.embeddings(FEATURES, rows),
        subject.bench.targets(rows),
        n_mixed=n_mixed,
        random=random,
    )
    return Added(
        features=mixed.features,
        targets=mixed.targets,
        weights=mixed.weights / mixed.weights.sum(),
        n_kept=(n_mixed,),
    )


def added_mixed_images(subject: Subject, n_mixed: int, images: Images) -> Added:
    """Return mixtures of two training images each, as the classifier sees them.

    Raises:
        NotEnoughDataError: if training samples have no images, or the classifier cannot be shown any.
    """
    dataset, rows = subject.dataset, subject.bench.material.labelled
    places = dataset.locations(rows)
    rows = rows[np.array([place is not None for place in places], dtype=np.bool_)]
    if not len(rows) or not n_mixed or not isinstance(images, SeesImages):
        raise NotEnoughDataError("There are no training images that could be mixed and classified.")
    random = generator(subject.bench.settings.seed, "refine", "cutmix", "pixels")
    pairs = rows[random.integers(len(rows), size=(n_mixed, 2))]
    mixed = [
        mixed_image(_image(dataset, first), _image(dataset, second), random)
        for first, second in pairs.tolist()
    ]
    features = images.features_of(subject.name, [one.image for one in mixed])
    targets = subject.bench.targets(pairs.T.reshape(-1))
    shares = np.array([one.share for one in mixed])
    weights = np.concatenate([shares, 1.0 - shares])
    return Added(
        features=np.concatenate([features, features]),
        targets=targets,
        weights=weights / weights.sum(),
        n_kept=(n_mixed,),
    )


def _image(dataset: Dataset, row: int) -> Image.Image:
    (location,) = dataset.locations(np.array([row]))
    return decode_image(read_location(str(location))).image


def refined_head(subject: Subject, added: Added | None, step: Step) -> RefinedHead:
    """Return the last layer that minimises `L(training) + debug_weight * L(added)`, both means over their samples.

    With a share it is trained with a pull to the old layer, and only that share of the way to it is gone. The penalty is the one
    that fits the classifier's own layer on the training samples; validation samples have no say in it.
    """
    used = step if added is not None else replace(step, debug_weight=0.0)
    if step.share == 0.0:
        return RefinedHead(head=old_head(subject), step=used)
    trainer = subject.bench.trainer
    if step.share is not None:
        trained = _trained(subject, added, used, replace(trainer, towards="start"))
        head = old_head(subject).moved(trained, step.share)
    else:
        head = _trained(subject, added, used, trainer)
    return RefinedHead(head=head, step=used, thresholds=_thresholds(subject, head))


def old_head(subject: Subject) -> Head:
    """Return the classifier's own last layer; where only its features are known, the one that is trained on the training samples."""
    if subject.bench.start is not None:
        return subject.bench.start
    return _trained(subject, None, Step(debug_weight=0.0), subject.bench.trainer)


def part_of(subject: Subject, old: Head, whole: RefinedHead, share: float) -> RefinedHead:
    """Return the layer that goes a share of the way from the old one to a retrained one."""
    head = old.moved(whole.head, share)
    step = replace(whole.step, share=share)
    return RefinedHead(head=head, step=step, thresholds=_thresholds(subject, head))


def _trained(subject: Subject, added: Added | None, step: Step, trainer: HeadTrainer) -> Head:
    bench, rows = subject.bench, subject.bench.material.labelled
    features, targets = bench.samples.embeddings(FEATURES, rows), bench.targets(rows)
    weights = np.full(len(rows), 1.0 / max(len(rows), 1))
    if added is not None:
        features = np.concatenate([features, added.features])
        targets = np.concatenate([targets, added.targets])
        weights = np.concatenate([weights, step.debug_weight * added.weights])
    return trainer.train(
        features,
        targets,
        weights,
        task=subject.dataset.task,
        start=bench.start if trainer.towards == "zero" else old_head(subject),
        n_classes=subject.dataset.n_classes,
    ).head


def rights(
    subject: Subject, samples: SampleSet, refined: RefinedHead
) -> tuple[BoolArray, BoolArray]:
    """Return which decisions on samples were right before [n] and are right now [n], class by class."""
    found = _compare(subject, samples, refined).predictions
    if not found:
        return np.zeros(0, dtype=np.bool_), np.zeros(0, dtype=np.bool_)
    return np.concatenate([one.right_before for one in found]), np.concatenate(
        [one.right_after for one in found]
    )


def _compare(subject: Subject, samples: SampleSet, refined: RefinedHead) -> Comparison:
    probabilities = refined.head.probabilities(samples.embeddings(FEATURES))
    return compare(samples, probabilities, (), subject.bench.criterion, refined.thresholds)


def _thresholds(subject: Subject, head: Head) -> FloatArray | None:
    """Return multi-label thresholds; the held-out half must not choose them."""
    if subject.dataset.thresholds is None:
        return None
    seeds = subject.seed
    return best_f1_thresholds(
        head.probabilities(seeds.embeddings(FEATURES)), subject.dataset.label_matrix[seeds.rows]
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Rights:
    """Which decisions are right on the three sets [n each], before and now; and the groups of the held-out ones, if any."""

    test: tuple[BoolArray, BoolArray]
    seed: tuple[BoolArray, BoolArray]
    held_out: tuple[BoolArray, BoolArray]
    groups: IntArray | None = None

    @classmethod
    def of(cls, subject: Subject, refined: RefinedHead) -> "Rights":
        test, seed, held_out = (rights(subject, samples, refined) for samples in subject.sets)
        groups = _compare(subject, subject.sets[-1], refined).decision_groups
        return cls(test=test, seed=seed, held_out=held_out, groups=groups)

    def shares(self) -> Mapping[str, Share]:
        before, after = self.test
        return {
            "clean": share(after[before]),
            "failure": share(after[~before]),
            "seed": share(self.seed[1][~self.seed[0]]),
            "held_out": share(self.held_out[1][~self.held_out[0]]),
            "test_before": share(before),
            "test_after": share(after),
        }

    def p_against(self, other: "Rights") -> float:
        """Return the exact test of the held-out failures against another arm: McNemar's, or that of groups."""
        was_wrong = ~self.held_out[0]
        mine, others = self.held_out[1][was_wrong], other.held_out[1][was_wrong]
        groups = None if self.groups is None else self.groups[was_wrong]
        return paired_group_p(mine & ~others, others & ~mine, groups)
