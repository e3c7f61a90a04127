"""Batches of table rows to samples: cell by cell, or column by column where no images are to be read."""

import base64
import binascii
import datetime
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

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
        row_word: what a row is called.
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
    row_word: str = "row"
    label_names: ClassNames | None = None
    prediction_names: ClassNames | None = None
    probability_names: tuple[str, ...] | None = None
    metadata_kinds: Mapping[str, str | None] = field(default_factory=dict)
    heavy: frozenset[str] = frozenset()

    def row_name(self, position: int) -> str:
        return f"{self.row_prefix}{self.row_word} {position + 1}"


def samples_of(batch: TableBatch, layout: RowLayout, problems: Problems) -> Iterator[RawSample]:
    """Yield the samples of a batch; cells that cannot be used go to `problems` and count as empty."""
    cells = ParsedCells(batch, layout, problems)
    images, image_codes = cells.images()
    metadata: list[dict[str, MetadataValue]] = [{} for _ in cells.rows]
    for name, kind in layout.metadata_kinds.items():
        values, codes = batch.distinct(name)
        cast = [metadata_value(value, kind) for value in values]
        for record, code in zip(metadata, codes.tolist(), strict=True):
            record[name] = cast[code]
    for place, key in enumerate(cells.keys):
        default = Split.SYNTHETIC if is_generated(metadata[place]) else layout.split
        split = cells.splits.values[cells.splits.codes[place]] or layout.named_split or default
        location, data = images[image_codes[place]]
        yield RawSample(
            key=key,
            location=location,
            data=data,
            labels=cells.labels.values[cells.labels.codes[place]],
            split=split.value if split else None,
            predictions=cells.predictions.values[cells.predictions.codes[place]],
            probabilities=cells.probabilities[place],
            metadata=metadata[place],
        )


class ParsedCells:
    """What the cells of a batch say; of labels, splits and predictions the different ones, and which of them every row has.

    Args:
        problems: takes cells that cannot be used; they count as empty.
    """

    def __init__(self, batch: TableBatch, layout: RowLayout, problems: Problems) -> None:
        self._batch, self._layout, self._problems = batch, layout, problems
        roles = layout.roles
        self.rows = [layout.row_name(batch.first_row + place) for place in range(batch.n_rows)]
        self.labels = self._labels(roles.labels, layout.label_names, many=roles.labels_are_many)
        self.splits = self._parsed(roles.split, split_cell, None)
        predictions = self._labels(
            roles.predictions, layout.prediction_names, many=roles.predictions_are_many
        )
        # An empty list says "predicted: nothing"; an empty cell says nothing at all.
        listed = [
            isinstance(value, (list, tuple)) for value in batch.distinct(roles.predictions).values
        ]
        said = [
            labels if labels or is_list else None
            for labels, is_list in zip(predictions.values, listed, strict=True)
        ]
        self.predictions = DistinctCells(said, predictions.codes)
        columns = roles.probability_columns
        self.probabilities = (
            self._from_columns(columns) if columns else self._from_column(roles.probabilities)
        )
        names, codes = self._parsed(
            roles.key, lambda value: "" if is_empty(value) else str(value).strip(), ""
        )
        self.keys = [
            names[code] or row for code, row in zip(codes.tolist(), self.rows, strict=True)
        ]

    def images(self) -> DistinctCells:
        """Return location and data of every image, both None where there is none."""
        layout, name = self._layout, self._layout.roles.image
        if name in layout.heavy and name not in self._batch:
            name = None

        def parse(value: object) -> tuple[str | None, bytes | None]:
            if name in layout.heavy and (value is None or value == {"bytes": None, "path": None}):
                return None, b""
            location, data = image_cell(value, is_bytes=layout.roles.image_is_bytes)
            return (None if location is None else join_location(layout.folder, location)), data

        return self._parsed(name, parse, (None, None))

    def _parsed(
        self, name: str | None, parse: Callable[[object], Any], fallback: Any
    ) -> DistinctCells:
        """Return every cell of a column parsed; bad cells are noted and replaced."""
        values, codes = self._batch.distinct(name)
        if name is None:
            return DistinctCells([fallback], codes)
        parsed: list[Any] = []
        wrong: dict[int, str] = {}
        for code, value in enumerate(values):
            try:
                parsed.append(parse(value))
            except CellError as error:
                wrong[code] = f"{error} Column {name!r}."
                parsed.append(fallback)
        for row in np.flatnonzero(np.isin(codes, list(wrong))).tolist() if wrong else ():
            self._problems.add(wrong[int(codes[row])], row=self.rows[row])
        return DistinctCells(parsed, codes)

    def _labels(self, name: str | None, names: ClassNames | None, *, many: bool) -> DistinctCells:
        def parse(value: object) -> tuple[str, ...]:
            labels = label_cell(value, many=many)
            return labels if names is None else names.translate(labels)

        return self._parsed(name, parse, ())

    def _from_column(self, name: str | None) -> list[Mapping[str, float] | None]:
        def parse(value: object) -> Mapping[str, float] | None:
            items = probability_items(value)
            return (
                dict(zip(self._layout.probability_names or (), items, strict=False))
                if isinstance(items, list)
                else items
            )

        values, codes = self._parsed(name, parse, None)
        return [values[code] for code in codes.tolist()]

    def _from_columns(
        self, columns: tuple[tuple[str, str], ...]
    ) -> list[Mapping[str, float] | None]:
        listed: list[Mapping[str, float] | None] = []
        classes = [name for name, _ in columns]
        cells = [self._batch.cells(column) for _, column in columns]
        for row, numbers in zip(self.rows, zip(*cells, strict=True), strict=True):
            probabilities = None
            if not all(is_empty(number) for number in numbers):
                try:
                    probabilities = {
                        name: probability(number)
                        for name, number in zip(classes, numbers, strict=True)
                    }
                except CellError as error:
                    self._problems.add(
                        f"{error} Columns {columns[0][1]!r} to {columns[-1][1]!r}.", row=row
                    )
            listed.append(probabilities)
        return listed


_encoded = json.JSONEncoder(ensure_ascii=False).encode


def examined_columns(batch: TableBatch, layout: RowLayout, problems: Problems) -> pa.Table:
    """Return a batch without images as examined samples; the free columns stand in one column of values, each of one type."""
    told = ParsedCells(batch, layout, problems)
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
        "labels": _taken(*told.labels, "labels"),
        "split": _splits(told, generated_values(values, n_rows), layout),
        "predictions": _taken(*told.predictions, "predictions"),
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


def _taken(values: list[Any], codes: AnyArray, name: str) -> pa.Array:
    return pa.array(values, EXAMINED_SCHEMA.field(name).type).take(pa.array(codes))


def _splits(told: ParsedCells, is_generated: AnyArray, layout: RowLayout) -> pa.Array:
    names = [split and split.value for split in told.splits.values]
    given = _taken(names, told.splits.codes, "split")
    if layout.named_split is not None:
        return pc.fill_null(given, layout.named_split.value)
    default = pa.scalar(None if layout.split is None else layout.split.value, pa.string())
    otherwise = pc.if_else(pa.array(is_generated), Split.SYNTHETIC.value, default)
    return pc.coalesce(given, otherwise)


def _hashes(told: ParsedCells) -> Iterator[str]:
    """Yield the content hash of every row, as `examine` gives it."""
    labels, predictions = (
        [_encoded(value) for value in cells.values] for cells in (told.labels, told.predictions)
    )
    rows = zip(
        told.keys,
        told.labels.codes.tolist(),
        told.predictions.codes.tolist(),
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
        return pc.if_else(pc.equal(held, ""), pa.scalar(None, pa.string()), held)
    values, codes = batch.distinct(name)
    return as_values([metadata_value(value, kind) for value in values], kind).take(pa.array(codes))
