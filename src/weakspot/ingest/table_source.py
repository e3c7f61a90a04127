"""Samples from one table or from many table files of the same columns."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import PurePosixPath

import pyarrow as pa

from weakspot.core.dataset import RawSample, Split
from weakspot.core.errors import DataError
from weakspot.ingest.arrow_tables import ArrowTable, ParquetTable
from weakspot.ingest.cells import is_empty, is_whole_number
from weakspot.ingest.columns import ColumnRoles, did_you_mean, resolve_columns
from weakspot.ingest.problems import Problems
from weakspot.ingest.rows import ClassNames, RowLayout, samples_of
from weakspot.ingest.sample_columns import examined_columns
from weakspot.ingest.table_survey import Survey, Surveyor
from weakspot.ingest.tables import TABLE_EXTENSIONS, TableBatch, TableFile, TableHeader
from weakspot.ingest.text_tables import DelimitedTable, JsonLinesTable
from weakspot.media.locations import (
    is_local,
    join_location,
    local_path,
    parent_location,
    shown_location,
)

_WHAT = "The table cannot be used."


def open_table(location: str) -> TableFile:
    extension = PurePosixPath(location.partition("::")[0]).suffix.lower()
    kind = TABLE_EXTENSIONS.get(extension)
    if kind == "csv":
        return DelimitedTable(location=location)
    if kind == "tsv":
        return DelimitedTable(location=location, delimiter="\t")
    if kind == "jsonl":
        return JsonLinesTable(location=location)
    if kind == "parquet":
        return ParquetTable(location=location)
    if kind == "arrow":
        return ArrowTable(location=location)
    hint = did_you_mean(extension, tuple(TABLE_EXTENSIONS))
    raise DataError(
        f"A file with the extension {extension!r} is no table that weakspot reads{hint}.",
        where=shown_location(location),
        fix=f"Give a file with one of {', '.join(TABLE_EXTENSIONS)}.",
    )


@dataclass(frozen=True, kw_only=True)
class TablePart:
    """One file of a source.

    Args:
        table: its reader.
        name: written before row numbers; empty when the source is one file.
        split: split of its rows, when the file's place tells.
    """

    table: TableFile
    name: str = ""
    split: Split | None = None


@dataclass(frozen=True, kw_only=True)
class TableSamples:
    """Samples of tables; the shared inside of manifests, Hugging Face folders and predictions.

    Args:
        where: the source, for messages.
        parts: its files, in order.
        columns: role to column name, as the user says.
        default_split: split of rows that name none.
        class_names: names of the classes, when something beside the table tells them.
        with_images: whether every row must have an image; otherwise every table must have predictions.
    """

    where: str
    parts: tuple[TablePart, ...]
    columns: Mapping[str, str] = field(default_factory=dict)
    default_split: Split | None = None
    class_names: tuple[str, ...] | None = None
    with_images: bool = True

    def read(self, start: int = 0) -> Iterator[RawSample]:
        """Yield samples from `start` on, after a look at the whole source."""
        for part, first in self._parts_from(start):
            problems, layout = Problems(), self._full_layout(part)
            for batch in self._batches(part, layout, problems, first):
                yield from samples_of(batch, layout, problems)
            self._raise(problems)

    @property
    def n_samples(self) -> int:
        return sum(self.survey.n_rows)

    @cached_property
    def header(self) -> TableHeader:
        problems = Problems()
        headers = [part.table.header(problems) for part in self.parts]
        for part, header in zip(self.parts, headers, strict=True):
            if set(header.names) != set(headers[0].names):
                odd = sorted(set(header.names) ^ set(headers[0].names))
                problems.add(f"The file {part.name!r} has other columns than the first one: {odd}.")
        self._raise(problems)
        return headers[0]

    @property
    def has_image_column(self) -> bool:
        return resolve_columns(self.header, self.columns, Problems()).image is not None

    @property
    def has_prediction_column(self) -> bool:
        return resolve_columns(self.header, self.columns, Problems()).has_predictions

    def n_images_absent(self) -> int:
        """Return how many images were looked for if not one of the first rows' local files is there, else 0."""
        roles = resolve_columns(self.header, self.columns, Problems())
        is_held = roles.image_is_bytes or roles.image in self.header.images | self.header.binary
        if roles.image is None or roles.labels is None or is_held:
            return 0
        first = next(self.parts[0].table.batches(Problems()), None)
        cells = [] if first is None else first.columns.get(roles.image, [])
        folder = parent_location(self.parts[0].table.location)
        named = [join_location(folder, str(cell).strip()) for cell in cells if not is_empty(cell)]
        return 0 if any(map(_may_be_there, named)) else len(named)

    @cached_property
    def roles(self) -> ColumnRoles:
        problems = Problems()
        roles = resolve_columns(self.header, self.columns, problems, with_images=self.with_images)
        if self.with_images and roles.image is None:
            # Without images, predictions must be given: what is missing depends on what the table is meant to be.
            problems.add(
                "No column says where the image is (path, url, image, file_name, bytes), and none what was predicted "
                f"(prediction, probabilities, prob_<class>), which would do without images; found {_listed(self.header)}."
                if not roles.has_predictions
                else f"No column says where the image is (path, url, image, file_name, bytes); found {_listed(self.header)}."
            )
        if not self.with_images and not roles.has_predictions:
            problems.add(
                f"No column says what was predicted (prediction, probabilities, prob_<class>); found {_listed(self.header)}."
            )
        if not self.with_images and roles.labels is None:
            problems.add(
                f"No column says what is true (label, labels); found {_listed(self.header)}."
            )
        self._raise(problems)
        return roles

    @cached_property
    def survey(self) -> Survey:
        """Return what the first look found; raise everything that is wrong."""
        problems = Problems()
        layout = self._layout()
        listed = layout.prediction_names or layout.label_names
        surveyor = Surveyor(
            header=self.header, class_names=listed.names if listed else None, problems=problems
        )
        for part in self.parts:
            surveyor.begin_file()
            for batch in part.table.batches(problems, without=layout.heavy):
                surveyor.look(batch, _for_part(layout, part))
        found = surveyor.finish()
        self._name_repeated_keys(surveyor.repeated_hashes(), problems)
        self._raise(problems)
        if sum(found.n_rows) == 0:
            raise DataError("The table has no rows.", where=shown_location(self.where))
        return found

    def _name_repeated_keys(self, hashes: frozenset[int], problems: Problems) -> None:
        """Read the keys once more if any seem to be there twice; different keys may have the same hash."""
        column = self.roles.key
        if not hashes or column is None:
            return
        counts: Counter[str] = Counter()
        for part in self.parts:
            for batch in part.table.batches(
                Problems(), without=frozenset(self.header.names) - {column}
            ):
                keys = (
                    str(value).strip()
                    for value in batch.columns.get(column, ())
                    if not is_empty(value)
                )
                counts.update(key for key in keys if hash(key) in hashes)
        for key, count in counts.items():
            if count > 1:
                problems.add(
                    f"The key {key!r} is there {'twice' if count == 2 else f'{count} times'}."  # noqa: PLR2004 - two
                )

    def read_examined(self, start: int = 0) -> Iterator[pa.Table]:
        """Yield samples without images from `start` on as tables of the `EXAMINED_SCHEMA`, after a look at the whole source."""
        for part, first in self._parts_from(start):
            problems, layout = Problems(), self._full_layout(part)
            for batch in self._batches(part, layout, problems, first):
                yield examined_columns(batch, layout, problems)
            self._raise(problems)

    def _parts_from(self, start: int) -> Iterator[tuple[TablePart, int]]:
        """Yield the files that have rows from `start` on, and the first of these in each."""
        done = 0
        for part, n_rows in zip(self.parts, self.survey.n_rows, strict=True):
            if start < done + n_rows:
                yield part, max(0, start - done)
            done += n_rows

    def _full_layout(self, part: TablePart) -> RowLayout:
        return replace(
            _for_part(self._layout(), part),
            metadata_kinds=self.survey.metadata_kinds,
            probability_names=self.survey.probability_names,
        )

    def _batches(
        self, part: TablePart, layout: RowLayout, problems: Problems, start: int
    ) -> Iterator[TableBatch]:
        unused = (self.header.binary | self.header.images) - {layout.roles.image}
        return part.table.batches(problems, start=start, without=frozenset(unused))

    def _layout(self) -> RowLayout:
        heavy = self.header.binary | self.header.images
        return RowLayout(
            roles=self.roles,
            split=self.default_split,
            heavy=heavy,
            label_names=self._names_behind(self.roles.labels),
            prediction_names=self._names_behind(self.roles.predictions),
        )

    def _names_behind(self, column: str | None) -> ClassNames | None:
        if column is not None and column in self.header.class_names:
            return ClassNames(names=self.header.class_names[column], are_codes=True)
        if self.class_names is None:
            known = self.header.class_names.get(self.roles.labels or "")
            return (
                ClassNames(names=known, are_codes=True)
                if known is not None and column is not None
                else None
            )
        has_numbers = any(is_whole_number(name) for name in self.class_names)
        return ClassNames(names=self.class_names, are_codes=not has_numbers)

    def _raise(self, problems: Problems) -> None:
        problems.raise_if_any(
            what=_WHAT, where=shown_location(self.where), fix="Correct these, then run again."
        )


def _for_part(layout: RowLayout, part: TablePart) -> RowLayout:
    prefix = f"{part.name} " if part.name else ""
    return replace(
        layout,
        folder=parent_location(part.table.location),
        named_split=part.split,
        row_prefix=prefix,
    )


def _may_be_there(place: str) -> bool:
    """Return whether a location is elsewhere, or inside an archive, or a file that exists."""
    return not is_local(place) or "::" in place or os.path.exists(local_path(place))


def _listed(header: TableHeader) -> str:
    return ", ".join(header.names[:12]) + (", ..." if len(header.names) > 12 else "")  # noqa: PLR2004
