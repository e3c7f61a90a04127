"""How well similarity to a phrase tells failures from other samples: Clarify's Error Score, exact, with its null."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray, FloatArray, IntArray
from weakspot.core.errors import InputError
from weakspot.core.group_tests import deal_anew

BLOCK_VALUES = 1 << 18
PRODUCT_VALUES = 1 << 24
SHUFFLES_AT_ONCE = 64
BITS_OF_TWO = 0x40000000
BITS_OF_INFINITY = 0x7F800000
NOT_FINITE = "A similarity is not a finite number."
LEAVE_OUT = "Leave out samples and phrases without an embedding."
Piece = TypeVar("Piece")
Made = TypeVar("Made")


@dataclass(frozen=True, kw_only=True, eq=False)
class ErrorScores:
    """How well each of m phrases tells failures from other samples.

    Args:
        score: [m], 0 (no better than guessing) to 1 (all failures and only failures are above the threshold).
        threshold: [m], midway between neighbouring similarities; infinite where no threshold is better than guessing. A sample is
            meant by the phrase when its similarity is at least this. Of equally good thresholds the highest is taken.
    """

    score: DoubleArray
    threshold: DoubleArray


def error_scores(similarities: FloatArray, failed: BoolArray) -> ErrorScores:
    """Return exact Error Scores and best thresholds.

    Args:
        similarities: of phrases and samples [m, n]; finite.
        failed: which samples failed [n]; if all or none did, every score is 0.

    >>> found = error_scores(np.array([[0.1, 0.2, 0.3, 0.4]], dtype=np.float32), np.array([False, False, True, True]))
    >>> found.score.tolist(), found.threshold.round(2).tolist()
    ([1.0], [0.25])
    """
    values = _check(similarities, failed)
    n_failed = int(failed.sum())
    if n_failed in (0, len(failed)):
        return ErrorScores(score=np.zeros(len(values)), threshold=np.full(len(values), np.inf))
    size = max(1, BLOCK_VALUES // max(values.shape[1], 1))
    blocks = [values[start : start + size] for start in range(0, len(values), size)]
    parts = _in_threads(lambda block: _block_scores(block, failed, n_failed), blocks)
    return ErrorScores(
        score=np.concatenate([np.zeros(0), *(score for score, _ in parts)]),
        threshold=np.concatenate([np.zeros(0), *(threshold for _, threshold in parts)]),
    )


def phrase_scores(phrases: FloatArray, embeddings: FloatArray, failed: BoolArray) -> ErrorScores:
    """Return exact Error Scores of phrases by the scalar product of their embeddings; memory does not grow with their number.

    Args:
        phrases: unit vectors of phrases [m, d].
        embeddings: unit vectors of samples [n, d].
        failed: which samples failed [n].
    """
    transposed = np.asarray(embeddings, dtype=np.float32).T
    size = max(1, PRODUCT_VALUES // max(len(embeddings), 1))
    # One piece of memory serves every product: fresh memory costs more than the scores.
    buffer = np.empty((min(size, len(phrases)), len(embeddings)), dtype=np.float32)
    parts = []
    for start in range(0, len(phrases), size):
        piece = np.asarray(phrases[start : start + size], dtype=np.float32)
        parts.append(error_scores(np.matmul(piece, transposed, out=buffer[: len(piece)]), failed))
    return ErrorScores(
        score=np.concatenate([np.zeros(0), *(part.score for part in parts)]),
        threshold=np.concatenate([np.zeros(0), *(part.threshold for part in parts)]),
    )


def score_at(similarities: AnyArray, failed: BoolArray, threshold: float) -> float:
    """Return the score of a threshold that was chosen elsewhere; negative if other samples are above it more often than failures.

    >>> score_at(np.array([0.1, 0.2, 0.3, 0.4]), np.array([False, True, True, True]), 0.25).__round__(3)
    0.667
    """
    inside = np.asarray(similarities) >= threshold
    if failed.all() or not failed.any():
        return 0.0
    return float(inside[failed].mean() - inside[~failed].mean())


def error_score_null(
    similarities: FloatArray,
    failed: BoolArray,
    *,
    n_permutations: int,
    generator: np.random.Generator,
    groups: IntArray | None = None,
) -> tuple[DoubleArray, DoubleArray]:
    """Return how often shuffled predictions score as well as each phrase [m]: with that phrase, and with the best of all phrases.

    The second is what to read when the phrase was picked out of the m. The best threshold is chosen again for every shuffle.
    Every phrase's samples are sorted once; a shuffle costs one pass. The observed predictions count as one of the shuffles, so no
    p-value is zero and each keeps its level.

    Args:
        similarities: of phrases and samples [m, n]; finite.
        failed: which samples failed [n].
        n_permutations: number of shuffles.
        generator: what shuffles.
        groups: number of the group of every sample [n], failures of which are dealt out together; None: each is its own.
    """
    values = _check(similarities, failed)
    if not np.isfinite(values).all():
        raise InputError(NOT_FINITE, fix=LEAVE_OUT)
    if n_permutations < 1:
        raise InputError("A null distribution needs at least one shuffle.", given=n_permutations)
    predictions = (
        [failed, *(generator.permutation(failed) for _ in range(n_permutations))]
        if groups is None
        else [failed, *deal_anew(failed, groups, n_permutations, generator)]
    )
    shuffles = [
        np.stack(predictions[start : start + SHUFFLES_AT_ONCE], axis=1).astype(np.uint8)
        for start in range(0, len(predictions), SHUFFLES_AT_ONCE)
    ]
    sums = _in_threads(lambda row: _shuffled_sums(row, shuffles, int(failed.sum())), list(values))
    found = np.stack(sums) if sums else np.zeros((0, 1 + n_permutations), dtype=np.int64)
    best = found.max(axis=0, initial=0)
    single, family = (np.mean(reached >= found[:, :1], axis=1) for reached in (found, best))
    return np.asarray(single, dtype=np.float64), np.asarray(family, dtype=np.float64)


def _check(similarities: FloatArray, failed: BoolArray) -> FloatArray:
    values = np.ascontiguousarray(similarities, dtype=np.float32)
    if values.ndim != 2 or failed.shape != values.shape[1:]:  # noqa: PLR2004 - phrases and samples
        raise InputError(
            "Similarities must be [phrases, samples], with one prediction a sample.",
            given=(values.shape, failed.shape),
        )
    return values


def _block_scores(
    block: FloatArray, failed: BoolArray, n_failed: int
) -> tuple[DoubleArray, DoubleArray]:
    from weakspot.discover import error_score_kernels

    keys: AnyArray = np.empty(block.shape, dtype=np.int32)
    largest = error_score_kernels.pack(block.view(np.int32), failed.astype(np.int32), keys)
    if largest >= BITS_OF_INFINITY:
        raise InputError(NOT_FINITE, fix=LEAVE_OUT)
    if largest >= BITS_OF_TWO:
        keys = np.empty(block.shape, dtype=np.int64)
        error_score_kernels.pack(block.view(np.int32), failed.astype(np.int64), keys)
    keys.sort(axis=1)
    sums = np.empty(len(block), dtype=np.int64)
    neighbours = np.empty((len(block), 2), dtype=np.int64)
    error_score_kernels.best_cuts(keys, n_failed, sums, neighbours)
    bits = np.abs(neighbours).astype(np.int32)
    edges = np.copysign(bits.view(np.float32).astype(np.float64), neighbours)
    threshold = np.where(sums > 0, edges.mean(axis=1), np.inf)
    return sums / (n_failed * (len(failed) - n_failed)), threshold


def _shuffled_sums(row: FloatArray, shuffles: Sequence[AnyArray], n_failed: int) -> IntArray:
    from weakspot.discover import error_score_kernels

    order = np.argsort(-row, kind="stable")
    ranked = row[order]
    is_end = np.append(ranked[:-1] > ranked[1:], False)[: len(row)]
    kind = np.int32 if len(row) * n_failed <= np.iinfo(np.int32).max else np.int64
    best = [np.zeros(shuffled.shape[1], dtype=kind) for shuffled in shuffles]
    for found, shuffled in zip(best, shuffles, strict=True):
        error_score_kernels.shuffled_sums(order, is_end, shuffled, n_failed, found)
    return np.concatenate(best).astype(np.int64)


def _in_threads(function: Callable[[Piece], Made], pieces: Sequence[Piece]) -> list[Made]:
    n_threads = min(len(pieces), os.cpu_count() or 1)
    if n_threads <= 1:
        return [function(piece) for piece in pieces]
    with ThreadPoolExecutor(n_threads) as threads:
        return list(threads.map(function, pieces))
