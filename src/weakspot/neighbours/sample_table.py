"""All samples of an export as one Arrow table, with the column names that other tools and `weakspot ingest` know."""

from collections.abc import Collection
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from weakspot.core.dataset import Task
from weakspot.neighbours.bundle import ExchangeBundle
from weakspot.neighbours.picture_files import picture_paths
from weakspot.neighbours.sample_words import Names, confidences, label_names, predicted_names, split_words
from weakspot.neighbours.written_files import replacing

EMBEDDING = "embedding"
PICTURE = "image"
SAMPLE_ID = "sample_id"


def sample_table(bundle: ExchangeBundle, folder: Path) -> pa.Table:
    """Return one row a sample, in the order of the data set.

    Columns: `sample_id`, `image` (path), `split`, `label` and `prediction` (`labels` and `predictions` with `|` between them for a
    multi-label task), `confidence`, `failed` (null where that is not known), one boolean a slice, and the user's own columns.
    What nobody knows anything of is left out.
    """
    columns = {SAMPLE_ID: pa.array(bundle.samples.dataset.sample_ids(), pa.string())}
    if bundle.samples.dataset.has_pictures:
        columns[PICTURE] = pa.array(picture_paths(bundle, folder), pa.string())
    columns.update(outcome_columns(bundle))
    columns.update(slice_columns(bundle))
    columns.update(free_columns(bundle, (*columns, EMBEDDING)))
    return pa.table(columns)


def outcome_columns(bundle: ExchangeBundle) -> dict[str, pa.Array]:
    """Return split, label, prediction, confidence and whether the classifier failed."""
    dataset = bundle.samples.dataset
    label, prediction = ("label", "prediction") if dataset.task is Task.SINGLE_LABEL else ("labels", "predictions")
    columns = {
        "split": pa.array(split_words(dataset), pa.string()),
        label: _joined(label_names(dataset)),
        prediction: _joined(predicted_names(dataset)),
        "confidence": pa.array(confidences(dataset), pa.float32()),
        "failed": pa.array(bundle.has_failed, pa.bool_(), mask=~bundle.is_judged),
    }
    return {name: column for name, column in columns.items() if column.null_count < len(column)}


def slice_columns(bundle: ExchangeBundle) -> dict[str, pa.Array]:
    """Return one boolean column a slice, under its tag."""
    columns: dict[str, pa.Array] = {}
    for marked in bundle.slices:
        is_member = np.zeros(len(bundle.samples.dataset), dtype=np.bool_)
        is_member[marked.rows] = True
        columns[marked.tag] = pa.array(is_member)
    return columns


def free_columns(bundle: ExchangeBundle, taken: Collection[str]) -> dict[str, pa.Array]:
    """Return the user's own columns; one whose name is taken gets `meta.` in front."""
    dataset = bundle.samples.dataset
    return {f"meta.{name}" if name in taken else name: dataset.metadata(name).combine_chunks() for name in dataset.metadata_names}


def embedding_column(bundle: ExchangeBundle) -> pa.Array | None:
    """Return the vectors as lists of one length, null for samples that have none; None without vectors."""
    vectors = bundle.vectors()
    if vectors is None:
        return None
    plain = np.ascontiguousarray(vectors, dtype=np.float32)
    missing = ~np.isfinite(plain).all(axis=1)
    return pa.FixedSizeListArray.from_arrays(pa.array(plain.reshape(-1)), plain.shape[1], mask=pa.array(missing))


def write_parquet(path: Path, table: pa.Table) -> Path:
    """Write a table and return its path; an interrupted call leaves the old file or none."""
    with replacing(path) as temporary:
        pq.write_table(table, temporary)
    return path


def _joined(names: list[Names]) -> pa.Array:
    return pa.array([None if one is None else "|".join(one) for one in names], pa.string())
