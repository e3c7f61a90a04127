"""Values as people have them in Python (lists, arrays, series, tensors, data frames) as plain columns."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from weakspot.core.errors import DataError


def plain_values(column: object, name: str) -> list[Any]:
    """Return a list of Python values of any one-dimensional thing.

    Raises:
        DataError: if it is a single value.

    >>> plain_values(("a", "b"), "labels")
    ['a', 'b']
    """
    values = column.tolist() if hasattr(column, "tolist") else column
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise DataError(
            f"'{name}' is one value, not one for every sample.",
            given=type(column).__name__,
            fix="Give a list, an array or a column.",
        )
    return [value.tolist() if hasattr(value, "tolist") else value for value in values]


def arrow_table(data: object) -> pa.Table:
    """Return a table of pandas, polars or pyarrow, a dict of columns or a list of rows as an Arrow table.

    Raises:
        DataError: if it is none of these, or its columns differ in length.
    """
    try:
        table = _as_table(data)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(
            f"The table cannot be taken: {str(error).splitlines()[0]}",
            given=type(data).__name__,
            fix="Give every column one value for every sample.",
        ) from error
    return pa.table({name: _decoded(table.column(name)) for name in table.column_names})


def is_table(data: object) -> bool:
    """Return whether something is a table rather than samples that are drawn one after another."""
    return (
        isinstance(data, (pa.Table, Mapping))
        or _is_pandas(data)
        or (hasattr(data, "__arrow_c_stream__") and not hasattr(data, "features"))
        or (isinstance(data, Sequence) and bool(data) and isinstance(data[0], Mapping))
    )


def _is_pandas(data: object) -> bool:
    return hasattr(data, "iloc") and hasattr(data, "columns")


def _as_table(data: Any) -> pa.Table:
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, Mapping):
        return pa.table({str(name): _array(values, str(name)) for name, values in data.items()})
    if _is_pandas(data):
        return pa.table({str(name): _array(data[name], str(name)) for name in data.columns})
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
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        # A column of several types is text, as in a file.
        return pa.array([None if value is None else str(value) for value in plain])


def is_missing(value: object) -> bool:
    """Return whether a cell says nothing: None, or a number that is none."""
    return value is None or (isinstance(value, float) and value != value)  # noqa: PLR0124 - NaN


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return categories as their values."""
    kind = column.type
    return column.cast(kind.value_type) if pa.types.is_dictionary(kind) else column
