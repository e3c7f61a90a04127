"""Batches of table rows to samples: cell by cell, or column by column where no images are to be read."""

import base64
import binascii
import datetime
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weakspot.core.arrays import AnyArray
from weakspot.core.dataset import RawSample, Split
from weakspot.core.generated import is_generated
from weakspot.data.columns import METADATA_VALUES, ColumnRoles, as_values, did_you_mean
from weakspot.data.examine import EXAMINED_SCHEMA
from weakspot.data.images import content_hash
from weakspot.data.locations import join_location
from weakspot.data.source import Problems, generated_values, parse_split
from weakspot.data.tables import DistinctCells, TableBatch

MetadataValue = str | int | float | bool | None
_SEPARATORS = re.compile(r"[;|]")
_WHOLE_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_NUMBER = re.compile(r"-?((0|[1-9][0-9]*)(\.[0-9]*)?([eE][+-]?[0-9]+)?|\.[0-9]+([eE][+-]?[0-9]+)?)")
_YES_NO = {"true": True, "false": False}
_PROBABILITY_SLACK = 1e-4


class CellError(ValueError):
    """A cell that cannot be used; the message says why, without the row."""


def is_whole_number(text: str) -> bool:
    """Return whether text is a whole number written the usual way (no leading zeros)."""
    return _WHOLE_NUMBER.fullmatch(text) is not None


def is_empty(value: object) -> bool:
    """Return whether a cell holds nothing: null, NaN or blank text."""
    return (
        value is None
        or (isinstance(value, float) and math.isnan(value))
        or (isinstance(value, str) and not value.strip())
    )


def label_cell(value: object, *, many: bool) -> tuple[str, ...]:
    """Return the labels in a cell; none when it is empty.

    Args:
        value: the cell.
        many: whether text is several labels with `;` or `|` between them, or a JSON list.
    """
    if is_empty(value):
        return ()
    if isinstance(value, str) and many:
        value = _listed(value)
    if isinstance(value, (list, tuple)):
        return tuple(dict.fromkeys(_one_label(item) for item in value if not is_empty(item)))
    return (_one_label(value),)


def label_kind(value: object) -> str | None:
    """Return what kind of label a cell holds (`word`, `number`, `list`), or None when it holds none."""
    if is_empty(value):
        return None
    if isinstance(value, (list, tuple)):
        return "list"
    if isinstance(value, str):
        return "word"
    return "number" if isinstance(value, (int, float)) else None


def split_cell(value: object) -> Split | None:
    """Return the split that a cell names, or None when it is empty."""
    if is_empty(value):
        return None
    found = parse_split(str(value))
    if found is None:
        hint = did_you_mean(str(value), tuple(split.value for split in Split))
        raise CellError(
            f"The split {value!r} is unknown{hint or ', use train, validation, test, pool or synthetic'}."
        )
    return found


def image_cell(value: object, *, is_bytes: bool) -> tuple[str | None, bytes | None]:
    """Return location and data of the image that a cell holds or points to; one of them is None."""
    if isinstance(value, Mapping):
        inner = value.get("bytes")
        value, is_bytes = (inner, True) if inner is not None else (value.get("path"), False)
    if isinstance(value, (bytes, bytearray)):
        return None, bytes(value)
    if is_empty(value):
        raise CellError("The image is missing: the cell is empty.")
    if not isinstance(value, str):
        raise CellError(
            f"An image cannot be given as {type(value).__name__}; give a path, a URL or bytes."
        )
    if not is_bytes:
        return value.strip(), None
    try:
        return None, base64.b64decode(value, validate=True)
    except binascii.Error:
        raise CellError("The bytes of an image are not base64 text.") from None


def probability_items(value: object) -> dict[str, float] | list[float] | None:
    """Return the probabilities in a cell, by class name or in order; None when it is empty."""
    if is_empty(value):
        return None
    if isinstance(value, str):
        value = _json(value, "Probabilities in text must be a JSON list or object.")
    if (
        isinstance(value, (list, tuple))
        and value
        and all(isinstance(item, tuple) for item in value)
    ):
        value = dict(value)
    if isinstance(value, Mapping):
        return {str(name): probability(item) for name, item in value.items()} or None
    if isinstance(value, (list, tuple)):
        return [probability(item) for item in value] or None
    raise CellError(
        f"Probabilities cannot be given as {type(value).__name__}; give a list or an object."
    )


def probability(value: object) -> float:
    if value is None or (isinstance(value, str) and not value.strip()):
        raise CellError("A probability is missing where others of the row are given.")
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise CellError(f"The probability {value!r} is not a number.") from None
    if math.isnan(number) or math.isinf(number):
        raise CellError("A probability is not finite.")
    if number < 0:
        raise CellError("A probability is negative; give probabilities, not logits.")
    if number > 1 + _PROBABILITY_SLACK:
        raise CellError("A probability is above 1; give probabilities, not logits or percent.")
    return min(number, 1.0)


def metadata_kind(value: object, *, is_text: bool) -> str | None:
    """Return what a free value is: `bool`, `int`, `float`, `str`, or None when it is empty."""
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, str):
        return _text_kind(value.strip()) if is_text else "str"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int"
    return "float" if isinstance(value, (float, Decimal)) else "str"


def wider_kind(first: str | None, second: str | None) -> str | None:
    if first is None or second is None or first == second:
        return first or second
    return "float" if {first, second} == {"int", "float"} else "str"


def metadata_value(value: object, kind: str | None) -> MetadataValue:
    """Return a free value as the given kind; empty and not-a-number become None."""
    if kind is None or metadata_kind(value, is_text=False) is None:
        return None
    if kind == "bool":
        return _YES_NO[value.strip().lower()] if isinstance(value, str) else bool(value)
    if kind == "int":
        return int(str(value))
    if kind == "float":
        return float(str(value))
    return _as_text(value)


def _text_kind(text: str) -> str:
    if text.lower() in _YES_NO:
        return "bool"
    if is_whole_number(text):
        return "int"
    # Longer digit strings are identifiers that a float would round.
    return "float" if _NUMBER.fullmatch(text) and not text.lstrip("-").isdigit() else "str"


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (list, tuple, Mapping)):
        return json.dumps(value, sort_keys=True, default=str, ensure_ascii=False)
    return str(value)


def _listed(text: str) -> object:
    if text.lstrip().startswith("["):
        return _json(text, "Labels that start with [ must be a JSON list.")
    return [part for part in _SEPARATORS.split(text) if part.strip()]


def _json(text: str, message: str) -> object:
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        raise CellError(message) from None


def _one_label(value: object) -> str:
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    raise CellError(f"A label cannot be {value!r}; give a name or a whole number.")


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


_encoded = json.JSONEncoder(ensure_ascii=False).encode


@dataclass(frozen=True, kw_only=True, eq=False)
class SampleColumns:
    """What the cells of a batch say; of labels, splits and predictions the different ones, and which of them every row has.

    Args:
        keys: unique names of the rows [n].
        labels: true labels.
        splits: None where a row names none.
        predictions: predicted labels, None where nothing was predicted.
        probabilities: by class name [n].
    """

    keys: list[str]
    labels: tuple[list[tuple[str, ...]], AnyArray]
    splits: tuple[list[Split | None], AnyArray]
    predictions: tuple[list[tuple[str, ...] | None], AnyArray]
    probabilities: list[Mapping[str, float] | None]


def parse_columns(batch: TableBatch, layout: RowLayout, problems: Problems) -> SampleColumns:
    """Parse the cells of a batch that has no images; cells that cannot be used go to `problems` and count as empty."""
    roles = layout.roles
    rows = [layout.row_name(batch.first_row + place) for place in range(batch.n_rows)]
    cells = _Cells(batch=batch, rows=rows, problems=problems)
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
    probabilities = probabilities_of(RowCells(batch=batch, rows=rows, problems=problems), layout)
    named, codes = cells.parse(
        roles.key, lambda value: "" if is_empty(value) else str(value).strip(), ""
    )
    return SampleColumns(
        keys=[named[code] or row for code, row in zip(codes.tolist(), rows, strict=True)],
        labels=labels,
        splits=splits,
        predictions=(_given(predictions[0], batch.distinct(roles.predictions)), predictions[1]),
        probabilities=probabilities,
    )


def _given(parsed: list[tuple[str, ...]], cells: DistinctCells) -> list[tuple[str, ...] | None]:
    # An empty list says "predicted: nothing"; an empty cell says nothing at all.
    return [
        labels if labels or isinstance(value, (list, tuple)) else None
        for labels, value in zip(parsed, cells.values, strict=True)
    ]


@dataclass(frozen=True, kw_only=True)
class _Cells:
    batch: TableBatch
    rows: list[str]
    problems: Problems

    def parse(
        self, name: str | None, parse: Callable[[object], Parsed], fallback: Parsed
    ) -> tuple[list[Parsed], AnyArray]:
        values, codes = self.batch.distinct(name)
        if name is None:
            return [fallback], codes
        parsed: list[Parsed] = []
        wrong: dict[int, str] = {}
        for code, value in enumerate(values):
            try:
                parsed.append(parse(value))
            except CellError as error:
                wrong[code] = f"{error} Column {name!r}."
                parsed.append(fallback)
        for row in np.flatnonzero(np.isin(codes, list(wrong))).tolist() if wrong else ():
            self.problems.add(wrong[int(codes[row])], row=self.rows[row])
        return parsed, codes


def examined_columns(batch: TableBatch, layout: RowLayout, problems: Problems) -> pa.Table:
    """Return a batch without images as examined samples; the free columns stand in one column of values, each of one type."""
    told = parse_columns(batch, layout, problems)
    values = {
        name: _metadata_column(batch, name, kind) for name, kind in layout.metadata_kinds.items()
    }
    n_rows = batch.n_rows
    columns: dict[str, pa.Array] = {
        field.name: pa.nulls(n_rows, field.type) for field in EXAMINED_SCHEMA
    }
    columns |= {
        "key": pa.array(told.keys, pa.string()),
        "content_hash": pa.array(_hashes(told), pa.string()),
        "width": pa.array(np.zeros(n_rows, dtype=np.int32)),
        "height": pa.array(np.zeros(n_rows, dtype=np.int32)),
        "notes": _taken([[]], np.zeros(n_rows, dtype=np.int64), "notes"),
        "labels": _taken(told.labels[0], told.labels[1], "labels"),
        "split": _splits(told, generated_values(values, n_rows), layout),
        "predictions": _taken(told.predictions[0], told.predictions[1], "predictions"),
    }
    if any(one is not None for one in told.probabilities):
        listed = [None if one is None else list(one.items()) for one in told.probabilities]
        columns["probabilities"] = pa.array(listed, EXAMINED_SCHEMA.field("probabilities").type)
    table = pa.table(columns, schema=EXAMINED_SCHEMA)
    if not values:
        return table
    # Field by field: a column may have any name, the empty one too.
    fields = [pa.field(name, column.type) for name, column in values.items()]
    whole = pa.StructArray.from_arrays(list(values.values()), fields=fields)
    return table.append_column(METADATA_VALUES, whole)


def _taken(values: list[Parsed], codes: AnyArray, name: str) -> pa.Array:
    return pa.array(values, EXAMINED_SCHEMA.field(name).type).take(pa.array(codes))


def _splits(told: SampleColumns, is_generated: AnyArray, layout: RowLayout) -> pa.Array:
    names, codes = told.splits
    given = _taken([None if one is None else one.value for one in names], codes, "split")
    if layout.named_split is not None:
        return pc.fill_null(given, layout.named_split.value)
    default = pa.scalar(None if layout.split is None else layout.split.value, pa.string())
    otherwise = pc.if_else(pa.array(is_generated), Split.SYNTHETIC.value, default)
    return pc.coalesce(given, otherwise)


def _hashes(told: SampleColumns) -> Iterator[str]:
    """Yield the content hash of every row, as `examine` gives it."""
    labels, predictions = (
        [_encoded(value) for value in values] for values in (told.labels[0], told.predictions[0])
    )
    rows = zip(
        told.keys,
        told.labels[1].tolist(),
        told.predictions[1].tolist(),
        told.probabilities,
        strict=True,
    )
    for key, label, prediction, probabilities in rows:
        last = "null" if probabilities is None else _encoded(sorted(probabilities.items()))
        said = f"[{_encoded(key)}, {labels[label]}, {predictions[prediction]}, {last}]"
        yield content_hash(said.encode("utf-8", "surrogatepass"))


def _metadata_column(batch: TableBatch, name: str, kind: str | None) -> pa.Array:
    held = batch.arrow(name)
    if kind == "str" and held is not None and pa.types.is_string(held.type):
        text = held.combine_chunks()
        return pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text)
    values, codes = batch.distinct(name)
    return as_values([metadata_value(value, kind) for value in values], kind).take(pa.array(codes))
