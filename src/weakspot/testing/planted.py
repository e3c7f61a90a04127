"""Worlds with known truth: scenes with a planted problem, their embeddings and image files, and a classifier trained on them."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from PIL import Image

from weakspot.core.arrays import (
    AnyArray,
    BoolArray,
    ByteArray,
    FloatArray,
    IntArray,
    child_seed,
    generator,
    unit_rows,
)
from weakspot.core.dataset import SPLIT_ORDER, Dataset, Split, Task
from weakspot.core.errors import ConfigError, NotEnoughDataError
from weakspot.core.failures import Side, best_f1_thresholds
from weakspot.core.heads import Head
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.store.csv_tables import csv_text
from weakspot.testing.planted_problems import (
    FactorPlan,
    PlantedProblem,
    TrueSlice,
    true_slices,
    world_table,
)
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

    >>> from weakspot.testing.planted_problems import rare
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
