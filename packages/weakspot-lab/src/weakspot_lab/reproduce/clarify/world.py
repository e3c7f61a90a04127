"""A problem of the Clarify paper: embeddings of images and words, a label, and groups that only score."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from weakspot.core.arrays import AnyArray, FloatArray, IntArray, generator, unit_rows
from weakspot.core.dataset import Split, dataset_from_columns
from weakspot.core.heads import Head
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot_lab.reproduce.photographs import GroupedSamples

SPACE = "clip"
COLUMN = "place"
WIDTH = 64
ENCODER = "stand-in"


@dataclass(frozen=True, kw_only=True, eq=False)
class ClarifyWorld(GroupedSamples):
    """Embeddings in two classes and two values of an attribute that goes with them; no arm but the references sees the groups.

    Args:
        name: which data set it is, or stands for.
        embeddings: [n, d].
        embed_texts: phrases to the same space.
        class_prompts: one phrase a class.
        group_prompts: phrases of every class, one a value.
        contrast: two phrases that name the attribute and nothing else.
        expert: phrase that an expert gives for every class, as in the paper.
        vocabulary: phrases that annotators and captions may use.
    """

    name: str
    embeddings: FloatArray
    embed_texts: Callable[[Sequence[str]], FloatArray]
    class_prompts: tuple[str, ...]
    group_prompts: tuple[tuple[str, ...], ...]
    contrast: tuple[str, str]
    expert: Mapping[str, str]
    vocabulary: tuple[str, ...]

    def rows(self, split: Split) -> IntArray:
        return np.flatnonzero(self.splits == split.value)

    @cached_property
    def groups(self) -> IntArray:
        """Return the number of every sample's group [n]."""
        return self.labels * len(self.values) + self.attributes

    @cached_property
    def training_shares(self) -> FloatArray:
        """Return the share of every group among training samples."""
        counts = np.bincount(
            self.groups[self.rows(Split.TRAIN)],
            minlength=len(self.class_names) * len(self.values),
        )
        return np.asarray(counts / counts.sum(), dtype=np.float64)

    def samples(self, head: Head) -> SampleSet:
        """Return all samples with the predictions of a last layer, and the groups as a column."""
        probabilities = head.probabilities(self.embeddings)
        dataset = dataset_from_columns(
            class_names=self.class_names,
            labels=self.labels,
            splits=list(self.splits),
            metadata={COLUMN: [self.values[one] for one in self.attributes]},
            predictions=probabilities.argmax(axis=1),
            probabilities=probabilities,
        )
        space = EmbeddingSpace(encoder_id=ENCODER, embeddings=self.embeddings, has_text=True)
        return SampleSet(
            dataset=dataset, rows=np.arange(len(self.labels)), spaces={SPACE: space}, name=self.name
        )


@dataclass(frozen=True, kw_only=True)
class Shape:
    """How a planted problem looks.

    Args:
        label: how far the label moves an embedding.
        attribute: how far the attribute does.
        noise: standard deviation of every dimension.
        trace: how much a class's name sounds like the attribute that goes with it.
    """

    label: float
    attribute: float
    noise: float
    trace: float


BIRD_SIZES = {
    Split.TRAIN: (3498, 184, 56, 1057),
    Split.VALIDATION: (467, 466, 133, 133),
    Split.TEST: (2255, 2255, 642, 642),
}
"""Waterbirds: landbirds on land and water, waterbirds on land and water."""
FACE_SIZES = {
    Split.TRAIN: (7163, 6687, 2288, 139),
    Split.VALIDATION: (854, 828, 287, 36),
    Split.TEST: (977, 754, 248, 90),
}
"""A tenth of CelebA: women and men who are not blond, and who are; no fewer blond men than can be measured."""
BIRD_SHAPE = Shape(label=0.55, attribute=0.7, noise=0.2, trace=0.75)
FACE_SHAPE = Shape(label=0.6, attribute=0.85, noise=0.22, trace=0.2)
BIRD_WORDS = {
    "forest": -1.0, "forests": -0.95, "trees": -0.9, "tall trees": -0.8, "woods": -0.9, "plants": -0.5, "greenery": -0.7,
    "bamboo": -0.8, "leaves": -0.5, "branches": -0.4, "grass": -0.4, "landscape": -0.2, "no water": 0.3, "dark backgrounds": -0.4,
    "water": 1.0, "blue water": 0.9, "ocean": 0.95, "sandy beaches": 0.6, "birds floating in water": 0.7, "lake": 0.9,
    "wings": 0.0, "beak": 0.0, "red": 0.0, "black": -0.1, "humans": 0.0, "sticks": -0.3, "shadows": -0.1, "eyes": 0.0,
}  # fmt: skip
FACE_WORDS = {
    "man": 1.0, "men": 1.0, "males": 0.95, "short hair": 0.7, "very short hair": 0.75, "beards": 0.8, "short haired men": 0.9,
    "woman": -1.0, "females": -0.95, "long hair": -0.7, "curls": -0.4, "earrings": -0.6, "lipstick": -0.8, "bangs": -0.3,
    "glasses": 0.2, "smiles": -0.1, "hats": 0.2, "red": 0.0, "white backgrounds": 0.0, "dim lighting": 0.1, "tan skin": 0.0,
    "letters": 0.0, "shoulders": -0.1, "teeth": 0.0,
}  # fmt: skip


def planted_birds(*, seed: int, part: float = 1.0) -> ClarifyWorld:
    """Return a stand-in of Waterbirds: the same groups and sizes, planted embeddings."""
    return _planted(
        "Waterbirds",
        ("landbird", "waterbird"),
        ("land", "water"),
        BIRD_SIZES,
        BIRD_SHAPE,
        BIRD_WORDS,
        expert={"landbird": "water", "waterbird": "forest"},
        seed=seed,
        part=part,
    )


def planted_faces(*, seed: int, part: float = 1.0) -> ClarifyWorld:
    """Return a stand-in of CelebA: the same groups and a tenth of the sizes, planted embeddings."""
    return _planted(
        "CelebA",
        ("other hair", "blond hair"),
        ("woman", "man"),
        FACE_SIZES,
        FACE_SHAPE,
        FACE_WORDS,
        expert={"blond hair": "man"},
        seed=seed,
        part=part,
    )


def _planted(
    name: str,
    class_names: tuple[str, str],
    values: tuple[str, str],
    sizes: Mapping[Split, tuple[int, ...]],
    shape: Shape,
    words: Mapping[str, float],
    *,
    expert: Mapping[str, str],
    seed: int,
    part: float,
) -> ClarifyWorld:
    draws = generator(seed, "clarify", name)
    groups = np.concatenate(
        [
            np.repeat(np.arange(4), [max(6, round(part * one)) for one in counts])
            for counts in sizes.values()
        ]
    )
    splits = np.concatenate(
        [
            np.full(sum(max(6, round(part * one)) for one in counts), split.value)
            for split, counts in sizes.items()
        ]
    )
    axes = np.linalg.qr(draws.standard_normal((WIDTH, WIDTH)))[0]
    modality, spoken_gap, label_axis, attribute_axis = axes[:4]
    labels, attributes = groups // 2, groups % 2
    placed = (
        modality
        + shape.label * np.outer(2 * labels - 1, label_axis) / 2
        + shape.attribute * np.outer(2 * attributes - 1, attribute_axis) / 2
        + shape.noise * draws.standard_normal((len(groups), WIDTH))
    )

    def embed(phrases: Sequence[str]) -> FloatArray:
        return unit_rows(np.array([say(phrase) for phrase in phrases], dtype=np.float32))

    def say(phrase: str) -> AnyArray:
        """Return the embedding of words: what they mean, and an error of their own."""
        along_label = sum((2 * code - 1) for code, one in enumerate(class_names) if one in phrase)
        meant = [strength for word, strength in words.items() if f" {word} " in f" {phrase} "]
        named = [(2 * code - 1) for code, one in enumerate(values) if f"with {one}" in phrase]
        along = sum(meant[:1]) + sum(named) + (0 if named else shape.trace * along_label)
        digest = int(hashlib.sha256(f"{seed} {phrase}".encode()).hexdigest()[:8], 16)
        error = np.random.default_rng(digest).standard_normal(WIDTH)
        return np.asarray(
            modality
            + 0.4 * spoken_gap
            + 0.5 * along_label * label_axis
            + 0.5 * along * attribute_axis
            + 0.06 * error
        )

    return ClarifyWorld(
        name=name,
        class_names=class_names,
        values=values,
        labels=np.asarray(labels, dtype=np.int64),
        attributes=np.asarray(attributes, dtype=np.int64),
        splits=splits,
        embeddings=unit_rows(placed.astype(np.float32)),
        embed_texts=embed,
        class_prompts=tuple(f"a photo of a {one}" for one in class_names),
        group_prompts=tuple(
            tuple(f"a photo of a {one} with {value}" for value in values) for one in class_names
        ),
        contrast=(f"a photo with {values[0]}", f"a photo with {values[1]}"),
        expert=expert,
        vocabulary=tuple(words),
    )
