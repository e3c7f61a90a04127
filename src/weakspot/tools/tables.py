"""Tables of samples: those that other tools know, and those that `weakspot ingest` and `weakspot repair --labels` read."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.feather as pa_feather
import pyarrow.json as pa_json
import pyarrow.orc as pa_orc
import pyarrow.parquet as pq

from weakspot.core.dataset import Task
from weakspot.core.errors import ConfigError, DataError
from weakspot.store.csv_tables import csv_text
from weakspot.tools.bundle import (
    ExchangeBundle,
    Names,
    Written,
    confidences,
    label_names,
    predicted_names,
    split_words,
)
from weakspot.tools.files import image_paths, replacing

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


@dataclass
class AgreedLabels:
    """Collects what people said of samples; a sample of which they said different things has no label."""

    _said: dict[tuple[str, str], set[tuple[str, ...]]] = field(default_factory=dict)

    def add(self, labels: tuple[str, ...], *, sample_id: str, path: str) -> None:
        """Note what one person said; nothing, if they did not say."""
        answers = self._said.setdefault((sample_id, path), set())
        if labels:
            answers.add(tuple(sorted(labels)))

    def written(self, source: Path, target: Path) -> Written:
        """Write the table of all labels that nobody contradicted.

        Raises:
            DataError: if there are none.
        """
        agreed = {place: next(iter(said)) for place, said in self._said.items() if len(said) == 1}
        n_disputed = sum(len(said) > 1 for said in self._said.values())
        if not agreed:
            disputed = f" People disagree on {n_disputed} samples." if n_disputed else ""
            raise DataError(
                f"There are no labels yet.{disputed}",
                where=str(source),
                fix="Label some samples and export again.",
            )
        is_many = any(len(labels) > 1 for labels in agreed.values())
        columns: dict[str, list[object]] = {
            "sample_id": [name or None for name, _ in agreed],
            "path": [path or None for _, path in agreed],
            "labels" if is_many else "label": [
                list(given) if is_many else given[0] for given in agreed.values()
            ],
        }
        written = labels_written(
            target, columns, left_out=len(self._said) - len(agreed) - n_disputed
        )
        if not n_disputed:
            return written
        sentence = (
            f"People disagree on {n_disputed} samples, which were left out. {written.sentence}"
        )
        return Written(files=written.files, sentence=sentence)


EXTENSIONS = (".csv", ".tsv", ".jsonl", ".parquet")
_MAX_NUMBER = 2**63 - 1
Columns = Mapping[str, Sequence[object]]


def write_manifest(target: Path, columns: Columns) -> Path:
    """Write columns of equal length as a table and return its path; the extension says which kind of table.

    Lists in text tables are written with `|` between their items. Columns in which nothing is known are left out.

    Raises:
        ConfigError: if the extension is none of `EXTENSIONS`, or the file cannot be written.
    """
    refuse_extension(target)
    known = {
        name: values
        for name, values in columns.items()
        if any(value is not None for value in values)
    }
    with replacing(target) as temporary:
        if target.suffix.lower() == ".parquet":
            pq.write_table(
                pa.table({name: pa.array(_plain(values)) for name, values in known.items()}),
                temporary,
            )
        elif target.suffix.lower() == ".jsonl":
            _write_lines(temporary, known)
        else:
            _write_text(temporary, known, "," if target.suffix.lower() == ".csv" else "\t")
    return target


def refuse_extension(target: Path) -> None:
    """Raise unless a path ends as a table does."""
    if target.suffix.lower() not in EXTENSIONS:
        raise ConfigError(
            "The table to write has an extension that weakspot does not read.",
            where="--out",
            given=str(target),
            fix=f"Let it end in {', '.join(EXTENSIONS)}.",
        )


def labels_written(target: Path, columns: Columns, *, left_out: int = 0) -> Written:
    """Write a table of labels and return it with the lines to type.

    Args:
        target: where to.
        columns: with `label` or `labels`, and `sample_id` or `path`.
        left_out: how many entries had no label yet.
    """
    path = write_manifest(target, columns)
    n_labels = len(next(iter(columns.values())))
    waiting = f" {left_out} have no label yet and were left out." if left_out else ""
    as_labels = (
        f"weakspot repair --labels {target}"
        if target.suffix.lower() in (".csv", ".tsv")
        else "a .csv table for repair --labels"
    )
    as_source = f"[data] source = {str(target)!r}"
    sentence = f"{n_labels} labels.{waiting} For pool samples: {as_labels}. As a source of samples: {as_source}."
    return Written(files=(path,), sentence=sentence)


def _plain(values: Sequence[object]) -> list[object]:
    kinds = {type(value) for value in values if value is not None}
    is_large = any(isinstance(value, int) and abs(value) > _MAX_NUMBER for value in values)
    if not is_large and (len(kinds) <= 1 or kinds <= {int, float}):
        return [
            float(value) if float in kinds and isinstance(value, int) else value for value in values
        ]
    return [None if value is None else _cell(value) for value in values]


def _write_lines(path: Path, columns: Columns) -> None:
    with path.open("w", encoding="utf-8") as stream:
        for values in zip(*columns.values(), strict=True):
            line = {
                name: value
                for name, value in zip(columns, values, strict=True)
                if value is not None
            }
            stream.write(json.dumps(line, ensure_ascii=False) + "\n")


def _write_text(path: Path, columns: Columns, delimiter: str) -> None:
    rows = zip(*(map(_cell, values) for values in columns.values()), strict=True)
    text = csv_text(list(columns), rows, delimiter=delimiter, is_data=True)
    path.write_text(text, encoding="utf-8")


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return "|".join(str(item) for item in value)
    return str(value)
