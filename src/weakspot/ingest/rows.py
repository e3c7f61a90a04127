"""Batches of table rows to samples."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from weakspot.core.dataset import RawSample, Split
from weakspot.core.generated import is_generated
from weakspot.ingest.cells import (
    CellError,
    MetadataValue,
    image_cell,
    is_empty,
    is_whole_number,
    label_cell,
    metadata_value,
    probability,
    probability_items,
    split_cell,
)
from weakspot.ingest.columns import ColumnRoles
from weakspot.ingest.problems import Problems
from weakspot.ingest.tables import TableBatch
from weakspot.media.locations import join_location

Parsed = TypeVar("Parsed")
_UNKNOWN_CODE = "-1"


@dataclass(frozen=True, kw_only=True)
class ClassNames:
    """Names of classes, and whether numbers in a column are positions in them."""

    names: tuple[str, ...]
    are_codes: bool

    def translate(self, labels: tuple[str, ...]) -> tuple[str, ...]:
        """Return labels as class names; the code -1 means unlabelled."""
        return tuple(
            self._name(label) for label in labels if not (self.are_codes and label == _UNKNOWN_CODE)
        )

    def _name(self, label: str) -> str:
        if self.are_codes and is_whole_number(label) and 0 <= int(label) < len(self.names):
            return self.names[int(label)]
        if label in self.names:
            return label
        raise CellError(f"The label {label!r} is none of the {len(self.names)} classes.")


@dataclass(frozen=True, kw_only=True)
class RowLayout:
    """All that is needed to turn rows into samples.

    Args:
        roles: which column means what.
        folder: where relative paths start.
        split: split of rows that name none, unless they were generated.
        named_split: split of rows that name none, when the file's place tells; stronger than `split`.
        row_prefix: written before row numbers, so that keys are unique over all files of a source.
        label_names: classes behind the labels, if known.
        prediction_names: classes behind the predictions, if known.
        probability_names: classes in the order of listed probabilities, if known.
        metadata_kinds: kind of every free column; columns that are not named here are left out.
        heavy: columns that hold encoded images; an empty cell there is an image of zero bytes.
    """

    roles: ColumnRoles
    folder: str = ""
    split: Split | None = None
    named_split: Split | None = None
    row_prefix: str = ""
    label_names: ClassNames | None = None
    prediction_names: ClassNames | None = None
    probability_names: tuple[str, ...] | None = None
    metadata_kinds: Mapping[str, str | None] = field(default_factory=dict)
    heavy: frozenset[str] = frozenset()

    def row_name(self, position: int) -> str:
        return f"{self.row_prefix}row {position + 1}"


def samples_of(batch: TableBatch, layout: RowLayout, problems: Problems) -> Iterator[RawSample]:
    """Yield the samples of a batch; cells that cannot be used go to `problems` and count as empty."""
    roles = layout.roles
    rows = [layout.row_name(batch.first_row + place) for place in range(batch.n_rows)]
    cells = RowCells(batch=batch, rows=rows, problems=problems)
    images = _images(cells, layout)
    none: tuple[str, ...] = ()
    labels = cells.parse(
        roles.labels, label_parser(layout.label_names, many=roles.labels_are_many), none
    )
    splits = cells.parse(roles.split, split_cell, None)
    predictions = cells.parse(
        roles.predictions,
        label_parser(layout.prediction_names, many=roles.predictions_are_many),
        none,
    )
    probabilities = probabilities_of(cells, layout)
    keys = cells.parse(roles.key, lambda value: "" if is_empty(value) else str(value).strip(), "")
    metadata = _metadata(cells, layout)
    for place, row in enumerate(rows):
        default = Split.SYNTHETIC if is_generated(metadata[place]) else layout.split
        split = splits[place] or layout.named_split or default
        yield RawSample(
            key=keys[place] or row,
            location=images[place][0],
            data=images[place][1],
            labels=labels[place],
            split=split.value if split else None,
            predictions=predictions[place]
            if predictions[place] or _is_listed(batch, roles, place)
            else None,
            probabilities=probabilities[place],
            metadata=metadata[place],
        )


@dataclass(frozen=True, kw_only=True)
class RowCells:
    """Cells of a batch, with what rows are called when one of them is wrong."""

    batch: TableBatch
    rows: Sequence[str]
    problems: Problems

    def column(self, name: str | None) -> list[object]:
        if name is None:
            return [None] * self.batch.n_rows
        return self.batch.columns.get(name) or [None] * self.batch.n_rows

    def parse(
        self, name: str | None, parse: Callable[[object], Parsed], fallback: Parsed
    ) -> list[Parsed]:
        """Return every cell of a column parsed; bad cells are noted and replaced."""
        if name is None:
            return [fallback] * self.batch.n_rows
        parsed: list[Parsed] = []
        for value, row in zip(self.column(name), self.rows, strict=True):
            try:
                parsed.append(parse(value))
            except CellError as error:
                self.problems.add(f"{error} Column {name!r}.", row=row)
                parsed.append(fallback)
        return parsed


def _is_listed(batch: TableBatch, roles: ColumnRoles, place: int) -> bool:
    # An empty list says "predicted: nothing"; an empty cell says nothing at all.
    if roles.predictions is None or roles.predictions not in batch.columns:
        return False
    return isinstance(batch.columns[roles.predictions][place], (list, tuple))


def label_parser(names: ClassNames | None, *, many: bool) -> Callable[[object], tuple[str, ...]]:
    def parse(value: object) -> tuple[str, ...]:
        labels = label_cell(value, many=many)
        return labels if names is None else names.translate(labels)

    return parse


def _images(cells: RowCells, layout: RowLayout) -> list[tuple[str | None, bytes | None]]:
    name = layout.roles.image
    nothing: tuple[str | None, bytes | None] = (None, None)
    if name is None or (name in layout.heavy and name not in cells.batch.columns):
        return [nothing] * cells.batch.n_rows

    def parse(value: object) -> tuple[str | None, bytes | None]:
        if name in layout.heavy and (value is None or value == {"bytes": None, "path": None}):
            return None, b""
        location, data = image_cell(value, is_bytes=layout.roles.image_is_bytes)
        return (None if location is None else join_location(layout.folder, location)), data

    return cells.parse(name, parse, nothing)


def probabilities_of(cells: RowCells, layout: RowLayout) -> list[Mapping[str, float] | None]:
    if layout.roles.probability_columns:
        return _from_columns(cells, layout.roles.probability_columns)

    def parse(value: object) -> Mapping[str, float] | None:
        items = probability_items(value)
        if not isinstance(items, list):
            return items
        names = layout.probability_names or ()
        return dict(zip(names, items, strict=False))

    return cells.parse(layout.roles.probabilities, parse, None)


def _from_columns(
    cells: RowCells, columns: tuple[tuple[str, str], ...]
) -> list[Mapping[str, float] | None]:
    found: list[Mapping[str, float] | None] = []
    values = [cells.column(column) for _, column in columns]
    for row, numbers in zip(cells.rows, zip(*values, strict=True), strict=True):
        if all(is_empty(number) for number in numbers):
            found.append(None)
            continue
        try:
            found.append(
                {
                    name: probability(number)
                    for (name, _), number in zip(columns, numbers, strict=True)
                }
            )
        except CellError as error:
            cells.problems.add(f"{error} Columns {columns[0][1]!r} to {columns[-1][1]!r}.", row=row)
            found.append(None)
    return found


def _metadata(cells: RowCells, layout: RowLayout) -> list[dict[str, MetadataValue]]:
    metadata: list[dict[str, MetadataValue]] = [{} for _ in range(cells.batch.n_rows)]
    for name, kind in layout.metadata_kinds.items():
        for record, value in zip(metadata, cells.column(name), strict=True):
            record[name] = metadata_value(value, kind)
    return metadata
