"""A project folder of what was given: a table, image files, embeddings and settings, as `weakspot init` would make it."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from weakspot.core.arrays import AnyArray, IntArray
from weakspot.core.dataset import Split
from weakspot.core.errors import DataError, tell_where
from weakspot.core.failures import ClassProblem, FailureCriterion, class_problems
from weakspot.core.run import StageProgress, no_stage_progress
from weakspot.core.samples import SampleSet
from weakspot.data.arrays import encode_png
from weakspot.data.images import jpeg_at
from weakspot.data.locations import is_local, local_path
from weakspot.project.given import GivenSamples
from weakspot.project.project import Project
from weakspot.run.settings import Settings

TABLE, EMBEDDINGS, IMAGES = "samples.parquet", "embeddings.npz", "images"
IMAGENET_MEAN = np.array([0.485, 0.456, 0.406], dtype=np.float32)
IMAGENET_STD = np.array([0.229, 0.224, 0.225], dtype=np.float32)
_COLOUR = 3
_SLACK = 0.02


def make_project(
    folder: Path,
    samples: GivenSamples,
    train: GivenSamples | None,
    settings: Settings,
    *,
    progress: StageProgress = no_stage_progress,
) -> Project:
    """Write what was given into a folder and open it as a project.

    Args:
        folder: made if need be.
        samples: those that failures are looked for in.
        train: those that the classifier learnt from.
        settings: to start from; data and embedder are filled in.
        progress: told how far every stage is.

    Raises:
        ConfigError: if the folder holds a project already.
        DataError: if an image cannot be taken.
    """
    chosen = _with_data(settings, samples)
    Project.create(folder, settings=chosen)
    parts = [_table(samples, folder, first=0, split=Split.VALIDATION)]
    if train is not None:
        parts.append(_table(train, folder, first=len(samples), split=Split.TRAIN))
    pq.write_table(_joined(parts), folder / TABLE)
    if samples.embeddings is not None:
        _write_embeddings(folder / EMBEDDINGS, samples, train)
    return Project.open(folder, progress=progress)


def _joined(parts: Sequence[pa.Table]) -> pa.Table:
    try:
        return pa.concat_tables(parts, promote_options="permissive")
    except pa.ArrowException as error:
        raise DataError(
            f"A column of 'train' is of another kind than that of the samples: {str(error).splitlines()[0]}",
            fix="Give columns of one kind in both.",
        ) from error


def key_of(place: int) -> str:
    """Return the name of the sample at a place of what was given."""
    return f"row {place}"


def place_of(key: str) -> int:
    """Return the place of a sample among all that were given; training samples follow the others."""
    return int(key.removeprefix("row "))


def _with_data(settings: Settings, samples: GivenSamples) -> Settings:
    many = samples.is_multi_label
    roles = {"key": "key", **({"labels": "labels"} if many else {"label": "label"})}
    if samples.predictions is not None:
        roles |= {"predictions": "predictions"} if many else {"prediction": "prediction"}
    if samples.images is not None:
        roles["path"] = "path"
    changes: dict[str, Any] = {
        "source": TABLE,
        "kind": "predictions" if samples.images is None else "manifest",
        "columns": roles,
        "class_names": samples.class_names,
        **({"group": "group"} if samples.groups is not None else {}),
    }
    updated: dict[str, Any] = {"data": settings.data.model_copy(update=changes)}
    if samples.embeddings is not None:
        updated["embedder"] = settings.embedder.model_copy(
            update={"name": "given-embeddings", "options": {"path": EMBEDDINGS}}
        )
    return settings.model_copy(update=updated)


def _table(samples: GivenSamples, folder: Path, *, first: int, split: Split) -> pa.Table:
    suffix = "s" if samples.is_multi_label else ""
    columns: dict[str, Any] = {
        "key": [key_of(first + place) for place in range(len(samples))],
        f"label{suffix}": samples.labels,
    }
    if samples.images is not None:
        columns["path"] = [
            _written(image, folder / IMAGES / f"{first + place:07d}.png", place)
            for place, image in enumerate(samples.images)
        ]
    if samples.predictions is not None:
        columns[f"prediction{suffix}"] = samples.predictions
    if samples.probabilities is not None:
        columns["probabilities"] = np.asarray(samples.probabilities).tolist()
    columns["split"] = [named or split.value for named in (samples.splits or [None] * len(samples))]
    if samples.groups is not None:
        columns["group"] = [None if one is None else str(one) for one in samples.groups]
    free = {} if samples.metadata is None else {
        name: samples.metadata.column(name) for name in samples.metadata.column_names
    }  # fmt: skip
    return pa.table(columns | free)


def _write_embeddings(path: Path, samples: GivenSamples, train: GivenSamples | None) -> None:
    parts = [samples.embeddings]
    n_rows = len(samples)
    if train is not None:
        if train.embeddings is None:
            raise DataError(
                "Samples have embeddings, but those of 'train' have none.",
                fix="Give embeddings of both, made alike.",
            )
        parts.append(train.embeddings)
        n_rows += len(train)
    widths = {part.shape[1] for part in parts if part is not None}
    if len(widths) > 1:
        raise DataError(
            "Embeddings of samples and of 'train' differ in length.",
            given=sorted(widths),
            fix="Give embeddings of one encoder.",
        )
    np.savez(
        path,
        embeddings=np.concatenate([part for part in parts if part is not None]),
        ids=np.array([key_of(place) for place in range(n_rows)]),
    )


def _written(image: Any, target: Path, place: int) -> str | None:
    try:
        return _location(image, target)
    except DataError as error:
        tell_where(error, f"image {place}")
        raise


def _location(image: Any, target: Path) -> str | None:
    """Return where an image is, None where there is none; pixels are written to the target first."""
    if image is None:
        return None
    if isinstance(image, (str, os.PathLike)):
        text = os.fspath(image)
        return str(local_path(text).absolute()) if is_local(text) else text
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(_encoded(image))
    return target.relative_to(target.parents[1]).as_posix()


def _encoded(image: Any) -> bytes:
    if isinstance(image, dict) and image.get("bytes") is not None:
        image = image["bytes"]
    if isinstance(image, (bytes, bytearray, memoryview)):
        return bytes(image)
    return encode_png(image if isinstance(image, Image.Image) else pixels_of(image))


def pixels_of(image: Any) -> AnyArray:
    """Return an image of numbers as uint8 [height, width, 3] or [height, width].

    Channels may come first or last. Numbers from 0 to 1 are scaled; numbers that were standardised as ImageNet's are put back, and
    all other numbers are stretched from the smallest to the largest.

    Raises:
        DataError: if it is no image.

    >>> pixels_of(np.ones((3, 2, 2), dtype=np.float32))[0, 0].tolist()
    [255, 255, 255]
    """
    raw = image.detach().cpu().numpy() if hasattr(image, "detach") else image
    array = np.asarray(raw)
    if array.ndim == _COLOUR and array.shape[-1] not in (1, 3, 4) and array.shape[0] in (1, 3, 4):
        array = np.moveaxis(array, 0, -1)
    if array.ndim == _COLOUR and array.shape[-1] == 1:
        array = array[..., 0]
    is_image = array.ndim == 2 or (array.ndim == _COLOUR and array.shape[-1] in (3, 4))  # noqa: PLR2004
    if not is_image or 0 in array.shape or not np.issubdtype(array.dtype, np.number):
        raise DataError(
            "This is no image.",
            given=f"{array.dtype} {array.shape}",
            fix="Give paths, Pillow images, or arrays [height, width, 3].",
        )
    if array.dtype == np.uint8:
        return array
    numbers = np.nan_to_num(array.astype(np.float32))
    return np.round(255 * _unit(numbers)).astype(np.uint8)


def _unit(numbers: AnyArray) -> AnyArray:
    """Return numbers between 0 and 1."""
    low, high = float(numbers.min()), float(numbers.max())
    if low >= 0 and high <= 1:
        return numbers
    if low >= 0 and high <= 255 and float(np.abs(numbers - np.round(numbers)).max()) == 0:  # noqa: PLR2004
        scaled: AnyArray = numbers / 255
        return scaled
    if numbers.ndim == _COLOUR and numbers.shape[-1] == _COLOUR:
        back = numbers * IMAGENET_STD + IMAGENET_MEAN
        if back.min() >= -_SLACK and back.max() <= 1 + _SLACK:
            clipped: AnyArray = np.clip(back, 0, 1)
            return clipped
    stretched: AnyArray = (numbers - low) / max(high - low, 1e-9)
    return stretched


@dataclass(frozen=True, kw_only=True, eq=False)
class EvaluatedSamples:
    """The samples of a run that have labels and predictions.

    Args:
        samples: only these.
        criterion: what counts as a failure.
    """

    samples: SampleSet
    criterion: FailureCriterion

    @cached_property
    def problems(self) -> tuple[ClassProblem, ...]:
        return tuple(class_problems(self.samples.dataset, self.samples.rows, self.criterion))

    def places(self, rows: IntArray) -> IntArray:
        """Return the places of rows of the data set in what was given."""
        keys = self.samples.dataset.table.column("key").take(rows).to_pylist()
        return np.array([place_of(key) for key in keys], dtype=np.int64)

    def thumbnails(self, sample_ids: Iterable[str], side: int) -> dict[str, bytes]:
        """Return JPEG files of samples by id; those without an image that can be read are left out."""
        wanted = set(sample_ids)
        dataset, rows = self.samples.dataset, self.samples.rows
        places = zip(dataset.sample_ids(rows), dataset.locations(rows), strict=True)
        made = {name: jpeg_at(location, side) for name, location in places if name in wanted}
        return {name: data for name, data in made.items() if data is not None}
