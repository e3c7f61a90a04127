"""Samples from one table or from many table files of the same columns.

A first look at all rows says everything wrong before any work begins.
"""

import os
from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import pyarrow as pa

from weakspot.core.dataset import RawSample, Split
from weakspot.core.errors import DataError
from weakspot.data.columns import ColumnRoles, did_you_mean, resolve_columns
from weakspot.data.locations import (
    is_local,
    is_there,
    join_location,
    local_path,
    parent_location,
    read_location,
    shown_location,
)
from weakspot.data.rows import (
    CellError,
    ClassNames,
    ParsedCells,
    RowLayout,
    examined_columns,
    is_empty,
    is_whole_number,
    label_cell,
    label_kind,
    metadata_kind,
    probability_items,
    samples_of,
    wider_kind,
)
from weakspot.data.source import MAX_SHOWN, ColumnSource, Problems, fingerprint_of_files
from weakspot.data.tables import (
    TABLE_EXTENSIONS,
    TableBatch,
    TableFile,
    TableHeader,
    file_extension,
)


@dataclass(kw_only=True)
class Survey:
    """What the first look at batch after batch finds; only what is needed is remembered.

    Args:
        header: the columns.
        class_names: known names of the classes, in the order of listed probabilities.
        problems: takes what is wrong.
        n_rows: rows of every file, in order.
        metadata_kinds: kind of every free column.
        probability_names: classes in the order of listed probabilities; None when there are none.
    """

    header: TableHeader
    class_names: tuple[str, ...] | None
    problems: Problems
    n_rows: list[int] = field(default_factory=list)
    metadata_kinds: dict[str, str | None] = field(default_factory=dict)
    probability_names: tuple[str, ...] | None = None
    _label_kinds: dict[str, str] = field(default_factory=dict)
    _has_only_codes: bool = True
    _largest_code: int = -1
    _n_listed: int | None = None
    _classes: frozenset[str] | None = None
    _keys: "array[int]" = field(default_factory=lambda: array("q"))

    def look(self, batch: TableBatch, layout: RowLayout) -> None:
        self.n_rows[-1] = batch.first_row + batch.n_rows
        self._look_at_metadata(batch, layout)
        self._look_at_labels(batch, layout)
        self._look_at_probabilities(batch, layout)
        cells = ParsedCells(batch, layout, self.problems)
        if layout.roles.image is not None:
            cells.images()
        if layout.roles.key is not None:
            self._keys.extend(map(hash, cells.keys))

    def finish(self) -> None:
        """Note problems of whole columns."""
        if len(self._label_kinds) > 1:
            listed = " and ".join(
                f"{kind}s ({row})" for kind, row in sorted(self._label_kinds.items())
            )
            self.problems.add(f"Labels are of mixed types: {listed}.")
        self.probability_names = self._listed_names()

    def _look_at_metadata(self, batch: TableBatch, layout: RowLayout) -> None:
        for name in layout.roles.metadata:
            kind = self.metadata_kinds.setdefault(name, None)
            if kind == "str":
                continue
            for value in batch.distinct(name).values:
                kind = wider_kind(kind, metadata_kind(value, is_text=self.header.is_text))
            self.metadata_kinds[name] = kind

    def _look_at_labels(self, batch: TableBatch, layout: RowLayout) -> None:
        if layout.roles.labels is None:
            return
        values, codes = batch.distinct(layout.roles.labels)
        # Codes are numbered in the order in which they appear.
        _, places = np.unique(codes, return_index=True)
        for place, value in zip(places.tolist(), values, strict=True):
            kind = label_kind(value)
            if kind is not None and kind not in self._label_kinds:
                self._label_kinds[kind] = layout.row_name(batch.first_row + place)
            if self._has_only_codes:
                self._look_at_codes(value, many=layout.roles.labels_are_many)

    def _look_at_codes(self, value: object, *, many: bool) -> None:
        try:
            labels = label_cell(value, many=many)
        except CellError:
            return
        self._has_only_codes = all(is_whole_number(label) and int(label) >= 0 for label in labels)
        if self._has_only_codes and labels:
            self._largest_code = max(self._largest_code, *(int(label) for label in labels))

    def _look_at_probabilities(self, batch: TableBatch, layout: RowLayout) -> None:
        name = layout.roles.probabilities
        for place, value in enumerate(batch.cells(name) if name is not None else ()):
            try:
                items = probability_items(value)
            except CellError:
                continue
            row = layout.row_name(batch.first_row + place)
            if isinstance(items, list):
                self._n_listed = len(items) if self._n_listed is None else self._n_listed
                if len(items) != self._n_listed:
                    self.problems.add(
                        f"Probabilities are ragged: {len(items)} where the first row has {self._n_listed}.",
                        row=row,
                    )
            elif items is not None:
                self._classes = frozenset(items) if self._classes is None else self._classes
                if items.keys() != self._classes:
                    self.problems.add(
                        "Probabilities are ragged: other classes than in the first row.", row=row
                    )

    def repeated_hashes(self) -> frozenset[int]:
        """Return hashes that several keys have, at most as many as are of use; the keys themselves were not kept."""
        ordered = np.sort(np.frombuffer(self._keys, dtype=np.int64))
        repeated = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
        return frozenset(repeated[:MAX_SHOWN].tolist())

    def _listed_names(self) -> tuple[str, ...] | None:
        if self._n_listed is None:
            return None
        if self._classes is not None:
            self.problems.add("Probabilities are lists in some rows and objects in others.")
        if self.class_names is not None:
            if len(self.class_names) != self._n_listed:
                self.problems.add(
                    f"Lists of {self._n_listed} probabilities do not fit {len(self.class_names)} classes."
                )
            return self.class_names
        if self._has_only_codes and 0 <= self._largest_code < self._n_listed:
            return tuple(str(code) for code in range(self._n_listed))
        self.problems.add(
            f"Lists of {self._n_listed} probabilities do not say which class is which: use an object, columns prob_<class>, "
            "or a file classes.txt beside the table with one class a line."
        )
        return None


def open_table(location: str, *, name: str = "", split: Split | None = None) -> TableFile:
    """Return a table file.

    Raises:
        DataError: if its extension is not that of a table.
    """
    table = TableFile(location=location, name=name, split=split)
    if table.kind is not None:
        return table
    extension = file_extension(location)
    hint = did_you_mean(extension, tuple(TABLE_EXTENSIONS))
    raise DataError(
        f"A file with the extension {extension!r} is no table that weakspot reads{hint}.",
        where=shown_location(location),
        fix=f"Give a file with one of {', '.join(TABLE_EXTENSIONS)}.",
    )


@dataclass(frozen=True, kw_only=True)
class TableSource(ColumnSource):
    """Samples of tables; the shared inside of manifests, predictions and Hugging Face folders.

    Args:
        class_names: names of the classes in the order of codes and listed probabilities; a file `classes.txt` beside the table
            is read when there is one.
        note: what was found out when it was opened, for people.
    """

    with_images: ClassVar[bool] = True
    """Whether every row must have an image; otherwise every table must have predictions."""

    class_names: tuple[str, ...] | None = None
    note: str = ""

    def fingerprint(self) -> str:
        settings = (self.kind, dict(self.columns), self.default_split, self._known_names)
        found = fingerprint_of_files([self.location], *settings)
        if self.__dict__.setdefault("_known_as", found) != found:
            # What was seen of the table before it changed is of no use any more.
            for name in ("_known_names", "parts", "header", "roles", "survey"):
                self.__dict__.pop(name, None)
            self.__dict__.update(_known_as=found)
        return found

    def count(self) -> int:
        return sum(self.survey.n_rows)

    def read(self, start: int = 0) -> Iterator[RawSample]:
        """Yield samples from `start` on, after a look at the whole source."""
        for part, first in self._parts_from(start):
            problems, layout = Problems(), self._full_layout(part)
            for batch in self._batches(part, layout, problems, first):
                yield from samples_of(batch, layout, problems)
            self._raise(problems)

    @cached_property
    def parts(self) -> tuple[TableFile, ...]:
        """Return the files, in order."""
        return (open_table(self.location),)

    @cached_property
    def header(self) -> TableHeader:
        problems = Problems()
        headers = [part.header(problems) for part in self.parts]
        for part, header in zip(self.parts, headers, strict=True):
            if set(header.names) != set(headers[0].names):
                odd = sorted(set(header.names) ^ set(headers[0].names))
                problems.add(f"The file {part.name!r} has other columns than the first one: {odd}.")
        self._raise(problems)
        return headers[0]

    @property
    def apparent_roles(self) -> ColumnRoles:
        """Return what every column seems to mean, also where that is not all that is needed."""
        return resolve_columns(self.header, self.columns, Problems())

    def n_images_absent(self) -> int:
        """Return how many images were looked for if not one of the first rows' local files is there, else 0."""
        roles = self.apparent_roles
        is_held = roles.image_is_bytes or roles.image in self.header.images | self.header.binary
        if roles.image is None or roles.labels is None or is_held:
            return 0
        first = next(self.parts[0].batches(Problems()), None)
        cells = [] if first is None else first.cells(roles.image)
        folder = parent_location(self.parts[0].location)
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
        seen = Survey(
            header=self.header, class_names=listed.names if listed else None, problems=problems
        )
        for part in self.parts:
            seen.n_rows.append(0)
            for batch in part.batches(problems, without=layout.heavy):
                seen.look(batch, _for_part(layout, part))
        seen.finish()
        self._name_repeated_keys(seen.repeated_hashes(), problems)
        self._raise(problems)
        if sum(seen.n_rows) == 0:
            raise DataError("The table has no rows.", where=shown_location(self.location))
        return seen

    def _name_repeated_keys(self, hashes: frozenset[int], problems: Problems) -> None:
        """Read the keys once more if any seem to be there twice; different keys may have the same hash."""
        column = self.roles.key
        if not hashes or column is None:
            return
        counts: Counter[str] = Counter()
        for part in self.parts:
            for batch in part.batches(Problems(), without=frozenset(self.header.names) - {column}):
                keys = (str(value).strip() for value in batch.cells(column) if not is_empty(value))
                counts.update(key for key in keys if hash(key) in hashes)
        for key, count in counts.items():
            if count > 1:
                problems.add(
                    f"The key {key!r} is there {'twice' if count == 2 else f'{count} times'}."  # noqa: PLR2004 - two
                )

    def _parts_from(self, start: int) -> Iterator[tuple[TableFile, int]]:
        """Yield the files that have rows from `start` on, and the first of these in each."""
        done = 0
        for part, n_rows in zip(self.parts, self.survey.n_rows, strict=True):
            if start < done + n_rows:
                yield part, max(0, start - done)
            done += n_rows

    def _full_layout(self, part: TableFile) -> RowLayout:
        return replace(
            _for_part(self._layout(), part),
            metadata_kinds=self.survey.metadata_kinds,
            probability_names=self.survey.probability_names,
        )

    def _batches(
        self, part: TableFile, layout: RowLayout, problems: Problems, start: int
    ) -> Iterator[TableBatch]:
        unused = (self.header.binary | self.header.images) - {layout.roles.image}
        return part.batches(problems, start=start, without=frozenset(unused))

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
        if self._known_names is None:
            known = self.header.class_names.get(self.roles.labels or "")
            return (
                ClassNames(names=known, are_codes=True)
                if known is not None and column is not None
                else None
            )
        has_numbers = any(is_whole_number(name) for name in self._known_names)
        return ClassNames(names=self._known_names, are_codes=not has_numbers)

    @cached_property
    def _known_names(self) -> tuple[str, ...] | None:
        return self.class_names or class_list_beside(self.location)

    def _raise(self, problems: Problems) -> None:
        problems.raise_if_any(
            what="The table cannot be used.",
            where=shown_location(self.location),
            fix="Correct these, then run again.",
        )


def _for_part(layout: RowLayout, part: TableFile) -> RowLayout:
    prefix = f"{part.name} " if part.name else ""
    return replace(
        layout,
        folder=parent_location(part.location),
        named_split=part.split,
        row_prefix=prefix,
    )


def _may_be_there(place: str) -> bool:
    """Return whether a location is elsewhere, or inside an archive, or a file that exists."""
    return not is_local(place) or "::" in place or os.path.exists(local_path(place))


def _listed(header: TableHeader) -> str:
    return ", ".join(header.names[:12]) + (", ..." if len(header.names) > 12 else "")  # noqa: PLR2004


CLASS_LIST_NAME = "classes.txt"


def class_list_beside(location: str) -> tuple[str, ...] | None:
    """Return the class names written beside a local file, or None when there is no such list."""
    path = join_location(parent_location(location), CLASS_LIST_NAME)
    if not is_local(path) or not is_there(path):
        return None
    try:
        lines = read_location(path).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise DataError(
            "The list of classes is not UTF-8 text.",
            where=path,
            fix="Save it with the encoding UTF-8.",
        ) from error
    names = tuple(line.strip() for line in lines if line.strip())
    if len(set(names)) < len(names) or not names:
        raise DataError(
            "The list of classes is empty or names a class twice.",
            where=str(local_path(path)),
            fix="One class a line.",
        )
    return names


@dataclass(frozen=True, kw_only=True)
class ManifestSource(TableSource):
    """Rows that point to images or hold them, with labels, splits, predictions, probabilities and free columns."""

    kind = "manifest"


@dataclass(frozen=True, kw_only=True)
class PredictionsSource(TableSource):
    """Rows with a label, a prediction or probabilities, and free columns; nothing has to be read to examine such samples."""

    kind = "predictions"
    with_images = False

    def read_examined(self, start: int = 0) -> Iterator[pa.Table]:
        """Yield samples from `start` on as tables of the `EXAMINED_SCHEMA`; they hold what `examine` says of `read`.

        Raises:
            DataError: listing everything that is wrong with the source, before the first sample.
        """
        for part, first in self._parts_from(start):
            problems, layout = Problems(), self._full_layout(part)
            for batch in self._batches(part, layout, problems, first):
                yield examined_columns(batch, layout, problems)
            self._raise(problems)
