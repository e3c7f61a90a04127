"""Numbers to words: three bins, cut where the reference samples have their lower and upper fifth."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import AnyArray, DoubleArray, IntArray
from weakspot.core.attributes import AttributeValue

LOW_SHARE, HIGH_SHARE = 0.2, 0.8
N_BINS = 3


@dataclass(frozen=True, kw_only=True, eq=False)
class Binned:
    """A column of numbers in words.

    Args:
        column: one word a sample, null where there is no number.
        values: the bins that occur, with their ends and shares.
        cut_points: lower and upper cut.
        missing_share: share of samples without a number.
    """

    column: pa.Array
    values: tuple[AttributeValue, ...]
    cut_points: tuple[float, float]
    missing_share: float


def binned(
    numbers: DoubleArray, reference_rows: IntArray, words: tuple[str, str, str]
) -> Binned | None:
    """Return numbers [n] as low, middle and high, or None when all of them fall into one bin.

    Args:
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
    return Binned(
        column=words_column(np.where(known, codes, -1), words),
        values=values,
        cut_points=cuts,
        missing_share=round(1.0 - float(known.mean()), 6),
    )


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
