"""Columns as codes with names: what a point can be coloured by."""

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import IntArray

MOST_VALUES = 1000
NOT_KNOWN, OTHERS = "not known", "other values"


def name_unknown(codes: IntArray, names: tuple[str, ...] | list[str]) -> tuple[IntArray, list[str]]:
    """Return codes in which -1 has a name too, if it occurs."""
    if len(codes) and codes.min() < 0:
        return np.where(codes < 0, len(names), codes).astype(np.int64), [*names, NOT_KNOWN]
    return np.asarray(codes, dtype=np.int64), list(names)


def keep_commonest(codes: IntArray, names: list[str]) -> tuple[IntArray, list[str]]:
    """Return codes with the commonest values only, the rest taken together."""
    if len(names) <= MOST_VALUES:
        return codes, names
    counts = np.bincount(codes, minlength=len(names))
    kept = np.sort(np.argsort(-counts, kind="stable")[: MOST_VALUES - 1])
    place = np.full(len(names), len(kept), dtype=np.int64)
    place[kept] = np.arange(len(kept))
    return place[codes], [*(names[code] for code in kept.tolist()), OTHERS]


def plain_column(column: pa.ChunkedArray) -> pa.Array:
    """Return a column of numbers, truth values or texts; whatever else it holds is written out."""
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks else pa.array([], array.type)
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    is_plain = any(
        test(array.type)
        for test in (
            pa.types.is_floating,
            pa.types.is_integer,
            pa.types.is_boolean,
            pa.types.is_string,
        )
    )
    return (
        array
        if is_plain
        else pa.array(
            [None if value is None else str(value) for value in array.to_pylist()], pa.string()
        )
    )
