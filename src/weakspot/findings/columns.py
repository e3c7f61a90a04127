"""Values as people have them in Python (lists, arrays, series, tensors, data frames) as plain columns."""

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np
import pyarrow as pa

from weakspot.core.errors import DataError


def plain_values(column: object, name: str) -> list[Any]:
    """Return a list of Python values of any one-dimensional thing.

    Raises:
        DataError: if it is a single value.

    >>> plain_values(("a", "b"), "labels")
    ['a', 'b']
    """
    if isinstance(column, (Mapping, Set)) or _is_pandas(column):
        raise DataError(
            f"'{name}' is not a column: it has no one order of values.",
            given=type(column).__name__,
            fix="Give a list, an array or one column of the table.",
        )
    values = _listed(column)
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise DataError(
            f"'{name}' is one value, not one for every sample.",
            given=type(column).__name__,
            fix="Give a list, an array or a column.",
        )
    return [value.tolist() if hasattr(value, "tolist") else value for value in values]


def _listed(column: Any) -> Any:
    if isinstance(column, np.ndarray) and column.dtype.kind in "mM":
        return column.astype(
            f"{column.dtype.kind}8[us]"
        ).tolist()  # nanoseconds become bare numbers
    for how in ("tolist", "to_pylist"):
        if hasattr(column, how):
            return getattr(column, how)()
    return column


def arrow_table(data: object) -> pa.Table:
    """Return a table of pandas, polars or pyarrow, a dict of columns or a list of rows as an Arrow table.

    Raises:
        DataError: if it is none of these, or its columns differ in length.
    """
    try:
        table = _as_table(data)
        return pa.table({name: _decoded(table.column(name)) for name in _once(table.column_names)})
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(
            f"The table cannot be taken: {str(error).splitlines()[0]}",
            given=type(data).__name__,
            fix="Give every column one value for every sample.",
        ) from error


def _once(names: Iterable[object]) -> list[str]:
    """Return the names of columns as text, each once."""
    told = [str(name) for name in names]
    twice = next((name for place, name in enumerate(told) if name in told[:place]), None)
    if twice is not None:
        raise DataError("Two columns have one name.", given=twice, fix="Rename one of them.")
    if any(not name.strip() for name in told):
        raise DataError("A column has no name.", given=told, fix="Give it one.")
    return told


def is_table(data: object) -> bool:
    """Return whether something is a table rather than samples that are drawn one after another."""
    return (
        isinstance(data, (pa.Table, Mapping))
        or _is_pandas(data)
        or _is_lazy(data)
        or (hasattr(data, "__arrow_c_stream__") and not hasattr(data, "features"))
        or (isinstance(data, Sequence) and bool(data) and isinstance(data[0], Mapping))
    )


def check_order(parts: Mapping[str, object]) -> None:
    """Refuse parts whose rows have the same names in different orders; all others are taken row by row.

    Raises:
        DataError: naming the part.
    """
    indexes = [
        (name, part.index)
        for name, part in parts.items()
        if hasattr(part, "index") and hasattr(part.index, "equals")
    ]
    for name, index in indexes[1:]:
        first, other = indexes[0]
        if not index.equals(other) and len(index) == len(other) and set(index) == set(other):
            raise DataError(
                f"The rows of '{name}' are in another order than those of '{first}'.",
                given=[*index[:3]],
                fix=f"Sort one like the other: {name} = {name}.loc[{first}.index].",
            )


def _is_pandas(data: object) -> bool:
    return hasattr(data, "iloc") and hasattr(data, "columns")


def _is_lazy(data: object) -> bool:
    return type(data).__name__ == "LazyFrame"


def _as_table(data: Any) -> pa.Table:
    if isinstance(data, pa.Table):
        return data
    if _is_lazy(data):
        data = data.collect()
    if hasattr(data, "to_frame"):
        data = data.to_frame()
    if isinstance(data, Mapping):
        return pa.table({str(name): _array(values, str(name)) for name, values in data.items()})
    if _is_pandas(data):
        names = _once(data.columns)
        return pa.table(
            {name: _array(data.iloc[:, place], name) for place, name in enumerate(names)}
        )
    if hasattr(data, "__arrow_c_stream__"):
        return pa.table(data)
    if isinstance(data, Sequence) and data and isinstance(data[0], Mapping):
        return pa.Table.from_pylist([dict(row) for row in data])
    raise DataError(
        "This is no table.",
        given=type(data).__name__,
        fix="Give a data frame, an Arrow table, a dict of columns or a list of rows.",
    )


def _array(values: object, name: str) -> pa.Array:
    plain = [None if is_missing(value) else value for value in plain_values(values, name)]
    try:
        return pa.array(plain)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        # A column of several types is text, as in a file.
        return pa.array([None if value is None else str(value) for value in plain])


def is_missing(value: object) -> bool:
    """Return whether a cell says nothing: None, a number that is none, or what pandas writes for it."""
    is_no_number = isinstance(value, float) and value != value  # noqa: PLR0124 - NaN
    return value is None or is_no_number or type(value).__name__ in ("NAType", "NaTType")


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return categories as their values, and text as plain strings."""
    if not pa.types.is_dictionary(column.type):
        return _plain(column)
    kind = _plain(pa.array([], column.type.value_type)).type
    parts = [_plain(part.dictionary).take(part.indices) for part in column.chunks]
    return pa.chunked_array(parts, type=kind)


def _plain(column: Any) -> Any:
    """Return text that pyarrow can work with: it has few functions for views, which polars gives."""
    return column.cast(pa.string()) if pa.types.is_string_view(column.type) else column
