"""The compiled loops behind Error Scores; imported on first use, because that loads the compiler."""

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, ByteArray, IntArray
from weakspot.core.compiled import kernel


@kernel()
def pack(bits: AnyArray, failed: AnyArray, keys: AnyArray) -> int:
    """Write keys that sort like the similarities, with the prediction in the lowest bit; return the bits of the largest magnitude.

    The bits of a floating-point number, read as a whole number with its sign in front, sort like the number; both zeros become 0.

    Args:
        bits: similarities [m, n], read as int32.
        failed: predictions [n], 0 or 1, of the type of the keys.
        keys: [m, n], written. With 32 bits the magnitudes must be below 2, which leaves one bit free; with 64 anything goes.
    """
    largest = np.int32(0)
    for phrase in range(bits.shape[0]):
        for sample in range(bits.shape[1]):
            value = bits[phrase, sample]
            magnitude = value & np.int32(0x7FFFFFFF)
            largest = max(largest, magnitude)
            signed = value if value >= 0 else -magnitude
            keys[phrase, sample] = 2 * signed + failed[sample]
    return int(largest)


@kernel()
def best_cuts(keys: AnyArray, n_failed: int, sums: IntArray, neighbours: IntArray) -> None:
    """Find the best cut of every row of keys [m, n], sorted ascending.

    Args:
        keys: from `pack`, sorted.
        n_failed: failures among the n samples.
        sums: [m], written: the largest sum, 0 if no cut is better than taking none.
        neighbours: [m, 2], written: the lowest value taken and the highest not taken, as whole numbers.
    """
    n_samples = keys.shape[1]
    for phrase in range(keys.shape[0]):
        total, best, place = 0, 0, 0
        for sample in range(n_samples - 1, 0, -1):
            key = keys[phrase, sample]
            total += n_samples * (key & 1) - n_failed
            if total > best and (key >> 1) != (keys[phrase, sample - 1] >> 1):
                best, place = total, sample
        sums[phrase] = best
        neighbours[phrase, 0] = keys[phrase, place] >> 1
        neighbours[phrase, 1] = keys[phrase, max(place - 1, 0)] >> 1


@kernel()
def shuffled_sums(
    order: IntArray, is_end: BoolArray, shuffled: ByteArray, n_failed: int, best: AnyArray
) -> None:
    """Find the largest sum of one phrase for every shuffle of the predictions.

    Args:
        order: samples [n] by similarity, most similar first.
        is_end: [n] whether the next sample is less similar, so that a cut may lie behind this one.
        shuffled: predictions [n, shuffles], 0 or 1.
        n_failed: failures among the n samples, the same in every shuffle.
        best: zeros [shuffles] of a type that holds n times `n_failed`, written.
    """
    n_samples, n_shuffles = shuffled.shape
    total = np.zeros_like(best)
    for place in range(n_samples):
        predictions = shuffled[order[place]]
        for shuffle in range(n_shuffles):
            total[shuffle] += n_samples * predictions[shuffle] - n_failed
        if is_end[place]:
            for shuffle in range(n_shuffles):
                best[shuffle] = max(best[shuffle], total[shuffle])
