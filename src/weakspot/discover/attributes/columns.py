"""Metadata columns as attributes: which of them can be used, and the value of every sample as a number."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import AnyArray, IntArray
from weakspot.core.attributes import marked_attributes
from weakspot.core.dataset import Dataset

MOST_NUMBERS = 12
FEWEST_VALUES = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class AttributeTable:
    """Attributes of some rows.

    Args:
        names: the metadata columns.
        values: for every column its values, in alphabetical order.
        codes: [n, a] the place of the value among them plus one, 0 where the column says nothing.
        notes: why columns were left out.
    """

    names: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    codes: AnyArray
    notes: tuple[str, ...] = ()


def attribute_table(
    dataset: Dataset, rows: IntArray, wanted: tuple[str, ...], *, max_values: int
) -> AttributeTable:
    """Return the attributes of the given rows.

    Args:
        dataset: with metadata columns.
        rows: what the values of a column are counted on.
        wanted: names of columns; none for those marked as attributes or, where none is marked, all that can be used.
        max_values: columns with more values are left out.
    """
    marked = marked_attributes(dataset.table)
    names = wanted or tuple(
        name for name in dataset.metadata_names if marked is None or name in marked
    )
    kept: list[tuple[str, tuple[str, ...], AnyArray]] = []
    notes: list[str] = []
    for name in names:
        values, codes = _encode(dataset.metadata(name), rows)
        obstacle = _obstacle(dataset.metadata(name).type, len(values), max_values)
        if obstacle:
            notes.append(f"The column {name!r} was left out: {obstacle}.")
        else:
            kept.append((name, values, codes))
    codes = (
        np.stack([codes for _, _, codes in kept], axis=1)
        if kept
        else np.zeros((len(rows), 0), dtype=np.uint16)
    )
    return AttributeTable(
        names=tuple(name for name, _, _ in kept),
        values=tuple(values for _, values, _ in kept),
        codes=codes,
        notes=tuple(notes),
    )


def _obstacle(kind: pa.DataType, n_values: int, max_values: int) -> str:
    most = min(max_values, MOST_NUMBERS) if _is_number(kind) else max_values
    if not _has_single_values(kind):
        return "its entries are no single values"
    if n_values < FEWEST_VALUES:
        return "all samples have the same value" if n_values else "it says nothing of these samples"
    if n_values > most:
        return f"it has {n_values} different {'numbers' if _is_number(kind) else 'values'}, at most {most} are compared"
    return ""


def _has_single_values(kind: pa.DataType) -> bool:
    is_binary = (
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
    )
    return not (pa.types.is_nested(kind) or is_binary)


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _encode(column: pa.ChunkedArray, rows: IntArray) -> tuple[tuple[str, ...], AnyArray]:
    """Return the values of a column in alphabetical order, and for every row the place of its value plus one."""
    nothing = np.zeros(len(rows), dtype=np.uint16)
    if not _has_single_values(column.type) or pa.types.is_null(column.type):
        return (), nothing
    coded = column.take(pa.array(rows)).combine_chunks().dictionary_encode()
    words = [
        "" if value is None or value != value else str(value)  # noqa: PLR0124 - NaN
        for value in coded.dictionary.to_pylist()
    ]
    places = np.asarray(coded.indices.fill_null(len(words)))
    used = np.bincount(places, minlength=len(words))
    values = tuple(
        sorted({word for word, count in zip(words, used, strict=False) if word.strip() and count})
    )
    if len(values) > np.iinfo(np.uint16).max:
        return values, nothing
    code_of = {value: number for number, value in enumerate(values, start=1)}
    new_codes = np.array([*(code_of.get(word, 0) for word in words), 0], dtype=np.uint16)
    return values, new_codes[places]
