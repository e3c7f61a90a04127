"""Stand-in for ImageNet: a thousand classes of embeddings, some with a rare kind that training has too few of, and captions."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from weakspot.core.arrays import (
    AnyArray,
    BoolArray,
    DoubleArray,
    FloatArray,
    IntArray,
    generator,
    unit_rows,
)
from weakspot.core.dataset import Split, Task, dataset_from_columns
from weakspot.core.heads import Head, RepairMaterial
from weakspot.core.rules import LinearRule
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.discover.error_score import error_scores
from weakspot.repair.strategies.reweighting import SliceBalancedRepairer
from weakspot.repair.training.trainer import HeadTrainer
from weakspot_lab.reproduce.protocol import StepResult

PERCENT = 100.0
ENCODER = "stand-in"
MIN_ACCURACY, MAX_ACCURACY = 0.2, 0.8
MAX_CLASSES, MAX_KEYWORDS, SHOWN_KEYWORDS = 100, 50, 10
PENALTY = 1e-4
NOISE, TOWARDS_RIVAL = 1.6, 0.6


@dataclass(frozen=True, kw_only=True)
class ManySizes:
    """How many there are: classes, those with a rare kind, samples of a class in training, validation and test, and concepts."""

    classes: int = 1000
    planted: int = 31
    train: int = 40
    validation: int = 50
    test: int = 50
    concepts: int = 150
    width: int = 64
    steps: int = 40


@dataclass(frozen=True, kw_only=True, eq=False)
class ManyClasses:
    """The world.

    Args:
        sizes: how many there are.
        labels: [n].
        splits: [n].
        embeddings: [n, d].
        spoken: embeddings of the words of concepts, and then of classes [k + c, d].
        shown: which concepts every image shows [n, k].
        taken_for: the two classes whose names a captioner is most likely to say [n, 2].
        planted: concept of the rare kind by class code.
        is_rare: which samples are of a rare kind [n].
    """

    sizes: ManySizes
    labels: IntArray
    splits: AnyArray
    embeddings: FloatArray
    spoken: FloatArray
    shown: BoolArray
    taken_for: IntArray
    planted: dict[int, int]
    is_rare: BoolArray

    def rows(self, split: Split) -> IntArray:
        return np.flatnonzero(self.splits == split.value)


def many_classes(sizes: ManySizes, *, seed: int) -> ManyClasses:
    """Return the world: images lie around their class and show some of many concepts.

    Of planted classes a rare kind shows one concept always, the others never, and lies part of the way to another class.
    """
    draws = generator(seed, "many classes")
    centres = draws.standard_normal((sizes.classes, sizes.width))
    concepts = draws.standard_normal((sizes.concepts, sizes.width))
    counts = {
        Split.TRAIN: sizes.train,
        Split.VALIDATION: sizes.validation,
        Split.TEST: sizes.test,
    }
    labels = np.concatenate([np.repeat(np.arange(sizes.classes), one) for one in counts.values()])
    splits = np.concatenate(
        [np.full(sizes.classes * one, split.value) for split, one in counts.items()]
    )
    chosen = draws.permutation(sizes.classes)[: sizes.planted]
    planted = {int(code): int(draws.integers(sizes.concepts)) for code in chosen}
    shown = draws.random((len(labels), sizes.concepts)) < 4.0 / sizes.concepts
    rare = np.zeros(len(labels), dtype=np.bool_)
    placed = centres[labels] + NOISE * draws.standard_normal((len(labels), sizes.width))
    for code, concept in planted.items():
        own = np.flatnonzero(labels == code)
        share = np.where(splits[own] == Split.TRAIN.value, 0.12, 0.4)
        rare[own] = draws.random(len(own)) < share
        shown[own, concept] = rare[own]
        rival = centres[(code + 1) % sizes.classes]
        placed[own[rare[own]]] += TOWARDS_RIVAL * (rival - centres[code])
    placed += 0.45 * (shown @ concepts)
    placed[rare] += 0.15 * concepts[[planted[int(code)] for code in labels[rare]]]
    embeddings = unit_rows(placed.astype(np.float32))
    named = unit_rows(centres.astype(np.float32))
    words = np.concatenate([concepts, centres])
    return ManyClasses(
        sizes=sizes,
        labels=labels,
        splits=splits,
        embeddings=embeddings,
        spoken=unit_rows((words + 0.3 * draws.standard_normal(words.shape)).astype(np.float32)),
        shown=shown,
        taken_for=np.concatenate(
            [
                np.argpartition(-(block @ named.T), 2, axis=1)[:, :2]
                for block in np.array_split(embeddings, 40)
            ]
        ),
        planted=planted,
        is_rare=rare,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class ManyWorkshop:
    """The world and a last layer trained on it."""

    world: ManyClasses

    @cached_property
    def base(self) -> Head:
        train = self.world.rows(Split.TRAIN)
        return self._fit(np.ones(len(train)), start=None)

    @cached_property
    def right(self) -> BoolArray:
        """Return which samples the base layer gets right [n]."""
        return np.asarray(self.predicted(self.base) == self.world.labels, dtype=np.bool_)

    def predicted(self, head: Head) -> IntArray:
        found = [
            head.logits(block).argmax(axis=1) for block in np.array_split(self.world.embeddings, 40)
        ]
        return np.concatenate(found)

    def suggestions(self) -> dict[int, tuple[IntArray, DoubleArray, DoubleArray]]:
        """Return keywords, Error Scores and thresholds of the classes that are most likely to have a pattern, best class first.

        As in the paper: classes whose accuracy lies between 0.2 and 0.8, up to 50 keywords of their captions, the 100 classes
        with the largest score, ten keywords of each.
        """
        world, rows = self.world, self.world.rows(Split.VALIDATION)
        accuracy = np.bincount(
            world.labels[rows], weights=self.right[rows], minlength=world.sizes.classes
        ) / np.bincount(world.labels[rows], minlength=world.sizes.classes)
        found = {}
        for code in np.flatnonzero((accuracy >= MIN_ACCURACY) & (accuracy <= MAX_ACCURACY)):
            own = rows[world.labels[rows] == code]
            keywords = self.keywords(own)
            likeness = world.spoken[keywords] @ world.embeddings[own].T
            scores = error_scores(np.asarray(likeness, dtype=np.float32), ~self.right[own])
            order = np.argsort(-scores.score, kind="stable")[:SHOWN_KEYWORDS]
            found[int(code)] = (keywords[order], scores.score[order], scores.threshold[order])
        best = sorted(found, key=lambda code: -found[code][1][0])[:MAX_CLASSES]
        return {code: found[code] for code in best}

    def keywords(self, rows: IntArray) -> IntArray:
        """Return the words that captions of some samples hold most often: concepts, and names of classes."""
        named = np.bincount(self.world.taken_for[rows].ravel(), minlength=self.world.sizes.classes)
        counts = np.concatenate([self.world.shown[rows].sum(axis=0), named])
        order = np.argsort(-counts, kind="stable")[:MAX_KEYWORDS]
        return np.asarray(order[counts[order] > 0], dtype=np.int64)

    def clip_keywords(self, code: int) -> IntArray:
        """Return keywords of a class in the order of Bias-to-Text: nearer to failures than to other samples first."""
        world, rows = self.world, self.world.rows(Split.VALIDATION)
        own = rows[world.labels[rows] == code]
        keywords = self.keywords(own[~self.right[own]])
        likeness = world.embeddings[own] @ world.spoken[keywords].T
        scores = likeness[~self.right[own]].mean(axis=0) - likeness[self.right[own]].mean(axis=0)
        return np.asarray(keywords[np.argsort(-scores, kind="stable")], dtype=np.int64)

    def slice_of(self, code: int, keyword: int, threshold: float) -> FailureSlice:
        return FailureSlice(
            class_name=f"class {code}",
            rule=LinearRule(
                encoder_id=ENCODER,
                direction=tuple(float(one) for one in self.world.spoken[keyword]),
                threshold=threshold,
            ),
            method="hypothesis",
            found_on=DataUse(name="validation", n_samples=0, digest="words"),
        )

    def repaired(self, slices: Sequence[FailureSlice]) -> Head:
        """Return the last layer after slices of some classes were brought into balance; the training data is the same."""
        training = self.samples.only(self.world.rows(Split.TRAIN))
        selection = SliceBalancedRepairer().select(slices, RepairMaterial(training=training))
        return self._fit(selection.weights, start=self.base)

    @cached_property
    def samples(self) -> SampleSet:
        world = self.world
        dataset = dataset_from_columns(
            class_names=[f"class {code}" for code in range(world.sizes.classes)],
            labels=world.labels,
            splits=list(world.splits),
        )
        space = EmbeddingSpace(encoder_id=ENCODER, embeddings=world.embeddings, has_text=True)
        return SampleSet(
            dataset=dataset, rows=np.arange(len(world.labels)), spaces={"clip": space}, name="all"
        )

    def split_accuracies(
        self, slices: Sequence[FailureSlice], head: Head
    ) -> tuple[list[float], list[float], float]:
        """Return the accuracy on the meant and on the other test samples of every slice's class, and overall."""
        world, rows = self.world, self.world.rows(Split.TEST)
        right = self.predicted(head) == world.labels
        meant, others = [], []
        for one in slices:
            code = int(one.class_name.split()[-1])
            own = rows[world.labels[rows] == code]
            inside = one.rule.members(self.samples, own)
            meant.append(float(right[own[inside]].mean()) if inside.any() else float("nan"))
            others.append(float(right[own[~inside]].mean()) if (~inside).any() else float("nan"))
        return meant, others, float(right[rows].mean())

    def _fit(self, weights: AnyArray, *, start: Head | None) -> Head:
        world, train = self.world, self.world.rows(Split.TRAIN)
        trainer = HeadTrainer(penalty=PENALTY, max_steps=world.sizes.steps, tolerance=1e-4)
        return trainer.train(
            world.embeddings[train],
            world.labels[train],
            np.asarray(weights, dtype=np.float64),
            task=Task.SINGLE_LABEL,
            start=start,
            n_classes=world.sizes.classes,
        ).head


def measure_many(sizes: ManySizes, *, seed: int) -> StepResult:
    """Measure suggestions, and what repairing by accepted and by automatic keywords does."""
    workshop = ManyWorkshop(world=many_classes(sizes, seed=seed))
    world, suggested = workshop.world, workshop.suggestions()
    accepted = [
        workshop.slice_of(code, int(keywords[place]), float(thresholds[place]))
        for code, (keywords, _, thresholds) in suggested.items()
        if world.planted.get(code) in keywords.tolist()
        for place in [keywords.tolist().index(world.planted[code])]
    ]
    automatic, places = [], []
    for one in accepted:
        code = int(one.class_name.split()[-1])
        ordered = workshop.clip_keywords(code)
        places.append(
            ordered.tolist().index(world.planted[code])
            if world.planted[code] in ordered
            else len(ordered)
        )
        scored = workshop.world.spoken[ordered[:1]] @ world.embeddings[_own(workshop, code)].T
        cut = error_scores(
            np.asarray(scored, dtype=np.float32), ~workshop.right[_own(workshop, code)]
        )
        if np.isfinite(cut.threshold[0]):
            automatic.append(workshop.slice_of(code, int(ordered[0]), float(cut.threshold[0])))
    return {
        "planted": len(world.planted),
        "in reach": sum(code in suggested for code in world.planted),
        "suggested classes": len(suggested),
        "accepted": len(accepted),
        "automatic first": sum(place == 0 for place in places),
        "automatic in ten": sum(place < SHOWN_KEYWORDS for place in places),
        "words": _repair(workshop, accepted),
        "automatic": _repair(workshop, automatic),
        "rare accuracy": float(workshop.right[world.is_rare & (world.splits == Split.TEST.value)].mean()),
    }  # fmt: skip


def _own(workshop: ManyWorkshop, code: int) -> IntArray:
    rows = workshop.world.rows(Split.VALIDATION)
    own: IntArray = rows[workshop.world.labels[rows] == code]
    return own


def _repair(workshop: ManyWorkshop, slices: Sequence[FailureSlice]) -> StepResult | None:
    if not slices:
        return None
    before = workshop.split_accuracies(slices, workshop.base)
    after = workshop.split_accuracies(slices, workshop.repaired(slices))
    return {
        "minority before": [None if np.isnan(one) else PERCENT * one for one in before[0]],
        "minority after": [None if np.isnan(one) else PERCENT * one for one in after[0]],
        "majority before": [None if np.isnan(one) else PERCENT * one for one in before[1]],
        "overall before": PERCENT * before[2],
        "overall after": PERCENT * after[2],
    }
