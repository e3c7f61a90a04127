"""Worlds with known truth: scenes with a planted problem, their embeddings and image files, and a classifier trained on them."""

import hashlib
import json
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
from PIL import Image

from weakspot.core.arrays import (
    AnyArray,
    BoolArray,
    ByteArray,
    DoubleArray,
    FloatArray,
    IntArray,
    child_seed,
    generator,
    unit_rows,
)
from weakspot.core.bounds import Bounds, Fraction, check_bounds
from weakspot.core.dataset import METADATA_PREFIX, SPLIT_ORDER, Dataset, Split, Task
from weakspot.core.errors import ConfigError, NotEnoughDataError
from weakspot.core.failures import Side, best_f1_thresholds
from weakspot.core.heads import Head
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.store.csv_tables import csv_text
from weakspot.testing.scenes import (
    FACTOR_NAMES,
    FACTORS,
    KINDS,
    N_INSTANCES,
    SIDE,
    VALUE_WORDS,
    Scene,
    render,
    scene_from_codes,
    words_of,
)

HALF = 0.5

ProblemKind = Literal["spurious", "rare", "label-noise", "none"]


def _are_two_of(known: Container[str], one: str, other: str) -> bool:
    return one in known and other in known and one != other


@dataclass(frozen=True, kw_only=True)
class PlantedProblem:
    """A flaw in the training data, and with it a slice on which a classifier trained on that data fails.

    Args:
        kind: `spurious` in training, `class_name` mostly comes with `usual_value` and `rival` with `value`; `rare` samples of
            `class_name` with `value` are rare in training and look much like `rival`; `label-noise` some labels are wrong, in
            every split; `none` nothing is wrong and failures are pure chance given the class.
        strength: rho, pi or r: the share of the two classes that is forced to its cue (`spurious`), of `class_name` that has
            `value` in training (`rare`), or of samples with a wrong label (`label-noise`).
        class_name: the class with the slice.
        rival: the class that its failures are taken for.
        factor: what the slice is about.
        value: the value of the factor that marks the slice.
        usual_value: the value that `class_name` has in training (`spurious`).
        evaluation_share: share of `value`, and of `usual_value` for `spurious`, wherever nothing is forced.
    """

    kind: ProblemKind = "none"
    strength: Fraction = 0.0
    class_name: str = "disc"
    rival: str = "star"
    factor: str = "background"
    value: str = "grassy"
    usual_value: str = "plain"
    evaluation_share: Annotated[float, Bounds(gt=0, lt=HALF)] = 0.25

    def __post_init__(self) -> None:
        problems = []
        if self.factor not in FACTORS or self.factor == "kind":
            problems.append(
                f"There is no factor {self.factor!r}; choose one of {list(FACTORS)[1:]}."
            )
        elif not _are_two_of(FACTORS[self.factor], self.value, self.usual_value):
            problems.append(
                f"Two different values are needed; choose from {list(FACTORS[self.factor])}."
            )
        if not _are_two_of(KINDS, self.class_name, self.rival):
            problems.append(f"Two different classes are needed; choose from {list(KINDS)}.")
        check_bounds(self, where="problem", problems=problems)


def spurious(rho: float = 0.95, *, class_name: str = "disc", rival: str = "star") -> PlantedProblem:
    """Return a correlation of strength rho between two classes and their backgrounds in training."""
    return PlantedProblem(kind="spurious", strength=rho, class_name=class_name, rival=rival)


def rare(share: float = 0.02, *, class_name: str = "disc", value: str = "green") -> PlantedProblem:
    """Return a colour that only the given share of a class has in training."""
    usual = "red" if value != "red" else "blue"
    return PlantedProblem(
        kind="rare",
        strength=share,
        class_name=class_name,
        factor="colour",
        value=value,
        usual_value=usual,
    )


def label_noise(rate: float = 0.1) -> PlantedProblem:
    """Return wrong labels on the given share of all samples."""
    return PlantedProblem(kind="label-noise", strength=rate)


def nothing() -> PlantedProblem:
    return PlantedProblem(kind="none")


BLOCK = 4096
N_KINDS_SHARES = (0.5, 0.3, 0.2)


@dataclass(frozen=True, kw_only=True, eq=False)
class GeneratedRows:
    """Rows of a planted world.

    Args:
        codes: scenes [n, 7], see `Scene.codes`.
        splits: position in `SPLIT_ORDER` [n].
        truth: which classes are really in the scene [n, c].
        labels: which classes the label names [n, c]; differs from `truth` under label noise.
    """

    codes: ByteArray
    splits: ByteArray
    truth: BoolArray
    labels: BoolArray


@dataclass(frozen=True, kw_only=True)
class FactorPlan:
    """How rows are drawn."""

    problem: PlantedProblem
    classes: tuple[str, ...]
    split_shares: Mapping[Split, float]
    is_multi_label: bool
    seed: int

    def draw(self, n_rows: int) -> GeneratedRows:
        starts = range(0, max(n_rows, 1), BLOCK)
        blocks = [
            self._block(number, min(BLOCK, n_rows - start)) for number, start in enumerate(starts)
        ]
        return GeneratedRows(
            codes=np.concatenate([block.codes for block in blocks]),
            splits=np.concatenate([block.splits for block in blocks]),
            truth=np.concatenate([block.truth for block in blocks]),
            labels=np.concatenate([block.labels for block in blocks]),
        )

    def _block(self, number: int, n_rows: int) -> GeneratedRows:
        random = generator(self.seed, "planted rows", str(number))
        shares = np.array([self.split_shares.get(split, 0.0) for split in SPLIT_ORDER])
        splits = _pick(random.random(BLOCK), shares / shares.sum())
        truth = self._truth(random)
        codes = np.zeros((BLOCK, len(FACTOR_NAMES)), dtype=np.uint8)
        codes[:, 0] = truth @ np.array([1 << KINDS.index(name) for name in self.classes])
        in_training = splits == SPLIT_ORDER.index(Split.TRAIN)
        for place, name in enumerate(FACTOR_NAMES[1:], start=1):
            codes[:, place] = self._values(name, truth, in_training, random)
        if self.is_multi_label:
            codes[truth.sum(axis=1) > 1, FACTOR_NAMES.index("count")] = FACTORS["count"].index(
                "one"
            )
        labels = self._labels(truth, random)
        return GeneratedRows(
            codes=codes[:n_rows],
            splits=splits[:n_rows].astype(np.uint8),
            truth=truth[:n_rows],
            labels=labels[:n_rows],
        )

    def _truth(self, random: np.random.Generator) -> BoolArray:
        ranks = random.random((BLOCK, len(self.classes))).argsort(axis=1).argsort(axis=1)
        many = random.random(BLOCK)
        if not self.is_multi_label:
            return np.equal(ranks, 0)
        n_kinds = 1 + _pick(many, np.array(N_KINDS_SHARES))
        return np.less(ranks, n_kinds[:, None])

    def _values(
        self, name: str, truth: BoolArray, in_training: BoolArray, random: np.random.Generator
    ) -> IntArray:
        first, second = random.random((2, BLOCK))
        values, problem = FACTORS[name], self.problem
        if name != problem.factor or problem.kind not in ("spurious", "rare"):
            return _pick(first, np.full(len(values), 1 / len(values)))
        common = [problem.value] + ([problem.usual_value] if problem.kind == "spurious" else [])
        found = _pick(first, _shares(values, dict.fromkeys(common, problem.evaluation_share)))
        affected = in_training & truth[:, self.classes.index(problem.class_name)]
        if problem.kind == "rare":
            return np.where(
                affected, _pick(first, _shares(values, {problem.value: problem.strength})), found
            )
        rivals = in_training & truth[:, self.classes.index(problem.rival)]
        is_forced = second < problem.strength
        found[rivals & ~affected & is_forced] = values.index(problem.value)
        found[affected & ~rivals & is_forced] = values.index(problem.usual_value)
        return found

    def _labels(self, truth: BoolArray, random: np.random.Generator) -> BoolArray:
        is_wrong = random.random(BLOCK) < self.problem.strength
        step = random.integers(1, max(len(self.classes), 2), BLOCK)
        if self.problem.kind != "label-noise":
            return truth
        labels = truth.copy()
        wrong = np.flatnonzero(is_wrong)
        if self.is_multi_label:
            flipped = (wrong + step[wrong]) % len(self.classes)
            labels[wrong, flipped] = ~labels[wrong, flipped]
            return labels
        labels[wrong] = False
        labels[wrong, (truth[wrong].argmax(axis=1) + step[wrong]) % len(self.classes)] = True
        return labels


def _shares(values: Sequence[str], fixed: Mapping[str, float]) -> DoubleArray:
    rest = (
        (1.0 - sum(fixed.values())) / (len(values) - len(fixed))
        if len(values) > len(fixed)
        else 0.0
    )
    return np.array([fixed.get(value, rest) for value in values])


def _pick(uniform: DoubleArray, shares: DoubleArray) -> IntArray:
    return np.minimum(np.searchsorted(np.cumsum(shares), uniform, side="right"), len(shares) - 1)


def world_table(
    rows: GeneratedRows, *, classes: tuple[str, ...], is_multi_label: bool, seed: int
) -> Dataset:
    """Return drawn rows as a data set without predictions."""
    n_rows = len(rows.codes)
    prefix = hashlib.sha256(f"planted {seed} {classes} {is_multi_label}".encode()).hexdigest()[:16]
    ids = pa.array([f"{prefix}{row:016x}" for row in range(n_rows)], pa.string())
    columns: dict[str, pa.Array] = {
        "sample_id": ids,
        "content_hash": ids,
        "location": pa.nulls(n_rows, pa.string()),
        "key": ids,
        "split": pa.array(rows.splits, pa.int8()),
    }
    if is_multi_label:
        ends = np.concatenate([[0], np.cumsum(rows.labels.sum(axis=1))])
        columns["labels"] = pa.ListArray.from_arrays(
            pa.array(ends, pa.int32()), pa.array(np.nonzero(rows.labels)[1], pa.int32())
        )
    else:
        columns["label"] = pa.array(rows.labels.argmax(axis=1), pa.int32())
    columns["width"] = columns["height"] = pa.array(np.zeros(n_rows, dtype=np.int32))
    columns[METADATA_PREFIX + "kind"] = _words(rows.codes[:, 0], _mask_names())
    for place, name in enumerate(FACTOR_NAMES[1:], start=1):
        columns[METADATA_PREFIX + name] = _words(rows.codes[:, place], FACTORS[name])
    columns[METADATA_PREFIX + "label_is_wrong"] = pa.array((rows.labels != rows.truth).any(axis=1))
    task = Task.MULTI_LABEL if is_multi_label else Task.SINGLE_LABEL
    return Dataset(class_names=classes, task=task, table=pa.table(columns))


def _words(codes: AnyArray, names: tuple[str, ...]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(names)).cast(
        pa.string()
    )


def _mask_names() -> tuple[str, ...]:
    return tuple(
        "+".join(kind for place, kind in enumerate(KINDS) if mask >> place & 1)
        for mask in range(1 << len(KINDS))
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class TrueSlice:
    """A planted slice.

    Args:
        class_name: the class whose samples fail.
        side: for multi-label worlds, whether members have or lack the label.
        inside: which rows of the world are members [n]; all of them are labelled (or lack) the class.
        phrase: the slice in words.
        factor: what sets it apart, or None when it is about wrong labels.
        value: the value that members have.
    """

    class_name: str
    side: Side | None
    inside: BoolArray
    phrase: str
    factor: str | None = None
    value: str | None = None


def true_slices(
    problem: PlantedProblem, rows: GeneratedRows, *, classes: tuple[str, ...], is_multi_label: bool
) -> tuple[TrueSlice, ...]:
    if problem.kind == "none" or (problem.strength == 0.0 and problem.kind != "rare"):
        return ()
    if problem.kind == "label-noise":
        return _mislabelled(rows, classes, is_multi_label=is_multi_label)
    crossed = [(problem.class_name, problem.value)]
    if problem.kind == "spurious":
        crossed.append((problem.rival, problem.usual_value))
    found = [_failing(problem, rows, classes, name=name, value=value) for name, value in crossed]
    if not is_multi_label:
        return tuple(found)
    present = [replace(item, side=Side.PRESENT) for item in found]
    return (*present, *_taken_for(problem, rows, classes, found))


def _has(problem: PlantedProblem, rows: GeneratedRows, value: str) -> BoolArray:
    return np.equal(
        rows.codes[:, FACTOR_NAMES.index(problem.factor)], FACTORS[problem.factor].index(value)
    )


def _failing(
    problem: PlantedProblem, rows: GeneratedRows, classes: tuple[str, ...], *, name: str, value: str
) -> TrueSlice:
    words = (
        f"a photo of a {value} {name}"
        if problem.factor != "background"
        else f"a photo of a {name} on a {value} background"
    )
    inside = np.logical_and(rows.labels[:, classes.index(name)], _has(problem, rows, value))
    return TrueSlice(
        class_name=name, side=None, inside=inside, phrase=words, factor=problem.factor, value=value
    )


def _taken_for(
    problem: PlantedProblem,
    rows: GeneratedRows,
    classes: tuple[str, ...],
    found: Sequence[TrueSlice],
) -> tuple[TrueSlice, ...]:
    """Return the samples that lack a label and get it all the same: the other half of each mistake in a multi-label world."""
    if problem.kind == "rare":
        lacks = ~rows.labels[:, classes.index(problem.rival)]
        return (
            replace(
                found[0], class_name=problem.rival, side=Side.ABSENT, inside=found[0].inside & lacks
            ),
        )
    cues = ((problem.class_name, problem.usual_value), (problem.rival, problem.value))
    return tuple(
        TrueSlice(
            class_name=name,
            side=Side.ABSENT,
            inside=_has(problem, rows, value) & ~rows.labels[:, classes.index(name)],
            phrase=f"a photo of something {value}",
            factor=problem.factor,
            value=value,
        )
        for name, value in cues
    )


def _mislabelled(
    rows: GeneratedRows, classes: tuple[str, ...], *, is_multi_label: bool
) -> tuple[TrueSlice, ...]:
    found = []
    for code, name in enumerate(classes):
        labelled, real = rows.labels[:, code], rows.truth[:, code]
        words = f"a photo of something that is labelled {name} and is none"
        side = Side.PRESENT if is_multi_label else None
        found.append(TrueSlice(class_name=name, side=side, inside=labelled & ~real, phrase=words))
        if is_multi_label:
            words = f"a photo of a {name} that is not labelled so"
            found.append(
                TrueSlice(class_name=name, side=Side.ABSENT, inside=real & ~labelled, phrase=words)
            )
    return tuple(found)


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


IMAGES_FOLDER = (
    "pictures"  # ids follow from paths: another name would change every published planted figure
)
SAVE_OPTIONS: dict[str, dict[str, Any]] = {"png": {"compress_level": 1}, "jpg": {"quality": 92}}


@dataclass(frozen=True, kw_only=True, eq=False)
class WrittenWorld:
    """Where the images are.

    Args:
        images: the folder with `split/class/number` (single-label) or `split/number` (multi-label).
        manifest: `manifest.csv`, or `manifest.jsonl` for multi-label worlds, with paths relative to itself.
        dataset: the world's data set, the locations of written rows filled in.
    """

    images: Path
    manifest: Path
    dataset: Dataset


def write_world(
    dataset: Dataset,
    folder: Path,
    *,
    rows: IntArray,
    draw: Callable[[int], Image.Image],
    caption: Callable[[int], str],
    suffix: str,
) -> WrittenWorld:
    if suffix not in SAVE_OPTIONS:
        raise ConfigError(
            f"Planted images cannot be written as {suffix!r}.",
            fix=f"Choose one of {list(SAVE_OPTIONS)}.",
        )
    places = {
        int(row): f"{IMAGES_FOLDER}/{_place(dataset, int(row))}/{int(row):07d}.{suffix}"
        for row in rows
    }
    for row, place in places.items():
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        draw(row).save(path, **SAVE_OPTIONS[suffix])
    entries = [
        {"path": place, **_entry(dataset, row), "caption": caption(row)}
        for row, place in places.items()
    ]
    write = _write_csv if dataset.task is Task.SINGLE_LABEL else _write_jsonl
    locations: list[str | None] = [
        str(folder / places[row]) if row in places else None for row in range(len(dataset))
    ]
    column = dataset.table.column_names.index("location")
    table = dataset.table.set_column(column, "location", pa.array(locations, pa.string()))
    return WrittenWorld(
        images=folder / IMAGES_FOLDER,
        manifest=write(folder, entries),
        dataset=replace(dataset, table=table),
    )


def _place(dataset: Dataset, row: int) -> str:
    split = SPLIT_ORDER[int(dataset.splits[row])].value
    return (
        f"{split}/{dataset.class_names[int(dataset.labels[row])]}"
        if dataset.task is Task.SINGLE_LABEL
        else split
    )


def _entry(dataset: Dataset, row: int) -> dict[str, object]:
    labels = [dataset.class_names[code] for code in np.flatnonzero(dataset.label_matrix[row])]
    named: dict[str, object] = (
        {"label": labels[0]} if dataset.task is Task.SINGLE_LABEL else {"labels": labels}
    )
    factors = {name: dataset.metadata(name)[row].as_py() for name in dataset.metadata_names}
    return {**named, "split": SPLIT_ORDER[int(dataset.splits[row])].value, **factors}


def _write_csv(folder: Path, entries: list[dict[str, object]]) -> Path:
    path = folder / "manifest.csv"
    columns = list(entries[0]) if entries else ["path", "label", "split"]
    rows = ([entry[column] for column in columns] for entry in entries)
    path.write_text(csv_text(columns, rows, is_data=True), encoding="utf-8")
    return path


def _write_jsonl(folder: Path, entries: list[dict[str, object]]) -> Path:
    path = folder / "manifest.jsonl"
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8")
    return path


DEFAULT_CLASSES = ("disc", "square", "triangle", "star")
DEFAULT_SHARES: Mapping[Split, float] = MappingProxyType(
    {Split.TRAIN: 0.4, Split.VALIDATION: 0.25, Split.TEST: 0.25, Split.POOL: 0.1}
)
MIN_CLASSES = 2
MAX_FIT = 8_000
CHUNK = 65_536
OWN_ID = "planted-own-1"


@dataclass(frozen=True, kw_only=True, eq=False)
class PlantedWorld:
    """A world whose truth is known.

    Args:
        problem: what is wrong with it.
        dataset: the samples, with factors as metadata columns and the classifier's predictions.
        codes: scenes [n, 7], see `Scene.codes`.
        instances: instance number of every scene [n].
        slices: where the classifier must fail; empty for the null.
        head: the classifier's last layer, trained on the training rows.
        own: what the classifier's features are made of.
        embedding_noise: noise on every dimension of the joint embeddings.
    """

    problem: PlantedProblem
    dataset: Dataset
    codes: ByteArray
    instances: IntArray
    slices: tuple[TrueSlice, ...]
    head: Head
    own: OwnFeatures
    embedding_noise: float

    def __len__(self) -> int:
        return len(self.dataset)

    def scene(self, row: int) -> Scene:
        return scene_from_codes(self.codes[row], instance=int(self.instances[row]))

    def image(self, row: int, *, side: int = SIDE, marked: bool = True) -> Image.Image:
        return render(self.scene(row), side=side, marked=marked)

    def captions(self, rows: IntArray) -> list[str]:
        return [self.scene(int(row)).caption for row in rows]

    def embeddings(self, rows: IntArray | None = None) -> FloatArray:
        """Return the joint embeddings [n, 64] of the given rows (all by default)."""
        wanted = np.arange(len(self)) if rows is None else rows
        return scene_embeddings(
            self.codes[wanted], self.instances[wanted], noise_scale=self.embedding_noise
        )

    def features(self, rows: IntArray | None = None) -> FloatArray:
        """Return the classifier's own features [n, 32] of the given rows (all by default)."""
        wanted = np.arange(len(self)) if rows is None else rows
        return self.own.of(self.codes[wanted], self.instances[wanted])

    def embedding_chunks(self, chunk_rows: int = CHUNK) -> Iterator[FloatArray]:
        """Yield the joint embeddings of all rows in pieces, in order."""
        for start in range(0, len(self), chunk_rows):
            yield self.embeddings(np.arange(start, min(start + chunk_rows, len(self))))

    def write_embeddings(self, folder: Path) -> dict[str, EmbeddingSpace]:
        """Write both kinds of embeddings to files and return them memory-mapped, for worlds that do not fit in memory."""
        folder.mkdir(parents=True, exist_ok=True)
        spaces: dict[str, EmbeddingSpace] = {}
        for name, width in (("clip", CLIP_DIMENSION), ("features", FEATURE_DIMENSION)):
            path = folder / f"{name}.npy"
            target = np.lib.format.open_memmap(
                path, mode="w+", dtype=np.float32, shape=(len(self), width)
            )
            for start in range(0, len(self), CHUNK):
                rows = np.arange(start, min(start + CHUNK, len(self)))
                target[rows] = self.embeddings(rows) if name == "clip" else self.features(rows)
            target.flush()
            spaces[name] = _space(name, np.load(path, mmap_mode="r"))
        return spaces

    def write_images(
        self,
        folder: Path,
        *,
        rows: IntArray | None = None,
        side: int = SIDE,
        marked: bool = True,
        suffix: str = "png",
    ) -> WrittenWorld:
        """Write the images of the given rows (all by default) in a folder per class, with a manifest."""
        return write_world(
            self.dataset,
            folder,
            rows=np.arange(len(self)) if rows is None else rows,
            draw=lambda row: self.image(row, side=side, marked=marked),
            caption=lambda row: self.scene(row).caption,
            suffix=suffix,
        )

    def spaces(self) -> dict[str, EmbeddingSpace]:
        return {
            "clip": _space("clip", self.embeddings()),
            "features": _space("features", self.features()),
        }

    def samples(
        self, *splits: Split, spaces: Mapping[str, EmbeddingSpace] | None = None
    ) -> SampleSet:
        return SampleSet(
            dataset=self.dataset,
            rows=self.dataset.rows_of(*splits),
            spaces=self.spaces() if spaces is None else spaces,
            name=" and ".join(splits),
            reference_rows=self.dataset.rows_of(Split.TRAIN),
        )

    def true_slice(self, class_name: str, *, side: Side | None = None) -> TrueSlice:
        for found in self.slices:
            if found.class_name == class_name and found.side == side:
                return found
        raise ConfigError(
            f"Nothing was planted in {class_name!r}.",
            fix=f"Choose from {[found.class_name for found in self.slices]}.",
        )


def _space(name: str, embeddings: FloatArray) -> EmbeddingSpace:
    joint = name == "clip"
    return EmbeddingSpace(
        encoder_id=ENCODER_ID if joint else OWN_ID, embeddings=embeddings, has_text=joint
    )


def plant(
    problem: PlantedProblem,
    n_samples: int = 2000,
    *,
    seed: int = 0,
    classes: Sequence[str] = DEFAULT_CLASSES,
    is_multi_label: bool = False,
    split_shares: Mapping[Split, float] = DEFAULT_SHARES,
    embedding_noise: float = 0.05,
) -> PlantedWorld:
    """Return a world with the given problem.

    The same arguments give the same world; a larger world begins with the rows of the smaller one.

    >>> from weakspot.testing.planted import rare
    >>> world = plant(rare(0.02), 400)
    >>> len(world), world.slices[0].phrase
    (400, 'a photo of a green disc')
    """
    _refuse(problem, n_samples, classes)
    plan = FactorPlan(
        problem=problem, classes=tuple(classes), split_shares=split_shares, is_multi_label=is_multi_label, seed=seed
    )  # fmt: skip
    rows = plan.draw(n_samples)
    own = OwnFeatures(problem=problem)
    instances = (child_seed(seed, "planted instances") + np.arange(n_samples)) % N_INSTANCES
    dataset = world_table(rows, classes=tuple(classes), is_multi_label=is_multi_label, seed=seed)
    head = fit_head(
        own, rows.codes, instances, labels=rows.labels, dataset=dataset, largest=MAX_FIT
    )
    world = PlantedWorld(
        problem=problem,
        dataset=dataset,
        codes=rows.codes,
        instances=instances,
        slices=true_slices(problem, rows, classes=tuple(classes), is_multi_label=is_multi_label),
        head=head,
        own=own,
        embedding_noise=embedding_noise,
    )
    return replace(world, dataset=_with_predictions(world, rows.labels))


def _refuse(problem: PlantedProblem, n_samples: int, classes: Sequence[str]) -> None:
    if n_samples < 1 or n_samples > N_INSTANCES:
        raise ConfigError("A planted world has between 1 and 16,777,216 samples.", given=n_samples)
    if len(set(classes)) != len(classes) or set(classes) - set(KINDS) or len(classes) < MIN_CLASSES:
        raise ConfigError(
            "The classes of a planted world are two to eight kinds of object.",
            given=list(classes),
            fix=f"Choose from {list(KINDS)}.",
        )
    if problem.kind in ("spurious", "rare") and not {problem.class_name, problem.rival} <= set(
        classes
    ):
        raise ConfigError(
            "The planted problem is about a class that the world has not.", given=list(classes)
        )


def _with_predictions(world: PlantedWorld, labels: BoolArray) -> Dataset:
    starts = range(0, len(world), CHUNK)
    pieces = [
        world.head.probabilities(world.features(np.arange(start, min(start + CHUNK, len(world)))))
        for start in starts
    ]
    probabilities = np.concatenate(pieces)
    validation = world.dataset.rows_of(Split.VALIDATION)
    if labels.shape[1] and "labels" in world.dataset.table.column_names:
        thresholds = best_f1_thresholds(probabilities[validation], labels[validation])
        return world.dataset.with_predictions(probabilities=probabilities, thresholds=thresholds)
    return world.dataset.with_predictions(
        predictions=probabilities.argmax(axis=1), probabilities=probabilities
    )
