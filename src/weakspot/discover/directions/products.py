"""Compiled products of embeddings, and how functions are compiled."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numpy as np

from weakspot.core.arrays import FloatArray
from weakspot.core.compiled import kernel

Given = ParamSpec("Given")
Returned = TypeVar("Returned")


def compiled(function: Callable[Given, Returned]) -> Callable[Given, Returned]:
    """Compile a function on its first call, keep the machine code on disk, and let other threads run meanwhile."""
    return kernel()(function)


def _compiled_sums(function: Callable[Given, Returned]) -> Callable[Given, Returned]:
    """Compile a function whose sums may be taken in another order than written, which lets them use wide registers."""
    return kernel(fastmath={"reassoc", "contract", "nsz"})(function)


@_compiled_sums
def _four_products(
    embeddings: FloatArray, row: int, below: int, other: int, beside: int
) -> tuple[float, float, float, float]:
    upper, lower, left, right = (
        embeddings[row],
        embeddings[below],
        embeddings[other],
        embeddings[beside],
    )
    sums = np.float32(0.0), np.float32(0.0), np.float32(0.0), np.float32(0.0)
    first, second, third, fourth = sums
    for place in range(len(upper)):
        first += upper[place] * left[place]
        second += upper[place] * right[place]
        third += lower[place] * left[place]
        fourth += lower[place] * right[place]
    return float(first), float(second), float(third), float(fourth)


@compiled
def gram_of(embeddings: FloatArray) -> FloatArray:
    """Return all inner products of embeddings [n, d]; small ones are faster here than in a library that starts threads for them."""
    last, found = len(embeddings) - 1, np.empty((len(embeddings), len(embeddings)), np.float32)
    for row in range(0, last + 1, 2):
        below = min(row + 1, last)
        for other in range(row, last + 1, 2):
            beside = min(other + 1, last)
            first, second, third, fourth = _four_products(embeddings, row, below, other, beside)
            found[row, other] = found[other, row] = first
            found[row, beside] = found[beside, row] = second
            found[below, other] = found[other, below] = third
            found[below, beside] = found[beside, below] = fourth
    return found


@_compiled_sums
def _product(left: FloatArray, right: FloatArray) -> float:
    found = np.float32(0.0)
    for place in range(len(left)):
        found += left[place] * right[place]
    return float(found)


@compiled
def scores_along(rows: FloatArray, direction: FloatArray) -> FloatArray:
    """Return the products of rows [n, d] with a direction [d]."""
    found = np.empty(len(rows), np.float32)
    for row in range(len(rows)):
        found[row] = _product(rows[row], direction)
    return found


@compiled
def weighted_sum(rows: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the sum [d] of rows [n, d] times their weights [n]."""
    found = np.zeros(rows.shape[1], np.float32)
    for row in range(len(rows)):
        for place in range(rows.shape[1]):
            found[place] += weights[row] * rows[row, place]
    return found
