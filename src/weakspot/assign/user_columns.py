"""The user's own metadata columns as attributes: which of them can be cut by, and numbers in bins."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weakspot.assign.bins import binned, cut_points
from weakspot.assign.columns import AssignedColumn, LeftOut
from weakspot.core.arrays import DoubleArray, IntArray
from weakspot.core.attributes import Attribute, AttributeValue
from weakspot.core.dataset import Dataset
from weakspot.core.errors import ConfigError

MOST_VALUES = 50
MOST_NUMBERS = 20


def user_columns(
    dataset: Dataset, reference_rows: IntArray, wanted: Sequence[str] = ()
) -> Iterator[AssignedColumn | LeftOut]:
    """Yield each of the user's columns as an attribute, or why it is none.

    Args:
        dataset: with its columns.
        reference_rows: where the cut points of numbers are measured.
        wanted: the columns meant; empty for all.

    Raises:
        ConfigError: if a column that is asked for is not there.
    """
    unknown = [name for name in wanted if name not in dataset.metadata_names]
    if unknown:
        raise ConfigError(
            "There are no such metadata columns to cut by.",
            where="[attributes] columns",
            given=unknown,
            fix=f"Choose from {list(dataset.metadata_names)}.",
        )
    for name in wanted or dataset.metadata_names:
        yield _user_column(name, dataset.metadata(name), reference_rows)


def _user_column(
    name: str, column: pa.ChunkedArray, reference_rows: IntArray
) -> AssignedColumn | LeftOut:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if not (
        is_number
        or pa.types.is_boolean(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
    ):
        return LeftOut(name=name, why=f"its values are neither words nor numbers but {kind}")
    if pa.types.is_dictionary(column.type):
        column = column.cast(kind)
    known = _without_nan(column) if pa.types.is_floating(kind) else column
    n_known = len(known) - known.null_count
    n_different = int(pc.count_distinct(known, mode="only_valid").as_py())
    if n_different < 2:  # noqa: PLR2004 - two values to tell apart
        return LeftOut(
            name=name, why="it has the same value everywhere" if n_different else "it is empty"
        )
    if n_different == n_known and n_known > MOST_NUMBERS and not pa.types.is_floating(kind):
        return LeftOut(name=name, why="it has another value for every sample")
    if is_number and n_different > MOST_NUMBERS:
        return _number_column(name, known, reference_rows)
    if n_different > MOST_VALUES:
        return LeftOut(
            name=name, why=f"it has {n_different} different values, more than {MOST_VALUES}"
        )
    return AssignedColumn(attribute=_as_it_is(name, known), column=None)


def _without_nan(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.if_else(pc.is_finite(column), column, pa.scalar(None, column.type))


def _as_it_is(name: str, column: pa.ChunkedArray) -> Attribute:
    counted = sorted(
        (
            (entry["values"], entry["counts"])
            for entry in pc.value_counts(column).to_pylist()
            if entry["values"] is not None
        ),
        key=lambda item: (-item[1], str(item[0])),
    )
    return Attribute(
        name=name,
        column=name,
        source="metadata",
        values=tuple(
            AttributeValue(value=str(value), share=round(count / len(column), 6))
            for value, count in counted
        ),
        missing_share=round(column.null_count / len(column), 6),
    )


def _number_column(
    name: str, column: pa.ChunkedArray, reference_rows: IntArray
) -> AssignedColumn | LeftOut:
    numbers: DoubleArray = np.asarray(
        pc.cast(column, pa.float64(), safe=False).fill_null(float("nan")).combine_chunks()
    )
    cuts = cut_points(numbers, reference_rows)
    low, high = (f"{cut:.4g}" for cut in cuts or (0.0, 0.0))
    middle = f"{name} {low}" if low == high else f"{name} from {low} to {high}"
    bins = binned(numbers, reference_rows, (f"{name} below {low}", middle, f"{name} above {high}"))
    if bins is None:
        return LeftOut(name=name, why="nearly all samples have the same number")
    attribute = Attribute(
        name=name,
        column=name,
        source="metadata",
        values=bins.values,
        cut_points=bins.cut_points,
        missing_share=bins.missing_share,
    )
    return AssignedColumn(attribute=attribute, column=bins.column)
