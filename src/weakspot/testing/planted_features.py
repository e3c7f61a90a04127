"""Embeddings of planted scenes: a space shared with words, and the features of a classifier.

Both are a function of what is in the scene and of its instance number alone. Noise is drawn in blocks of instances, so any rows in
any order, in pieces of any size, give the same numbers.

Trains the last layer of a planted world's classifier on its training rows.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, ByteArray, FloatArray, IntArray, unit_rows
from weakspot.core.dataset import Dataset, Split, Task
from weakspot.core.errors import NotEnoughDataError
from weakspot.core.heads import Head
from weakspot.core.seeding import generator
from weakspot.testing.planted_problems import PlantedProblem
from weakspot.testing.scenes import FACTOR_NAMES, FACTORS, KINDS, VALUE_WORDS, words_of

CLIP_DIMENSION = 64
FEATURE_DIMENSION = 32
NOISE_BLOCK = 1024
ENCODER_ID = "planted-1"
FACTOR_WEIGHTS = {
    "kind": 1.2,
    "colour": 1.0,
    "size": 0.6,
    "background": 1.0,
    "count": 0.6,
    "position": 0.5,
    "lighting": 0.8,
}
WORD_WEIGHT = 0.3
SILENT_WORDS = frozenset(
    {
        "a",
        "an",
        "and",
        "at",
        "background",
        "in",
        "light",
        "of",
        "on",
        "photo",
        "image",
        "picture",
        "the",
        "with",
    }
)


@cache
def _rotation(name: str, dimension: int) -> AnyArray:
    drawn = generator(0, "planted space", name).standard_normal((dimension, dimension))
    axes, corner = np.linalg.qr(drawn)
    return np.asarray(axes * np.sign(np.diag(corner)), dtype=np.float32)


def noise(instances: IntArray, dimension: int, stream: str) -> FloatArray:
    """Return standard normal numbers [n, dimension] that belong to the instance numbers."""
    found = np.empty((len(instances), dimension), dtype=np.float32)
    blocks = instances // NOISE_BLOCK
    order = np.argsort(blocks, kind="stable")
    edges = np.flatnonzero(np.diff(blocks[order])) + 1
    for chosen in np.split(order, edges) if len(order) else []:
        random = generator(0, "planted noise", stream, str(int(blocks[chosen[0]])))
        drawn = random.standard_normal((NOISE_BLOCK, dimension), dtype=np.float32)
        found[chosen] = drawn[instances[chosen] % NOISE_BLOCK]
    return found


@cache
def _joint_tables() -> tuple[FloatArray, ...]:
    """Return for every factor the summed axes of each of its codes, so that a scene's embedding is a sum of looked-up rows."""
    axes = _rotation("joint", CLIP_DIMENSION)
    tables, first = [], 1
    for name, values in FACTORS.items():
        weighted = FACTOR_WEIGHTS[name] * axes[first : first + len(values)]
        tables.append(
            np.asarray(_mask_bits() @ weighted if name == "kind" else weighted, dtype=np.float32)
        )
        first += len(values)
    return tuple(tables)


def _mask_bits() -> FloatArray:
    return (np.arange(1 << len(KINDS))[:, None] >> np.arange(len(KINDS)) & 1).astype(np.float32)


def scene_embeddings(codes: ByteArray, instances: IntArray, *, noise_scale: float) -> FloatArray:
    """Return unit vectors [n, 64] of scenes, in the space of `phrase_embeddings`."""
    placed = np.repeat(_rotation("joint", CLIP_DIMENSION)[:1], len(codes), axis=0)
    for column, table in enumerate(_joint_tables()):
        placed += table[codes[:, column]]
    if noise_scale:
        placed += np.float32(noise_scale) * noise(instances, CLIP_DIMENSION, "joint")
    return unit_rows(placed)


def phrase_embeddings(phrases: Sequence[str]) -> FloatArray:
    """Return unit vectors [m, 64] of phrases: the values they name, and a small trace of the words that mean nothing here."""
    columns = {
        value: place
        for place, value in enumerate(value for values in FACTORS.values() for value in values)
    }
    parts = np.zeros((len(phrases), CLIP_DIMENSION), dtype=np.float32)
    parts[:, 0] = 1.0
    first_free = 1 + len(columns)
    for row, phrase in enumerate(phrases):
        for word in dict.fromkeys(words_of(phrase)):
            if word in VALUE_WORDS:
                name, value = VALUE_WORDS[word]
                parts[row, 1 + columns[value]] = FACTOR_WEIGHTS[name]
            elif word not in SILENT_WORDS:
                digest = hashlib.sha256(word.encode()).digest()
                parts[row, first_free + digest[0] % (CLIP_DIMENSION - first_free)] += (
                    WORD_WEIGHT * (1 if digest[1] % 2 else -1)
                )
    return unit_rows(parts @ _rotation("joint", CLIP_DIMENSION))


@dataclass(frozen=True, kw_only=True)
class OwnFeatures:
    """The features under a planted classifier's last layer.

    They show the kind of object in noise. Under `spurious` they show the planted factor as well; under `rare` the planted
    subpopulation looks more like its rival, and only a direction of its own, which training must have seen, tells it apart.
    Otherwise no factor but the kind enters.
    """

    problem: PlantedProblem
    noise_scale: float = 0.4
    cue_scale: float = 1.7

    def of(self, codes: ByteArray, instances: IntArray) -> FloatArray:
        """Return features [n, 32]."""
        axes, problem = _rotation("own", FEATURE_DIMENSION), self.problem
        shown = (_mask_bits() @ axes[: len(KINDS)])[codes[:, 0]]
        if problem.kind == "spurious":
            shown += (
                np.float32(self.cue_scale)
                * axes[len(KINDS) :][codes[:, FACTOR_NAMES.index(problem.factor)]]
            )
        if problem.kind == "rare":
            own, rival = axes[KINDS.index(problem.class_name)], axes[KINDS.index(problem.rival)]
            shown[self.inside(codes)] += 0.7 * rival - 0.65 * own + 1.2 * axes[len(KINDS)]
        shown += np.float32(self.noise_scale) * noise(instances, FEATURE_DIMENSION, "own")
        return np.asarray(shown, dtype=np.float32)

    def inside(self, codes: ByteArray) -> BoolArray:
        """Return which scenes show the class and the value of the problem [n]."""
        problem = self.problem
        has_class = (codes[:, 0] >> KINDS.index(problem.class_name) & 1).astype(np.bool_)
        values = codes[:, FACTOR_NAMES.index(problem.factor)]
        return np.asarray(
            has_class & (values == FACTORS[problem.factor].index(problem.value)), dtype=np.bool_
        )

    def kind_axis(self, kind: str) -> FloatArray:
        """Return the direction [32] along which a kind shows."""
        return np.asarray(_rotation("own", FEATURE_DIMENSION)[KINDS.index(kind)], dtype=np.float32)


def fit_head(
    own: OwnFeatures,
    codes: ByteArray,
    instances: IntArray,
    *,
    labels: BoolArray,
    dataset: Dataset,
    largest: int,
) -> Head:
    """Return a logistic regression on the first `largest` training rows, as a last layer."""
    rows = dataset.rows_of(Split.TRAIN)[:largest]
    features, truth = own.of(codes[rows], instances[rows]), labels[rows]
    _refuse_if_missing(truth, dataset)
    if dataset.task is Task.SINGLE_LABEL:
        weights, bias = _fit_softmax(features, truth.argmax(axis=1))
    elif own.problem.kind == "none":
        weights, bias = _fit_along_axes(own, features, truth, dataset.class_names)
    else:
        fitted = [_fit_logistic(features, truth[:, code]) for code in range(truth.shape[1])]
        weights, bias = (
            np.stack([weight for weight, _ in fitted]),
            np.array([offset for _, offset in fitted]),
        )
    return Head(weights=weights.astype(np.float32), bias=bias.astype(np.float32), task=dataset.task)


def _refuse_if_missing(truth: BoolArray, dataset: Dataset) -> None:
    one_sided = [
        name
        for name, column in zip(dataset.class_names, truth.T, strict=True)
        if not column.any() or column.all()
    ]
    if one_sided:
        raise NotEnoughDataError(
            "Too few training samples to train on.", given=one_sided, fix="Plant a larger world."
        )


def _fit_softmax(features: FloatArray, labels: IntArray) -> tuple[FloatArray, FloatArray]:
    from sklearn.linear_model import LogisticRegression

    fitted = LogisticRegression(C=1.0, max_iter=500).fit(features.astype(np.float64), labels)
    weights, bias = fitted.coef_, fitted.intercept_
    if len(weights) == 1:
        weights, bias = np.concatenate([-weights, weights]) / 2, np.concatenate([-bias, bias]) / 2
    return weights, bias


def _fit_logistic(features: FloatArray, truth: BoolArray) -> tuple[FloatArray, float]:
    from sklearn.linear_model import LogisticRegression

    fitted = LogisticRegression(C=1.0, max_iter=500).fit(features.astype(np.float64), truth)
    return fitted.coef_[0], float(fitted.intercept_[0])


def _fit_along_axes(
    own: OwnFeatures, features: FloatArray, truth: BoolArray, names: tuple[str, ...]
) -> tuple[FloatArray, FloatArray]:
    """Fit each label along its own axis only, so that in the null no other kind in the scene can sway it."""
    weights, bias = [], []
    for code, name in enumerate(names):
        axis = own.kind_axis(name)
        slope, offset = _fit_logistic((features @ axis)[:, None], truth[:, code])
        weights.append(slope[0] * axis)
        bias.append(offset)
    return np.stack(weights), np.array(bias)
