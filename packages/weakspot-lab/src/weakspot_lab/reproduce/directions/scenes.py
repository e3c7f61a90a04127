"""Stand-in for CelebA: drawn scenes in which the shape is the label and the background goes with it in training."""

from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import AnyArray, ByteArray, FloatArray, IntArray, child_seed, generator
from weakspot.testing.planted import phrase_embeddings, scene_embeddings
from weakspot.testing.scenes import FACTOR_NAMES, FACTORS, KINDS, render, scene_from_codes
from weakspot_lab.reproduce.directions.case import TEST, TRAIN, VALIDATION, Case

CLASSES = ("disc", "ring")
PLACES = ("plain", "grassy")
"""Background that goes with each class in training; with the other one a sample is of the minority."""
SIDE = 32
NOISE = 0.12
GRAIN = 12.0
MINORITY_SHARE = 0.33
COLOUR, BACKGROUND, LIGHTING, POSITION = (
    FACTOR_NAMES.index(name) for name in ("colour", "background", "lighting", "position")
)
FREE = (COLOUR, POSITION, LIGHTING)


@dataclass(frozen=True, kw_only=True)
class SceneSizes:
    """How many samples there are: training samples of the majority and validation and test samples, of every class."""

    train: int = 900
    validation: int = 500
    test: int = 500


def scene_case(ratio: float, sizes: SceneSizes, *, seed: int) -> Case:
    """Return scenes with so many majority samples for each minority sample in training; validation is balanced.

    As in the paper, a third of the test samples are of the minority.
    """
    draws = generator(seed, "scenes", f"{ratio:g}")
    shares = {
        TRAIN: (sizes.train, 1.0 / (1.0 + ratio)),
        VALIDATION: (sizes.validation, 0.5),
        TEST: (sizes.test, MINORITY_SHARE),
    }
    labels, minority, splits = [], [], []
    for split, (size, share) in shares.items():
        for code in range(len(CLASSES)):
            n_minority = round(size * share)
            labels += [code] * size
            minority += [True] * n_minority + [False] * (size - n_minority)
            splits += [split.value] * size
    coded = scene_codes(np.array(labels), np.array(minority), draws)
    instances = _instances(len(labels), seed, f"{ratio:g}")
    return Case(
        class_names=CLASSES,
        labels=np.array(labels, dtype=np.int64),
        is_minority=np.array(minority, dtype=np.bool_),
        splits=np.array(splits),
        inputs=draw_scenes(coded, instances),
        embeddings=scene_embeddings(coded, instances, noise_scale=NOISE),
        embed_texts=phrase_embeddings,
    )


def scene_codes(labels: IntArray, is_minority: AnyArray, draws: np.random.Generator) -> ByteArray:
    """Return codes [n, 7]: kind and background are given, colour, place and light are by lot; objects are small."""
    coded = np.zeros((len(labels), len(FACTOR_NAMES)), dtype=np.uint8)
    coded[:, 0] = np.array([1 << KINDS.index(name) for name in CLASSES])[labels]
    places = np.array([FACTORS["background"].index(name) for name in PLACES])
    coded[:, BACKGROUND] = places[np.where(is_minority, 1 - labels, labels)]
    for column in FREE:
        coded[:, column] = draws.integers(0, len(FACTORS[FACTOR_NAMES[column]]), len(labels))
    return coded


def candidate_captions(class_name: str) -> tuple[str, ...]:
    """Return captions of the paper's form: an adjective, the class, a place."""
    places = [f" on a {name} background" for name in FACTORS["background"]]
    lights = [" in bright light", " in the dark"]
    return tuple(
        f"a photo of a {colour}{class_name}{place}"
        for colour in ("", *(f"{name} " for name in FACTORS["colour"]))
        for place in ("", *places, *lights)
        if colour or place
    )


def reference_caption(class_name: str) -> str:
    return f"a photo of a {class_name}"


def images_of_caption(
    caption: str, class_name: str, n_images: int, *, seed: int
) -> tuple[AnyArray, FloatArray]:
    """Return images [n, h, w, 3] of a caption and their embeddings: what it does not say is by lot, as a generator draws it."""
    draws = generator(seed, "caption", caption)
    coded = np.zeros((n_images, len(FACTOR_NAMES)), dtype=np.uint8)
    coded[:, 0] = 1 << KINDS.index(class_name)
    for column in (*FREE, BACKGROUND):
        coded[:, column] = draws.integers(0, len(FACTORS[FACTOR_NAMES[column]]), n_images)
    words = caption.replace(",", "").split()
    for column in (*FREE, BACKGROUND):
        for place, value in enumerate(FACTORS[FACTOR_NAMES[column]]):
            if value in words:
                coded[:, column] = place
    instances = _instances(n_images, seed, caption)
    return draw_scenes(coded, instances), scene_embeddings(coded, instances, noise_scale=NOISE)


def draw_scenes(coded: ByteArray, instances: IntArray) -> AnyArray:
    """Return images [n, side, side, 3]; some are grainy, which makes them hard for reasons of their own."""
    drawn = np.stack(
        [
            np.asarray(
                render(
                    scene_from_codes(one, instance=int(number)), side=SIDE, marked=False
                ).convert("RGB")
            )
            for one, number in zip(coded, instances, strict=True)
        ]
    )
    grains = [generator(0, "grain", str(number)) for number in instances.tolist()]
    grain = np.stack(
        [one.exponential(GRAIN) * one.standard_normal((SIDE, SIDE, 1)) for one in grains]
    )
    return np.asarray(np.clip(drawn + grain, 0, 255), dtype=np.uint8)


def _instances(n_samples: int, seed: int, name: str) -> IntArray:
    first = child_seed(seed, "reproduce scenes", name) % 2**23
    return np.asarray(first + np.arange(n_samples), dtype=np.int64)
