"""Parquet files and Arrow files (as written by Hugging Face `datasets`) as tables."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from weakspot.core.errors import DataError
from weakspot.ingest.problems import Problems
from weakspot.ingest.tables import ArrowColumns, TableBatch, TableHeader, note_repeated
from weakspot.media.locations import is_local, local_path, open_location, shown_location

BATCH_ROWS = 4096
IMAGE_BATCH_ROWS = 64


@dataclass(frozen=True, kw_only=True)
class ParquetTable:
    """A Parquet file."""

    location: str

    def header(self, problems: Problems) -> TableHeader:
        with self._open() as file:
            return header_of_schema(file.schema_arrow, problems)

    def count(self) -> int:
        with self._open() as file:
            return int(file.metadata.num_rows)

    def batches(
        self,
        problems: Problems,  # noqa: ARG002 - the schema guarantees that every row can be read
        *,
        start: int = 0,
        without: frozenset[str] = frozenset(),
    ) -> Iterator[TableBatch]:
        """Yield rows; row groups before `start` are not touched."""
        with self._open() as file:
            names = [name for name in file.schema_arrow.names if name not in without]
            groups, row = _groups_from(file.metadata, start)
            size = _batch_rows(file.schema_arrow, without)
            for found in file.iter_batches(
                batch_size=size, row_groups=groups, columns=names, use_threads=False
            ):
                yield from _batch_from(found, row, start)
                row += found.num_rows

    @contextmanager
    def _open(self) -> Iterator[Any]:
        import pyarrow.parquet as pq

        with (
            open_location(self.location) as raw,
            _explain(self.location),
            pq.ParquetFile(raw) as file,
        ):
            yield file


@dataclass(frozen=True, kw_only=True)
class ArrowTable:
    """An Arrow file in the stream or the file format."""

    location: str

    def header(self, problems: Problems) -> TableHeader:
        with self._open() as (schema, _):
            return header_of_schema(schema, problems)

    def count(self) -> int:
        with self._open() as (_, batches):
            return sum(batch.num_rows for batch in batches)

    def batches(
        self,
        problems: Problems,  # noqa: ARG002 - the schema guarantees that every row can be read
        *,
        start: int = 0,
        without: frozenset[str] = frozenset(),
    ) -> Iterator[TableBatch]:
        with self._open() as (schema, batches):
            names = [name for name in schema.names if name not in without]
            size = _batch_rows(schema, without)
            row = 0
            size_before = self._size()
            for whole in batches:
                if self._size() < size_before:
                    # Pages of a mapped file that are not there any more would end the process.
                    raise OSError("the file became shorter while it was read")
                narrow = whole.select(names)
                # Offsets of a damaged file may point anywhere, and nothing looks at them before they are followed.
                narrow.validate(full=True)
                for begin in range(0, whole.num_rows, size):
                    yield from _batch_from(narrow.slice(begin, size), row + begin, start)
                row += whole.num_rows

    def _size(self) -> int:
        return local_path(self.location).stat().st_size if is_local(self.location) else 0

    @contextmanager
    def _open(self) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
        raw = (
            pa.memory_map(str(local_path(self.location)))
            if is_local(self.location)
            else open_location(self.location)
        )
        with raw, _explain(self.location):
            if raw.read(6) == b"ARROW1":
                file = pa.ipc.open_file(raw)
                yield (
                    file.schema,
                    (file.get_batch(number) for number in range(file.num_record_batches)),
                )
            else:
                raw.seek(0)
                stream = pa.ipc.open_stream(raw)
                yield stream.schema, iter(stream)


def header_of_schema(schema: pa.Schema, problems: Problems) -> TableHeader:
    """Return the columns of an Arrow schema, with the class names that `datasets` keeps in it."""
    note_repeated(list(schema.names), problems)
    binary = frozenset(field.name for field in schema if _is_binary(field.type))
    images = frozenset(field.name for field in schema if _is_image(field.type))
    return TableHeader(
        names=tuple(dict.fromkeys(schema.names)),
        class_names=_class_names(schema),
        binary=binary,
        images=images,
    )


def class_names_of_features(features: object) -> dict[str, tuple[str, ...]]:
    """Return class names by column from the `features` that `datasets` writes as JSON."""
    found: dict[str, tuple[str, ...]] = {}
    for name, feature in features.items() if isinstance(features, dict) else ():
        inner = (
            feature.get("feature", feature)
            if isinstance(feature, dict)
            else feature[0]
            if isinstance(feature, list)
            else None
        )
        names = (
            inner.get("names")
            if isinstance(inner, dict) and inner.get("_type") == "ClassLabel"
            else None
        )
        if isinstance(names, list):
            found[name] = tuple(str(item) for item in names)
    return found


def _class_names(schema: pa.Schema) -> dict[str, tuple[str, ...]]:
    try:
        stored = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
    except ValueError:
        return {}
    info = stored.get("info") if isinstance(stored, dict) else None
    return class_names_of_features(info.get("features")) if isinstance(info, dict) else {}


def _is_binary(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


def _is_image(kind: pa.DataType) -> bool:
    return bool(pa.types.is_struct(kind)) and {field.name for field in kind} == {"bytes", "path"}


def _batch_rows(schema: pa.Schema, without: frozenset[str]) -> int:
    heavy = any(
        _is_binary(field.type) or _is_image(field.type)
        for field in schema
        if field.name not in without
    )
    return IMAGE_BATCH_ROWS if heavy else BATCH_ROWS


def _groups_from(metadata: Any, start: int) -> tuple[list[int], int]:
    row = 0
    for group in range(metadata.num_row_groups):
        n_rows = metadata.row_group(group).num_rows
        if row + n_rows > start:
            return list(range(group, metadata.num_row_groups)), row
        row += n_rows
    return [], row


def _batch_from(found: pa.RecordBatch, row: int, start: int) -> Iterator[TableBatch]:
    kept = found.slice(max(0, start - row))
    if kept.num_rows:
        columns = ArrowColumns(pa.Table.from_batches([kept]))
        yield TableBatch(first_row=max(row, start), n_rows=kept.num_rows, columns=columns)


@contextmanager
def _explain(location: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, TypeError, LookupError, OverflowError) as error:
        raise DataError(
            f"The table cannot be read: {(str(error).splitlines() or [type(error).__name__])[0]}.",
            where=shown_location(location),
            fix="Check that the file is complete and of the format its name says.",
        ) from error
