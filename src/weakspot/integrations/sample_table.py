"""All samples of an export as one Arrow table, with the column names that other tools and `weakspot ingest` know."""

from collections.abc import Collection
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.feather as pa_feather
import pyarrow.json as pa_json
import pyarrow.orc as pa_orc
import pyarrow.parquet as pq

from weakspot.core.dataset import Task
from weakspot.core.errors import DataError
from weakspot.integrations.bundle import ExchangeBundle
from weakspot.integrations.image_files import image_paths, replacing
from weakspot.integrations.sample_words import (
    Names,
    confidences,
    label_names,
    predicted_names,
    split_words,
)

_TEXTS = pa_csv.ConvertOptions(strings_can_be_null=True)
_READERS = {
    ".parquet": pq.read_table,
    ".feather": pa_feather.read_table,
    ".arrow": pa_feather.read_table,
    ".orc": pa_orc.read_table,
    ".csv": lambda path: pa_csv.read_csv(path, convert_options=_TEXTS),
    ".tsv": lambda path: pa_csv.read_csv(
        path, parse_options=pa_csv.ParseOptions(delimiter="\t"), convert_options=_TEXTS
    ),
    ".jsonl": pa_json.read_json,
}


def read_table_file(source: Path) -> pa.Table:
    """Return the table in a file; its extension says which kind it is.

    Raises:
        DataError: if the extension is not known, or the file is no such table.
    """
    reader = _READERS.get(source.suffix.lower())
    if reader is None:
        raise DataError(
            "This is no table that can be read.",
            where=str(source),
            fix=f"Save it as {', '.join(_READERS)}.",
        )
    try:
        return reader(source)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"The table cannot be read: {str(error).splitlines()[0]}", where=str(source)
        ) from error


def only_known(table: pa.Table) -> pa.Table:
    """Return the table without columns in which nothing is known."""
    return table.select(
        [name for name in table.column_names if table.column(name).null_count < len(table)]
    )


EMBEDDING = "embedding"
IMAGE = "image"
SAMPLE_ID = "sample_id"


def sample_table(bundle: ExchangeBundle, folder: Path) -> pa.Table:
    """Return one row a sample, in the order of the data set.

    Columns: `sample_id`, `image` (path), `split`, `label` and `prediction` (`labels` and `predictions` with `|` between them for a
    multi-label task), `confidence`, `failed` (null where that is not known), one boolean a slice, and the user's own columns.
    What nobody knows anything of is left out.
    """
    columns = {SAMPLE_ID: pa.array(bundle.samples.dataset.sample_ids(), pa.string())}
    if bundle.samples.dataset.has_images:
        columns[IMAGE] = pa.array(image_paths(bundle, folder), pa.string())
    columns.update(prediction_columns(bundle))
    columns.update(slice_columns(bundle))
    columns.update(free_columns(bundle, (*columns, EMBEDDING)))
    return pa.table(columns)


def prediction_columns(bundle: ExchangeBundle) -> dict[str, pa.Array]:
    """Return split, label, prediction, confidence and whether the classifier failed."""
    dataset = bundle.samples.dataset
    label, prediction = (
        ("label", "prediction") if dataset.task is Task.SINGLE_LABEL else ("labels", "predictions")
    )
    columns = {
        "split": pa.array(split_words(dataset), pa.string()),
        label: _join(label_names(dataset)),
        prediction: _join(predicted_names(dataset)),
        "confidence": pa.array(confidences(dataset), pa.float32()),
        "failed": pa.array(bundle.has_failed, pa.bool_(), mask=~bundle.is_judged),
    }
    return {name: column for name, column in columns.items() if column.null_count < len(column)}


def slice_columns(bundle: ExchangeBundle) -> dict[str, pa.Array]:
    columns: dict[str, pa.Array] = {}
    for marked in bundle.slices:
        is_member = np.zeros(len(bundle.samples.dataset), dtype=np.bool_)
        is_member[marked.rows] = True
        columns[marked.tag] = pa.array(is_member)
    return columns


def free_columns(bundle: ExchangeBundle, taken: Collection[str]) -> dict[str, pa.Array]:
    """Return the user's own columns; one whose name is taken gets `meta.` in front."""
    dataset = bundle.samples.dataset
    return {
        f"meta.{name}" if name in taken else name: dataset.metadata(name).combine_chunks()
        for name in dataset.metadata_names
    }


def embedding_column(bundle: ExchangeBundle) -> pa.Array | None:
    """Return the embeddings as lists of one length, null for samples that have none; None without embeddings."""
    embeddings = bundle.embeddings()
    if embeddings is None:
        return None
    plain = np.ascontiguousarray(embeddings, dtype=np.float32)
    missing = ~np.isfinite(plain).all(axis=1)
    return pa.FixedSizeListArray.from_arrays(
        pa.array(plain.reshape(-1)), plain.shape[1], mask=pa.array(missing)
    )


def write_parquet(path: Path, table: pa.Table) -> Path:
    """Write a table and return its path; an interrupted call leaves the old file or none."""
    with replacing(path) as temporary:
        pq.write_table(table, temporary)
    return path


def _join(names: list[Names]) -> pa.Array:
    return pa.array([None if one is None else "|".join(one) for one in names], pa.string())
