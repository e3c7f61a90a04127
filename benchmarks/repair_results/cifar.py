"""Experiment: images added to CIFAR-10 by direction, by confidence and at random, after the protocol of the Directions paper."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import pyarrow as pa
from pydantic import JsonValue

from repair_results.cifar_project import CifarImages, cifar_images
from repair_results.cifar_tables import ALL, BEFORE, CLOSEST, RANDOM, cifar_page
from repair_results.figures import Figures
from repair_results.patches import PatchLearner
from weakspot.core.arrays import BoolArray, FloatArray, IntArray, generator, unit_rows
from weakspot.core.assistants import Assistants
from weakspot.core.dataset import SPLIT_ORDER, Split
from weakspot.core.failures import FailureCriterion, probabilities_of
from weakspot.core.heads import Head, RepairMaterial
from weakspot.core.roles import Discoverer, Repairer
from weakspot.core.run import StageProgress
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.repair.training.trainer import HeadTrainer
from weakspot.run.settings import Settings
from weakspot.run.wiring import build_describer, build_part

SHARES = {Split.TRAIN: 0.2, Split.VALIDATION: 0.2, Split.POOL: 0.6}
ARMS: Mapping[str, tuple[str, Mapping[str, JsonValue]]] = {
    "by direction": ("pool-deepest", {"only_members": False}),
    "by confidence in the likeliest class": ("pool-confidence", {}),
    RANDOM: ("pool-random", {}),
}
BY_TRUTH = "by confidence in the true class"
PER_CLASS = 100
PENALTIES = (0.01, 0.03, 0.1, 0.3, 1.0)


@dataclass(frozen=True, kw_only=True)
class CifarExperiment:
    """The CIFAR-10 experiment of the Directions paper on a part of CIFAR-10, with a small classifier.

    The classifier's features are learnt without labels from the training images and stay as they are; its last layer is trained.

    Args:
        n_runs: splits of the images.
        n_images: images that are split into training, validation and pool.
        per_class: images of every class that are added.
        seed: of the first split.
        learner: how features are learnt.
    """

    n_runs: int = 5
    n_images: int = 8_000
    per_class: int = PER_CLASS
    seed: int = 0
    learner: PatchLearner = PatchLearner()  # noqa: RUF009 - frozen

    @property
    def name(self) -> str:
        """Return the name."""
        return "cifar10"

    @property
    def command(self) -> str:
        """Return the command that runs it."""
        words = [
            "python",
            "benchmarks/repair.py",
            self.name,
            "--runs",
            str(self.n_runs),
            "--images",
            str(self.n_images),
        ]
        return shlex.join([*words, "--seed", str(self.seed)])

    def units(self) -> Sequence[str]:
        """Return one unit a split."""
        return [f"run {number}" for number in range(self.n_runs)]

    def measure(self, unit: str, progress: StageProgress) -> tuple[Figures, ...]:
        """Return the figures of every arm on one split."""
        seed = self.seed + int(unit.rsplit(maxsplit=1)[-1])
        run = CifarRun.of(_images(self.n_images, progress), self.learner, seed=seed)
        return tuple(run.figures(unit, self.per_class))

    def page(self, figures: Sequence[Figures]) -> str:
        """Return all tables."""
        title = f"# CIFAR-10, images added from a pool ({self.n_runs} runs, {self.n_images} images)"
        return f"{title}\n\n{cifar_page(figures)}"


@lru_cache(maxsize=1)
def _images(n_images: int, progress: StageProgress) -> CifarImages:
    return cifar_images(n_images, progress)


@dataclass(frozen=True, kw_only=True, eq=False)
class CifarRun:
    """One split with its classifier.

    Args:
        samples: all images, with predictions, joint and own embeddings.
        slices: one direction a class, named.
        head: the classifier's last layer.
        penalty: chosen on validation images, the same for all arms.
        assistants: who embeds names.
        seed: of the split.
    """

    samples: SampleSet
    slices: tuple[FailureSlice, ...]
    head: Head
    penalty: float
    assistants: Assistants
    seed: int

    @classmethod
    def of(cls, images: CifarImages, learner: PatchLearner, *, seed: int) -> "CifarRun":
        """Split images, learn features and a last layer from the training part, and find a direction a class on validation."""
        samples = split_samples(images, learner, seed=seed)
        dataset = samples.dataset
        training, validation = dataset.rows_of(Split.TRAIN), dataset.rows_of(Split.VALIDATION)
        heads = {penalty: trained(samples, training, penalty) for penalty in PENALTIES}
        penalty = max(heads, key=lambda one: _accuracy(samples, heads[one], validation))
        probabilities = heads[penalty].probabilities(
            samples.embeddings("features", np.arange(len(dataset)))
        )
        known = dataset.with_predictions(
            predictions=probabilities.argmax(axis=1), probabilities=probabilities
        )
        samples = replace(samples, dataset=known)
        assistants = Assistants(embed_texts=images.embed_texts)
        slices = _directions(samples.only(validation, name="validation images"), assistants, seed)
        return cls(
            samples=samples,
            slices=slices,
            head=heads[penalty],
            penalty=penalty,
            assistants=assistants,
            seed=seed,
        )

    def figures(self, unit: str, per_class: int) -> Iterator[Figures]:
        """Yield the figures of the classifier and of every arm: overall, per class and over classes."""
        yield from self._arm(unit, BEFORE, self.head)
        training = self.samples.dataset.rows_of(Split.TRAIN)
        for arm, added in self.additions(per_class):
            yield from self._arm(
                unit,
                arm,
                trained(self.samples, np.sort(np.concatenate([training, added])), self.penalty),
            )

    def additions(self, per_class: int) -> Iterator[tuple[str, IntArray]]:
        """Yield what every arm adds: the choice of registered strategies, and the images whose label is doubted most.

        A class without failures has no direction, and no arm adds images of it.
        """
        for arm, (method, options) in ARMS.items():
            part: Repairer = build_part("repairers", method, options, where="benchmarks/repair.py")
            yield arm, self._added(part, per_class)
        dataset = self.samples.dataset
        pool, probabilities = (
            dataset.rows_of(Split.POOL),
            probabilities_of(dataset, dataset.rows_of(Split.POOL), purpose=BY_TRUTH),
        )
        doubts = -probabilities[np.arange(len(pool)), dataset.labels[pool]]
        ranked = pool[np.argsort(-doubts, kind="stable")]
        yield (
            BY_TRUTH,
            np.concatenate(
                [ranked[dataset.labels[ranked] == code][:per_class] for code in self._codes]
            ),
        )

    def _added(self, part: Repairer, per_class: int) -> IntArray:
        """Return the images of the pool that a registered strategy chooses, class by class."""
        dataset = self.samples.dataset
        training, pool = dataset.rows_of(Split.TRAIN), dataset.rows_of(Split.POOL)
        chosen: list[IntArray] = []
        for code, found in zip(self._codes, self.slices, strict=True):
            material = RepairMaterial(
                training=self.samples.only(training),
                pool=self.samples.only(
                    pool[dataset.labels[pool] == code], name=f"pool of {found.class_name}"
                ),
                budget=per_class,
                seed=self.seed,
                assistants=self.assistants,
            )
            chosen.append(np.setdiff1d(part.select([found], material).rows, training))
        return np.concatenate(chosen)

    @property
    def _codes(self) -> list[int]:
        return [self.samples.dataset.class_code(found.class_name) for found in self.slices]

    def _arm(self, unit: str, arm: str, head: Head) -> Iterator[Figures]:
        dataset, test = self.samples.dataset, self.samples.dataset.rows_of(Split.TEST)
        right = self._right(head, test)
        yield Figures(
            unit=unit,
            part=ALL,
            arm=arm,
            values={"overall": float(right.mean()), "penalty": self.penalty},
        )
        for found in self.slices:
            own = dataset.labels[test] == dataset.class_code(found.class_name)
            values = {"class": float(right[own].mean()), "strength": found.strength or 0.0}
            for place, scores in (
                ("name", self._nearness(found, test[own])),
                ("direction", found.rule.scores(self.samples, test[own])),
            ):
                order = np.argsort(-scores, kind="stable")
                values |= {
                    f"{place} {count}": float(right[own][order[:count]].mean()) for count in CLOSEST
                }
            yield Figures(
                unit=unit, part=found.class_name, arm=arm, values=values, note=_name(found)
            )

    def _right(self, head: Head, rows: IntArray) -> BoolArray:
        said = head.probabilities(self.samples.embeddings("features", rows)).argmax(axis=1)
        return np.asarray(said == self.samples.dataset.labels[rows], dtype=np.bool_)

    def _nearness(self, found: FailureSlice, rows: IntArray) -> FloatArray:
        """Return how near images are to the name of a slice, by the cosine; along its direction where it has no name."""
        if not found.names or self.assistants.embed_texts is None:
            return np.asarray(found.rule.scores(self.samples, rows), dtype=np.float32)
        phrase = self.assistants.embed_texts([found.names[0].phrase])[0]
        return np.asarray(
            unit_rows(self.samples.embeddings("clip", rows)) @ phrase, dtype=np.float32
        )


def split_samples(images: CifarImages, learner: PatchLearner, *, seed: int) -> SampleSet:
    """Return the images split by chance, class by class, with features learnt from the training part."""
    dataset = images.dataset
    codes = np.full(len(dataset), SPLIT_ORDER.index(Split.TEST), dtype=np.int8)
    others = dataset.rows_of(Split.TRAIN)
    for code in range(dataset.n_classes):
        own = generator(seed, "cifar10", str(code)).permutation(
            others[dataset.labels[others] == code]
        )
        ends = np.round(np.cumsum(list(SHARES.values())) * len(own)).astype(np.int64)
        for split, part in zip(SHARES, np.split(own, ends[:-1]), strict=True):
            codes[part] = SPLIT_ORDER.index(split)
    place = dataset.table.column_names.index("split")
    table = dataset.table.set_column(place, "split", pa.array(codes, pa.int8()))
    known = replace(dataset, table=table)
    training = known.rows_of(Split.TRAIN)
    own_embeddings = learner.learnt(images.pixels[training], seed=seed).of(images.pixels)
    spaces = {
        "clip": images.joint,
        "features": EmbeddingSpace(encoder_id=f"patches-{seed}", embeddings=own_embeddings),
    }
    return SampleSet(
        dataset=known,
        rows=np.arange(len(known)),
        spaces=spaces,
        name="all images",
        reference_rows=training,
    )


def trained(samples: SampleSet, rows: IntArray, penalty: float) -> Head:
    """Return the last layer trained on the given rows, all counting the same."""
    dataset = samples.dataset
    trainer = HeadTrainer(penalty=penalty)
    return trainer.train(
        samples.embeddings("features", rows),
        dataset.label_matrix[rows],
        np.ones(len(rows)),
        task=dataset.task,
    ).head


def _accuracy(samples: SampleSet, head: Head, rows: IntArray) -> float:
    return float(
        np.mean(
            head.probabilities(samples.embeddings("features", rows)).argmax(axis=1)
            == samples.dataset.labels[rows]
        )
    )


def _directions(
    validation: SampleSet, assistants: Assistants, seed: int
) -> tuple[FailureSlice, ...]:
    """Return one named direction a class, as in the paper, however weak it is."""
    options = {"n_directions": 1, "min_strength": 0.0, "n_permutations": 0}
    part: Discoverer = build_part(
        "discoverers", "directions", options, where="benchmarks/repair.py"
    )
    criterion = FailureCriterion()
    found = part.discover(validation, criterion, seed=seed, assistants=assistants).slices
    named = build_describer(Settings()).describe(found, validation, criterion, assistants)
    return tuple(sorted(named, key=lambda one: validation.dataset.class_code(one.class_name)))


def _name(found: FailureSlice) -> str:
    return found.names[0].phrase if found.names else ""
