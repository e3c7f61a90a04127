"""Batches of table rows without images to examined samples, column by column: every different cell is parsed once."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weakspot.core.arrays import AnyArray
from weakspot.core.dataset import Split
from weakspot.ingest.cells import CellError, is_empty, metadata_value, split_cell
from weakspot.ingest.examine import EXAMINED_SCHEMA
from weakspot.ingest.generated import generated_values
from weakspot.ingest.metadata_columns import METADATA_VALUES, as_values
from weakspot.ingest.problems import Problems
from weakspot.ingest.rows import RowCells, RowLayout, label_parser, probabilities_of
from weakspot.ingest.tables import DistinctCells, TableBatch
from weakspot.media.images import content_hash

Parsed = TypeVar("Parsed")
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
    values = {name: _metadata(batch, name, kind) for name, kind in layout.metadata_kinds.items()}
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


def _metadata(batch: TableBatch, name: str, kind: str | None) -> pa.Array:
    held = batch.arrow(name)
    if kind == "str" and held is not None and pa.types.is_string(held.type):
        text = held.combine_chunks()
        return pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text)
    values, codes = batch.distinct(name)
    return as_values([metadata_value(value, kind) for value in values], kind).take(pa.array(codes))
