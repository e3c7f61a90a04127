"""The arms of Clarify's tables: without training, with labels, with words, with group labels; all measured in one way."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from weakspot.core.arrays import BoolArray, FloatArray, IntArray, unit_rows
from weakspot.core.dataset import Split, Task
from weakspot.core.errors import NotEnoughDataError
from weakspot.core.failures import FailureCriterion
from weakspot.core.heads import Head, RepairMaterial, TrainingSelection, class_parts
from weakspot.core.repairs import RepairArm
from weakspot.core.rules import LinearRule
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.discover.error_score import error_scores
from weakspot.repair.measure import measure_arm
from weakspot.repair.training.trainer import HeadTrainer
from weakspot.run.wiring import build_part
from weakspot_lab.reproduce.clarify.world import COLUMN, ENCODER, ClarifyWorld
from weakspot_lab.reproduce.protocol import StepResult
from weakspot_lab.small_networks import NetworkPlan, train_network

CRITERION = FailureCriterion()
SCALE = 100.0
PENALTY = 3e-4
HALFWAY = 0.5
PERCENT = 100.0
CLARIFY = {"Clarify (slice-balanced)": "slice-balanced", "Clarify (worst-slice)": "worst-slice"}
OWN = {
    "slice-balanced, class shares kept (ours)": "slice-balanced",
    "worst-slice, class shares kept (ours)": "worst-slice",
}
LABELS = {
    "ERM, class-balanced": "class-balanced",
    "ERM, worst-class": "worst-class",
    "JTT": "just-train-twice",
}
GROUPS = {
    "DFR (subsample)": "dfr-subsample",
    "DFR (upsample)": "dfr-upsample",
    "Group DRO": "group-dro",
}
WORST, AVERAGE, GAP = "worst group", "average", "gap"


@dataclass(frozen=True, kw_only=True)
class Phrase:
    """Words for a class, with what they reach on validation samples.

    Args:
        class_name: the class.
        words: the words.
        score: Error Score.
        threshold: similarity from which on a sample is meant.
    """

    class_name: str
    words: str
    score: float
    threshold: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Workshop:
    """A world and the layer that was trained on it in the ordinary way."""

    world: ClarifyWorld
    seed: int

    @cached_property
    def base(self) -> Head:
        """Return the last layer trained on all training samples alike (ERM)."""
        train = self.world.rows(Split.TRAIN)
        return self._fit(
            TrainingSelection(rows=train, weights=np.ones(len(train)), note="all alike")
        )

    @cached_property
    def samples(self) -> SampleSet:
        return self.world.samples(self.base)

    @cached_property
    def material(self) -> RepairMaterial:
        return RepairMaterial(
            training=self.samples.only(self.world.rows(Split.TRAIN)), seed=self.seed
        )

    @cached_property
    def zero_shot(self) -> Head:
        """Return the classifier of class prompts as a last layer."""
        return Head(
            weights=SCALE * self.texts(self.world.class_prompts),
            bias=np.zeros(len(self.world.class_names), dtype=np.float32),
        )

    def phrase(self, class_name: str, words: str) -> Phrase:
        """Return words with their Error Score on validation samples of a class, and the threshold that gives it."""
        rows = self._validation(class_name)
        likeness = self.world.embeddings[rows] @ self.texts([words])[0]
        found = error_scores(likeness[None, :].astype(np.float32), self._failed(rows))
        return Phrase(
            class_name=class_name,
            words=words,
            score=float(found.score[0]),
            threshold=float(found.threshold[0]),
        )

    def slice_of(self, phrase: Phrase) -> FailureSlice:
        """Return the slice that words mean; nobody confirmed it: it is exploratory."""
        rule = LinearRule(
            encoder_id=ENCODER,
            direction=tuple(float(one) for one in self.texts([phrase.words])[0]),
            threshold=phrase.threshold,
        )
        return FailureSlice(
            class_name=phrase.class_name,
            rule=rule,
            method="hypothesis",
            found_on=DataUse(name="validation", n_samples=0, digest="words"),
        )

    def repaired(self, method: str, phrases: Sequence[Phrase] = ()) -> Head:
        """Return the last layer retrained by a registered strategy, from the slices that phrases mean."""
        options = {"column": COLUMN} if method in GROUPS.values() else {}
        part = build_part("repairers", method, options, where="reproduce")
        slices = [self.slice_of(one) for one in phrases if np.isfinite(one.threshold)]
        return self._fit(part.select(slices, self.material))

    def as_published(self, method: str, phrases: Sequence[Phrase]) -> Head:
        """Return the last layer retrained with the paper's weights: both slices of a class weigh 1 / C each (its equation 2).

        That also evens out the classes, which our own strategies leave as they are.
        """
        part = build_part("repairers", method, {}, where="reproduce")
        slices = [self.slice_of(one) for one in phrases if np.isfinite(one.threshold)]
        selection = part.select(slices, self.material)
        rows, n_classes = selection.rows, len(self.world.class_names)
        weights = np.full(len(rows), 1.0 / len(rows))
        for one in class_parts(slices, self.material.training):
            for group in one.groups:
                weights[np.searchsorted(rows, group)] = 1.0 / (n_classes * len(group))
        return self._fit(replace(selection, weights=weights / weights.mean()))

    def automatic_phrase(self, class_name: str) -> Phrase:
        """Return the keyword with the largest CLIP score, as Bias-to-Text chooses: nearer to failures than to other samples."""
        rows = self._validation(class_name)
        failed = self._failed(rows)
        likeness = self.world.embeddings[rows] @ self.texts(self.world.vocabulary).T
        if not failed.any() or failed.all():
            return self.phrase(class_name, self.world.vocabulary[0])
        scores = likeness[failed].mean(axis=0) - likeness[~failed].mean(axis=0)
        return self.phrase(class_name, self.world.vocabulary[int(np.argmax(scores))])

    def measured(self, name: str, probabilities: FloatArray) -> StepResult:
        """Return worst group, average and gap of answers on the test samples; the same for every arm and annotator.

        The average weighs groups as training has them, as the literature on these data sets does.
        """
        test = self.samples.only(self.world.rows(Split.TEST), name="test")
        arm = RepairArm(arm=name, is_baseline=False, note="", n_trained=0, changes=())
        given = measure_arm(
            arm, probabilities, (), test, CRITERION, column=COLUMN, seed=self.seed
        ).given
        assert given is not None
        accuracies = np.array([one.accuracy_after for one in given.groups])
        average = float(accuracies @ self.world.training_shares)
        worst = float(accuracies.min())
        return {
            WORST: PERCENT * worst,
            AVERAGE: PERCENT * average,
            GAP: PERCENT * (average - worst),
            "groups": {one.group: PERCENT * one.accuracy_after for one in given.groups},
        }

    def answered(self, name: str, head: Head) -> StepResult:
        rows = self.world.rows(Split.TEST)
        return self.measured(name, head.probabilities(self.world.embeddings[rows]))

    def worst_class(self) -> str:
        """Return the class that fails most often among validation samples."""
        rates = {
            name: float(self._failed(self._validation(name)).mean())
            for name in self.world.class_names
        }
        return max(rates, key=lambda name: rates[name])

    def _validation(self, class_name: str) -> IntArray:
        rows = self.world.rows(Split.VALIDATION)
        own: IntArray = rows[self.world.labels[rows] == self.world.class_names.index(class_name)]
        return own

    def _failed(self, rows: IntArray) -> BoolArray:
        dataset = self.samples.dataset
        assert dataset.predictions is not None
        return np.asarray(dataset.predictions[rows] != self.world.labels[rows], dtype=np.bool_)

    def _fit(self, selection: TrainingSelection) -> Head:
        world = self.world
        return (
            HeadTrainer(penalty=PENALTY)
            .train(
                world.embeddings[selection.rows],
                world.labels[selection.rows],
                selection.weights,
                task=Task.SINGLE_LABEL,
                group_objectives=selection.group_objectives,
                n_classes=len(world.class_names),
            )
            .head
        )

    def texts(self, phrases: Sequence[str]) -> FloatArray:
        return unit_rows(np.asarray(self.world.embed_texts(phrases), dtype=np.float32))


def arm_results(workshop: Workshop) -> dict[str, StepResult]:
    """Return worst group, average and gap of every arm, in the order of the paper's table."""
    found = dict(_without_training(workshop))
    found["ERM"] = workshop.answered("ERM", workshop.base)
    for name, method in LABELS.items():
        with suppress(NotEnoughDataError):  # what cannot be tried in a world is not in its table
            found[name] = workshop.answered(name, workshop.repaired(method))
    expert = [
        workshop.phrase(class_name, words) for class_name, words in workshop.world.expert.items()
    ]
    automatic = [workshop.automatic_phrase(name) for name in workshop.world.class_names]
    for name, method in CLARIFY.items():
        found[name] = workshop.answered(name, workshop.as_published(method, expert))
        found[name]["phrases"] = {one.words: one.score for one in expert}
    for name, method in OWN.items():
        found[name] = workshop.answered(name, workshop.repaired(method, expert))
    other = workshop.answered("Bias-to-Text", workshop.as_published("worst-slice", automatic))
    found["Bias-to-Text (worst-slice)"] = {
        **other,
        "phrases": {one.words: one.score for one in automatic},
    }
    for name, method in GROUPS.items():
        found[name] = workshop.answered(name, workshop.repaired(method))
    return found | dict(_adapters(workshop))


def _without_training(workshop: Workshop) -> Iterator[tuple[str, StepResult]]:
    """Yield the arms that answer by words alone."""
    world, rows = workshop.world, workshop.world.rows(Split.TEST)
    images = world.embeddings[rows]
    yield "Class Prompt", workshop.answered("class prompt", workshop.zero_shot)
    likeness = np.stack(
        [np.max(images @ workshop.texts(prompts).T, axis=1) for prompts in world.group_prompts],
        axis=1,
    )
    yield "Group Prompt", workshop.measured("group prompt", _softmax(likeness))
    first, second = workshop.texts(world.contrast)
    away = unit_rows((first - second)[None, :])[0]
    cleaned = unit_rows(images - np.outer(images @ away, away))
    head = workshop.zero_shot
    yield "RoboShot-like", workshop.measured("roboshot", head.probabilities(cleaned))


def _adapters(workshop: Workshop) -> Iterator[tuple[str, StepResult]]:
    """Yield a small network on frozen embeddings, and the middle between words and training."""
    world, train = workshop.world, workshop.world.rows(Split.TRAIN)
    test = world.embeddings[world.rows(Split.TEST)]
    plan = NetworkPlan(width=32, n_epochs=10, batch_size=128, seed=workshop.seed)
    adapter = train_network(
        8.0 * world.embeddings[train],
        world.labels[train],
        n_classes=len(world.class_names),
        plan=plan,
    )
    yield "ERM Adapter", workshop.measured("adapter", adapter.probabilities(8.0 * test))
    tuned = HeadTrainer(penalty=PENALTY, towards="start").train(
        world.embeddings[train],
        world.labels[train],
        np.ones(len(train)),
        task=Task.SINGLE_LABEL,
        start=workshop.zero_shot,
        n_classes=len(world.class_names),
    )
    middle = replace(
        tuned.head,
        weights=HALFWAY * (tuned.head.weights + workshop.zero_shot.weights),
        bias=HALFWAY * (tuned.head.bias + workshop.zero_shot.bias),
    )
    yield "WiSE-FT-like", workshop.answered("wise-ft", middle)


def _softmax(likeness: FloatArray) -> FloatArray:
    powers = np.exp(SCALE * (likeness - likeness.max(axis=1, keepdims=True)))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True), dtype=np.float32)


def annotator_results(
    workshop: Workshop, draws: np.random.Generator, *, n_annotators: int, n_phrases: int
) -> list[Mapping[str, object]]:
    """Return what simulated annotators reach: each tries some words for the class that fails most, and keeps the best of them."""
    class_name = workshop.worst_class()
    known: dict[str, float] = {}
    found: list[Mapping[str, object]] = []
    for _ in range(n_annotators):
        words = draws.choice(workshop.world.vocabulary, n_phrases, replace=False)
        tried = [workshop.phrase(class_name, str(one)) for one in words]
        best = max(tried, key=lambda one: one.score)
        if best.words not in known:
            repaired = workshop.as_published("worst-slice", [best])
            known[best.words] = float(workshop.answered("annotator", repaired)[WORST])
        found.append({"words": best.words, "score": best.score, WORST: known[best.words]})
    return found
