"""Rendered scenes, divided into splits; in training, classes mostly come with values of their own."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from weakspot.core.arrays import BoolArray, ByteArray, FloatArray, IntArray, child_seed, generator
from weakspot.core.dataset import SPLIT_ORDER, Dataset, Split
from weakspot.testing.planted import GeneratedRows, scene_embeddings, world_table
from weakspot.testing.scenes import (
    FACTOR_NAMES,
    FACTORS,
    KINDS,
    N_INSTANCES,
    render,
    scene_from_codes,
    strip_height,
)

SIDE = 32
EMBEDDING_NOISE = 0.1
Look = Literal["first", "second"]
"""Who draws: the renderer as it is, or a softer one with other light and other tones."""
SOFT, TONES, SHADE = 0.5, (1.1, 0.98, 0.86), 0.35


@dataclass(frozen=True, kw_only=True)
class SceneRules:
    """What scenes a world holds.

    Args:
        classes: kinds of object, each a class.
        colours: if any, every kind in every one of these colours is a class of its own.
        sizes: of every split: how many scenes.
        allowed: values that occur at all, by factor; all by default.
        allowed_in_training: values that occur in training, by factor, where these are fewer.
        factor: what classes are tied to in training.
        usual: the values of that factor that a class mostly has in training.
        share: how often it has one of them there; otherwise any.
        seed: of everything.
    """

    classes: tuple[str, ...] = KINDS
    colours: tuple[str, ...] = ()
    sizes: Mapping[Split, int] = field(default_factory=dict)
    allowed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    allowed_in_training: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    factor: str = "background"
    usual: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    share: float = 0.0
    seed: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class SceneWorld:
    """Scenes with their pixels.

    Args:
        rules: how they were drawn.
        dataset: the samples without predictions; factors are metadata columns.
        codes: scenes [n, 7].
        instances: instance numbers [n].
    """

    rules: SceneRules
    dataset: Dataset
    codes: ByteArray
    instances: IntArray

    @cached_property
    def images(self) -> ByteArray:
        """Return pixels [n, 32, 32, 3]."""
        return rendered(self.codes, self.instances)

    @cached_property
    def embeddings(self) -> FloatArray:
        """Return joint embeddings [n, 64] by what is in the scenes, with noise."""
        return scene_embeddings(self.codes, self.instances, noise_scale=EMBEDDING_NOISE)

    def rows(self, *splits: Split) -> IntArray:
        return self.dataset.rows_of(*splits)

    def has(self, factor: str, *values: str) -> BoolArray:
        """Return which scenes have one of some values [n]."""
        wanted = [FACTORS[factor].index(value) for value in values]
        return np.isin(self.codes[:, FACTOR_NAMES.index(factor)], wanted)


def scene_world(rules: SceneRules) -> SceneWorld:
    """Draw a world; the same rules give the same world."""
    n_rows = sum(rules.sizes.values())
    splits = np.concatenate(
        [np.full(n, SPLIT_ORDER.index(split), dtype=np.uint8) for split, n in rules.sizes.items()]
    )
    in_training = splits == SPLIT_ORDER.index(Split.TRAIN)
    random = generator(rules.seed, "reproduce", "scenes")
    kinds = random.integers(len(rules.classes), size=n_rows)
    codes = np.zeros((n_rows, len(FACTOR_NAMES)), dtype=np.uint8)
    codes[:, 0] = [1 << KINDS.index(rules.classes[code]) for code in kinds]
    for place, name in enumerate(FACTOR_NAMES[1:], start=1):
        known = rules.allowed.get(name, FACTORS[name])
        codes[:, place] = _values(name, known, random, n_rows)
        if name in rules.allowed_in_training:
            fewer = _values(name, rules.allowed_in_training[name], random, n_rows)
            codes[in_training, place] = fewer[in_training]
    _tie(codes, kinds, in_training, rules)
    names, labels = _labels(codes, kinds, rules)
    truth = labels[:, None] == np.arange(len(names))
    rows = GeneratedRows(codes=codes, splits=splits, truth=truth, labels=truth)
    dataset = world_table(rows, classes=names, is_multi_label=False, seed=rules.seed)
    first = child_seed(rules.seed, "reproduce", "instances")
    instances = (first + np.arange(n_rows)) % N_INSTANCES
    return SceneWorld(rules=rules, dataset=dataset, codes=codes, instances=instances)


def _values(
    name: str, known: tuple[str, ...], random: np.random.Generator, n_rows: int
) -> IntArray:
    numbers = np.array([FACTORS[name].index(value) for value in known])
    return numbers[random.integers(len(numbers), size=n_rows)]


def _labels(
    codes: ByteArray, kinds: IntArray, rules: SceneRules
) -> tuple[tuple[str, ...], IntArray]:
    """Return the classes and the class of every scene [n]."""
    if not rules.colours:
        return rules.classes, kinds
    names = tuple(f"{colour} {kind}" for kind in rules.classes for colour in rules.colours)
    shown = codes[:, FACTOR_NAMES.index("colour")]
    place = np.array([rules.colours.index(FACTORS["colour"][code]) for code in shown])
    return names, kinds * len(rules.colours) + place


def _tie(codes: ByteArray, labels: IntArray, in_training: BoolArray, rules: SceneRules) -> None:
    random = generator(rules.seed, "reproduce", "usual values")
    is_tied = in_training & (random.random(len(codes)) < rules.share)
    for code, name in enumerate(rules.classes):
        values = [FACTORS[rules.factor].index(value) for value in rules.usual.get(name, ())]
        rows = np.flatnonzero(is_tied & (labels == code))
        if values and len(rows):
            place = FACTOR_NAMES.index(rules.factor)
            codes[rows, place] = np.array(values)[random.integers(len(values), size=len(rows))]


def usual_values(factor: str, classes: tuple[str, ...], n_each: int) -> dict[str, tuple[str, ...]]:
    """Return some values for every class, in turn, so that every value is usual somewhere.

    >>> usual_values("size", ("disc", "star"), 1)
    {'disc': ('small',), 'star': ('medium',)}
    """
    known = FACTORS[factor]
    return {
        name: tuple(known[(place + step) % len(known)] for step in range(n_each))
        for place, name in enumerate(classes)
    }


def rendered(codes: ByteArray, instances: IntArray, look: Look = "first") -> ByteArray:
    """Return the pixels of scenes [n, 32, 32, 3], without the strip that fakes read."""
    drawn = [
        np.asarray(render(scene_from_codes(code, instance=int(number)), side=SIDE, marked=False))
        for code, number in zip(codes, instances, strict=True)
    ]
    pixels = np.stack(drawn) if drawn else np.zeros((0, SIDE, SIDE, 3), dtype=np.uint8)
    return without_strip(pixels if look == "first" else softened(pixels))


def without_strip(pixels: ByteArray) -> ByteArray:
    """Return pixels [n, h, w, 3] whose first and last rows, where a strip may be, repeat their neighbours."""
    height = strip_height(pixels.shape[1])
    found = pixels.copy()
    found[:, :height] = found[:, height : height + 1]
    found[:, -height:] = found[:, -height - 1 : -height]
    return found


def softened(pixels: ByteArray) -> ByteArray:
    """Return what the second generator draws: softer edges, warmer tones, darker corners, the same scene."""
    given = pixels.astype(np.float32)
    around = (
        np.roll(given, 1, axis=1)
        + np.roll(given, -1, axis=1)
        + np.roll(given, 1, axis=2)
        + np.roll(given, -1, axis=2)
    ) / 4
    mixed = (SOFT * given + (1 - SOFT) * around) * np.array(TONES, dtype=np.float32)
    steps = np.linspace(-1.0, 1.0, pixels.shape[1], dtype=np.float32)
    corner = (steps[:, None] ** 2 + steps[None, :] ** 2) / 2
    return np.clip(np.round(mixed * (1 - SHADE * corner)[..., None]), 0, 255).astype(np.uint8)
