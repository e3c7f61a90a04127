"""The compiled loops over embeddings; imported on first use, because that loads the compiler."""

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray, FloatArray, IntArray
from weakspot.core.compiled import kernel

SHORTEST, LONGEST = np.float32(1e-30), np.float32(1e30)
MAX_CODE = 127.0


@kernel(fastmath={"reassoc", "contract", "nsz"})
def _product_and_square(row: FloatArray, other: FloatArray) -> tuple[np.float32, np.float32]:
    product, square = np.float32(0.0), np.float32(0.0)
    for place in range(len(other)):
        value = row[place]
        product += value * other[place]
        square += value * value
    return product, square


@kernel(fastmath={"reassoc", "contract", "nsz"})
def _product(row: AnyArray, other: FloatArray) -> np.float32:
    product = np.float32(0.0)
    for place in range(len(other)):
        product += np.float32(row[place]) * other[place]
    return product


@kernel()
def _has_embedding(row: FloatArray) -> bool:
    n_finite = 0
    for value in row:
        n_finite += np.isfinite(value)
    return n_finite == len(row)


@kernel()
def rough_scores(
    values: FloatArray,
    first: int,
    unit: FloatArray,
    allowed: BoolArray,
    rounding: float,
    scores: FloatArray,
    slack: FloatArray,
) -> None:
    """Write cosines of rows with queries in single precision, and by how much they can be off.

    Args:
        values: [n, w]; embeddings begin at column `first`.
        first: that column.
        unit: queries [m, d] of length one.
        allowed: which rows are meant [n].
        rounding: by how much a score of ordinary numbers can be off.
        scores: [m, n], written; NaN where a row is not meant or has no embedding.
        slack: [n], written; infinite where lengths are beyond what single precision holds.
    """
    for row in range(len(values)):
        slack[row] = rounding
        if not allowed[row]:
            scores[:, row] = np.nan
            continue
        embedding = values[row, first:]
        product, square = _product_and_square(embedding, unit[0])
        if not SHORTEST < square < LONGEST:
            slack[row] = np.inf
            scores[:, row] = 0.0 if _has_embedding(embedding) else np.nan
            continue
        scale = np.float32(1.0) / np.sqrt(np.float32(square))
        scores[0, row] = product * scale
        for query in range(1, len(unit)):
            scores[query, row] = _product(embedding, unit[query]) * scale


@kernel()
def exact_scores(
    values: FloatArray,
    first: int,
    rows: IntArray,
    query: FloatArray,
    length: float,
    scores: DoubleArray,
) -> None:
    """Write cosines of chosen rows with one query; products of single numbers are exact in double, and sums go from left to right.

    Args:
        values: [n, w]; embeddings begin at column `first`.
        first: that column.
        rows: which rows [r].
        query: [d], of any length.
        length: that length.
        scores: [r], written; 0 for an embedding of zeros, NaN for one with a number that is not finite.
    """
    for place in range(len(rows)):
        embedding = values[rows[place], first:]
        product, square = 0.0, 0.0
        for column in range(len(query)):
            value = np.float64(embedding[column])
            product += value * np.float64(query[column])
            square += value * value
        if not np.isfinite(square):
            scores[place] = np.nan
        elif square == 0.0:
            scores[place] = 0.0
        else:
            scores[place] = product / (np.sqrt(square) * length)


@kernel()
def quantise(
    values: FloatArray, first: int, codes: AnyArray, factors: FloatArray, slack: FloatArray
) -> None:
    """Write rows as one byte a number.

    An embedding x becomes s c + r with whole numbers c from -127 to 127. Its cosine with a unit vector q is (s / |x|) (c q) plus
    something no larger than |r| / |x|.

    Args:
        values: [n, w]; embeddings begin at column `first`.
        first: that column.
        codes: c [n, d], written.
        factors: s / |x| [n], written; 0 for an embedding of zeros, NaN for a row without an embedding.
        slack: |r| / |x| [n], written.
    """
    for row in range(len(values)):
        embedding = values[row, first:]
        largest, square = 0.0, 0.0
        for value in embedding:
            wide = np.float64(value)
            largest = max(largest, abs(wide))
            square += wide * wide
        slack[row] = 0.0
        factors[row] = np.nan if not np.isfinite(square) else 0.0
        if not np.isfinite(square) or square == 0.0:
            codes[row] = 0
            continue
        step, length, rest = largest / MAX_CODE, np.sqrt(square), 0.0
        for place in range(len(embedding)):
            wide = np.float64(embedding[place])
            code = np.rint(wide / step)
            codes[row, place] = np.int8(code)
            rest += (wide - step * code) ** 2
        factors[row] = step / length
        slack[row] = np.sqrt(rest) / length


@kernel()
def rough_code_scores(
    codes: AnyArray, factors: FloatArray, unit: FloatArray, allowed: BoolArray, scores: FloatArray
) -> None:
    """Write cosines of rows with queries from their codes.

    Args:
        codes: from `quantise` [n, d].
        factors: from `quantise` [n].
        unit: queries [m, d] of length one.
        allowed: which rows are meant [n].
        scores: [m, n], written; NaN where a row is not meant or has no embedding.
    """
    for row in range(len(codes)):
        if not allowed[row]:
            scores[:, row] = np.nan
            continue
        for query in range(len(unit)):
            scores[query, row] = _product(codes[row], unit[query]) * factors[row]
