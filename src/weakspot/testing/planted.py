"""Worlds with known truth: scenes with a planted problem, a classifier trained on them, and the slices it must fail on."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
from PIL import Image

from weakspot.core.arrays import BoolArray, ByteArray, FloatArray, IntArray
from weakspot.core.dataset import Dataset, Split
from weakspot.core.errors import ConfigError
from weakspot.core.failures import Side, best_f1_thresholds
from weakspot.core.heads import Head
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.core.seeding import child_seed
from weakspot.testing.marker import N_INSTANCES
from weakspot.testing.planted_features import (
    CLIP_DIMENSION,
    ENCODER_ID,
    FEATURE_DIMENSION,
    OwnFeatures,
    fit_head,
    scene_embeddings,
)
from weakspot.testing.planted_files import WrittenWorld, write_world
from weakspot.testing.planted_problems import FactorPlan, PlantedProblem
from weakspot.testing.planted_truth import TrueSlice, true_slices, world_table
from weakspot.testing.renderer import SIDE, render
from weakspot.testing.scenes import KINDS, Scene, scene_from_codes

DEFAULT_CLASSES = ("disc", "square", "triangle", "star")
DEFAULT_SHARES: Mapping[Split, float] = MappingProxyType(
    {Split.TRAIN: 0.4, Split.VALIDATION: 0.25, Split.TEST: 0.25, Split.POOL: 0.1}
)
FEWEST_CLASSES = 2
LARGEST_FIT = 8_000
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


def plant(  # noqa: PLR0913 - one argument a property of the world
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
        own, rows.codes, instances, labels=rows.labels, dataset=dataset, largest=LARGEST_FIT
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
    if (
        len(set(classes)) != len(classes)
        or set(classes) - set(KINDS)
        or len(classes) < FEWEST_CLASSES
    ):
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
