"""What assignment gives: columns of attributes or reasons why there are none, numbers in bins, the user's own columns."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weakspot.core.arrays import AnyArray, DoubleArray, IntArray
from weakspot.core.dataset import Dataset
from weakspot.core.errors import ConfigError
from weakspot.core.samples import Attribute, AttributeSource, AttributeValue

SUFFIXES: dict[AttributeSource, str] = {
    "built-in": "assigned",
    "proposed": "assigned",
    "property": "measured",
    "metadata": "bins",
    "given": "given",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class AssignedColumn:
    """An attribute and its column.

    Args:
        attribute: what it is.
        column: one value a sample, or None when the data set has the column already.
    """

    attribute: Attribute
    column: pa.Array | None


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """An attribute that there is no column for, and why."""

    name: str
    why: str

    @property
    def sentence(self) -> str:
        """Return it as people read it."""
        return f"The attribute {self.name!r} is left out: {self.why}."


def with_free_names(
    found: Iterable[AssignedColumn], taken: Iterable[str]
) -> tuple[AssignedColumn, ...]:
    """Return the columns under names that the data set does not use yet; nothing of the user's is ever replaced.

    >>> from weakspot.core.samples import Attribute
    >>> seen = Attribute(name="colour", column="colour", source="built-in", values=())
    >>> with_free_names([AssignedColumn(attribute=seen, column=pa.array([]))], ["colour"])[0].attribute.column
    'colour (assigned)'
    """
    used = set(taken)
    free: list[AssignedColumn] = []
    for each in found:
        free.append(
            each if each.column is None else replace(each, attribute=_rename(each.attribute, used))
        )
        used.add(free[-1].attribute.column)
    return tuple(free)


def _rename(attribute: Attribute, used: set[str]) -> Attribute:
    name = attribute.column
    wanted, number = name, 1
    while wanted in used:
        suffix = SUFFIXES[attribute.source]
        wanted = f"{name} ({suffix})" if number == 1 else f"{name} ({suffix} {number})"
        number += 1
    return attribute.model_copy(update={"column": wanted})


LOW_SHARE, HIGH_SHARE = 0.2, 0.8
N_BINS = 3


def binned(
    name: str,
    source: AttributeSource,
    numbers: DoubleArray,
    reference_rows: IntArray,
    words: tuple[str, str, str],
) -> AssignedColumn | None:
    """Return numbers [n] as an attribute that is low, middle or high, or None when all of them fall into one bin.

    Args:
        name: of the attribute.
        source: of the numbers.
        numbers: NaN where there is none.
        reference_rows: where the cut points are measured; all rows if none of these has a number.
        words: what low, middle and high are called.
    """
    cuts = cut_points(numbers, reference_rows)
    if cuts is None:
        return None
    low, high = cuts
    codes = np.where(numbers < low, 0, np.where(numbers > high, 2, 1))
    known = np.isfinite(numbers)
    counts = np.bincount(codes[known], minlength=N_BINS)
    if (counts > 0).sum() < 2:  # noqa: PLR2004 - two bins to tell apart
        return None
    ends = ((None, low), (low, high), (high, None))
    values = tuple(
        AttributeValue(
            value=word,
            low=ends[code][0],
            high=ends[code][1],
            share=round(float(counts[code]) / len(numbers), 6),
        )
        for code, word in enumerate(words)
        if counts[code]
    )
    attribute = Attribute(
        name=name,
        column=name,
        source=source,
        values=values,
        cut_points=cuts,
        missing_share=round(1.0 - float(known.mean()), 6),
    )
    column = words_column(np.where(known, codes, -1), words)
    return AssignedColumn(attribute=attribute, column=column)


def cut_points(numbers: DoubleArray, reference_rows: IntArray) -> tuple[float, float] | None:
    """Return the lower and the upper cut, or None when no number is known."""
    for some in (numbers[reference_rows], numbers):
        known = some[np.isfinite(some)]
        if len(known):
            low, high = np.quantile(known, [LOW_SHARE, HIGH_SHARE])
            return float(low), float(high)
    return None


def words_column(codes: AnyArray, words: tuple[str, ...]) -> pa.Array:
    """Return codes [n] as a column of words, null where a code is negative."""
    return pa.DictionaryArray.from_arrays(
        pa.array(codes.astype(np.int32), mask=codes < 0), pa.array(list(words), pa.string())
    ).cast(pa.string())


MAX_VALUES = 50
MAX_NUMBERS = 20


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
    known = column
    if pa.types.is_floating(kind):
        known = pc.if_else(pc.is_finite(column), column, pa.scalar(None, column.type))
    n_known = len(known) - known.null_count
    n_different = int(pc.count_distinct(known, mode="only_valid").as_py())
    if n_different < 2:  # noqa: PLR2004 - two values to tell apart
        return LeftOut(
            name=name, why="it has the same value everywhere" if n_different else "it is empty"
        )
    if n_different == n_known and n_known > MAX_NUMBERS and not pa.types.is_floating(kind):
        return LeftOut(name=name, why="it has another value for every sample")
    if is_number and n_different > MAX_NUMBERS:
        return _number_column(name, known, reference_rows)
    if n_different > MAX_VALUES:
        return LeftOut(
            name=name, why=f"it has {n_different} different values, more than {MAX_VALUES}"
        )
    return AssignedColumn(attribute=_as_it_is(name, known), column=None)


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
    words = (f"{name} below {low}", middle, f"{name} above {high}")
    bins = binned(name, "metadata", numbers, reference_rows, words)
    return bins or LeftOut(name=name, why="nearly all samples have the same number")
