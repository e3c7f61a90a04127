"""Hugging Face: a data set folder with images, classes, splits, predictions and slices, its card, and the model card."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from weakspot.core.arrays import IntArray
from weakspot.core.dataset import SPLIT_ORDER, Split, Task
from weakspot.core.errors import DataError
from weakspot.core.failures import predicted_classes
from weakspot.data.locations import UnreadableLocationError, read_location
from weakspot.tools.bundle import (
    ExchangeBundle,
    Written,
    label_names,
    predicted_names,
    slice_sentence,
)
from weakspot.tools.files import replacing, write_bytes
from weakspot.tools.tables import IMAGE, SAMPLE_ID, free_columns, prediction_columns, slice_columns


def front_matter(content: Mapping[str, object]) -> str:
    """Return the head of a card.

    >>> print(front_matter({"tags": ["weakspot"], "configs": [{"name": "a: b", "files": [{"split": "test"}]}]}))
    ---
    "tags":
      - "weakspot"
    "configs":
      - "name": "a: b"
        "files":
          - "split": "test"
    ---
    <BLANKLINE>
    """
    return "\n".join(["---", *_lines(content), "---", ""])


def _lines(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from _entry(f"{json.dumps(str(name))}:", part)
    elif isinstance(value, list | tuple):
        for part in value:
            first, *more = list(_lines(part))
            yield f"  - {first}"
            yield from (f"    {line}" for line in more)
    else:
        yield json.dumps(value, ensure_ascii=False)


def _entry(head: str, value: object) -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        yield head
        yield from (f"  {line}" for line in _lines(value))
    elif isinstance(value, list | tuple) and value:
        yield head
        yield from _lines(value)
    else:
        yield f"{head} {json.dumps(value, ensure_ascii=False)}"


SAMPLES_A_FILE = 10_000
SAMPLES_A_GROUP = 100
CARD, MODEL_CARD = "README.md", "model-card/README.md"
_IMAGES = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
_SIZES = (
    (1_000, "n<1K"),
    (10_000, "1K<n<10K"),
    (100_000, "10K<n<100K"),
    (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"),
)


def write_dataset(bundle: ExchangeBundle, folder: Path) -> Written:
    """Write a folder that `datasets.load_dataset` reads: Parquet files by split with the images inside, and both cards."""
    table = _table(bundle)
    files = [path for split in SPLIT_ORDER for path in _write_split(bundle, table, split, folder)]
    _remove_others(folder / "data", files)
    cards = [write_bytes(folder / CARD, _dataset_card(bundle).encode())]
    if bundle.model_card:
        cards.append(write_bytes(folder / MODEL_CARD, bundle.model_card.encode()))
    sentence = f"Open it where datasets is installed: datasets.load_dataset({str(folder)!r})."
    return Written(files=(*cards, *files), sentence=sentence)


def _table(bundle: ExchangeBundle) -> pa.Table:
    """Return all columns but the images; classes as codes."""
    columns = {SAMPLE_ID: pa.array(bundle.samples.dataset.sample_ids(), pa.string())}
    predictions = prediction_columns(bundle)
    predictions.pop("split")
    columns.update(
        {
            name: _encode(bundle, name) if name in _CLASSES else column
            for name, column in predictions.items()
        }
    )
    columns.update(slice_columns(bundle))
    columns.update(free_columns(bundle, (*columns, IMAGE)))
    return pa.table({name: _plain(column) for name, column in columns.items()})


_CLASSES = {"label", "labels", "prediction", "predictions"}


def _encode(bundle: ExchangeBundle, name: str) -> pa.Array:
    dataset = bundle.samples.dataset
    if dataset.task is Task.MULTI_LABEL:
        names = label_names(dataset) if name == "labels" else predicted_names(dataset)
        code = {class_name: place for place, class_name in enumerate(dataset.class_names)}
        return pa.array(
            [None if one is None else [code[item] for item in one] for one in names],
            pa.list_(pa.int64()),
        )
    if name == "label":
        return pa.array(dataset.labels, pa.int64(), mask=dataset.labels < 0)
    known = np.array([one is not None for one in predicted_names(dataset)])
    return pa.array(predicted_classes(dataset, np.arange(len(dataset))), pa.int64(), mask=~known)


def _plain(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _write_split(bundle: ExchangeBundle, table: pa.Table, split: Split, folder: Path) -> list[Path]:
    rows = bundle.samples.dataset.rows_of(split)
    parts = [rows[start : start + SAMPLES_A_FILE] for start in range(0, len(rows), SAMPLES_A_FILE)]
    names = [
        f"{split.value}-{place:05d}-of-{len(parts):05d}.parquet" for place in range(len(parts))
    ]
    return [
        _write_part(bundle, table, part, folder / "data" / name)
        for part, name in zip(parts, names, strict=True)
    ]


def _write_part(bundle: ExchangeBundle, table: pa.Table, rows: IntArray, path: Path) -> Path:
    schema = _schema(bundle, table)
    with replacing(path) as temporary, pq.ParquetWriter(temporary, schema) as writer:
        for start in range(0, len(rows), SAMPLES_A_GROUP):
            group = rows[start : start + SAMPLES_A_GROUP]
            columns = table.take(pa.array(group)).columns
            images = (
                [pa.array(_images(bundle, group), _IMAGES)]
                if bundle.samples.dataset.has_images
                else []
            )
            writer.write_table(pa.table([*images, *columns], schema=schema))
    return path


def _images(bundle: ExchangeBundle, rows: IntArray) -> Iterator[dict[str, object] | None]:
    dataset = bundle.samples.dataset
    for location, sample_id in zip(dataset.locations(rows), dataset.sample_ids(rows), strict=True):
        if location is None:
            yield None
            continue
        try:
            yield {"bytes": read_location(location), "path": sample_id}
        except UnreadableLocationError as error:
            raise DataError(
                f"An image cannot be read: {error.detail}", where=error.where, fix=error.fix
            ) from error


def _schema(bundle: ExchangeBundle, table: pa.Table) -> pa.Schema:
    """Return the columns with the note from which the library knows images and classes."""
    fields = list(table.schema)
    features: dict[str, object] = {}
    if bundle.samples.dataset.has_images:
        fields.insert(0, pa.field(IMAGE, _IMAGES))
        features[IMAGE] = {"_type": "Image"}
    classes = {"names": list(bundle.samples.dataset.class_names), "_type": "ClassLabel"}
    for field in table.schema:
        if field.name in _CLASSES:
            features[field.name] = (
                {"feature": classes, "_type": "Sequence"}
                if pa.types.is_list(field.type)
                else classes
            )
        else:
            features[field.name] = {"dtype": _dtype(field.type), "_type": "Value"}
    return pa.schema(fields, metadata={"huggingface": json.dumps({"info": {"features": features}})})


def _dtype(kind: pa.DataType) -> str:
    names = {pa.float32(): "float32", pa.float64(): "float64"}
    return names.get(kind, str(kind))


def _remove_others(folder: Path, kept: list[Path]) -> None:
    for path in folder.glob("*-of-*.parquet"):
        if path not in kept:
            path.unlink()


def _dataset_card(bundle: ExchangeBundle) -> str:
    dataset = bundle.samples.dataset
    splits = [split.value for split in SPLIT_ORDER if len(dataset.rows_of(split))]
    head = {
        "pretty_name": bundle.name,
        "task_categories": ["image-classification"],
        "size_categories": [
            next((name for limit, name in _SIZES if len(dataset) < limit), "n>10M")
        ],
        "tags": ["weakspot"],
        "configs": [
            {
                "config_name": "default",
                "data_files": [{"split": split, "path": f"data/{split}-*"} for split in splits],
            },
        ],
    }
    listed = "\n".join(f"- `{marked.tag}`: {slice_sentence(marked)}" for marked in bundle.slices)
    slices = f"Each is a boolean column.\n\n{listed}" if listed else "None was confirmed."
    return (
        f"{front_matter(head)}\n# {bundle.name}\n\n{len(dataset)} samples of {dataset.n_classes} classes, exported by weakspot. "
        "`prediction` and `confidence` are what the classifier said; `failed` says whether that counts as wrong.\n\n"
        f"## Confirmed failure slices\n\n{slices}\n\nThe licence of the images is that of their source; add it to the head.\n"
    )
