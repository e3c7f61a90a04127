"""Writes the images of a planted world: a folder per class, and a manifest beside it."""

import csv
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from PIL import Image

from weakspot.core.arrays import IntArray
from weakspot.core.dataset import SPLIT_ORDER, Dataset, Task
from weakspot.core.errors import ConfigError

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
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(
            file, fieldnames=list(entries[0]) if entries else ["path", "label", "split"]
        )
        writer.writeheader()
        writer.writerows(entries)
    return path


def _write_jsonl(folder: Path, entries: list[dict[str, object]]) -> Path:
    path = folder / "manifest.jsonl"
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8")
    return path
