"""Scalar products of all embeddings of a class with two phrases in one reading of them: memory, not arithmetic, is what costs.

Imported on first use, because that loads the compiler.
"""

import numpy as np

from weakspot.core.arrays import FloatArray
from weakspot.core.compiled import kernel


@kernel(fastmath=True)
def products(
    embeddings: FloatArray, first: FloatArray, second: FloatArray, found: FloatArray
) -> None:
    """Write the products of embeddings [n, d] with two others [d] into `found` [2, n]; each row's depend on that row alone."""
    for row in range(embeddings.shape[0]):
        one, two = np.float32(0.0), np.float32(0.0)
        for place in range(embeddings.shape[1]):
            value = embeddings[row, place]
            one += value * first[place]
            two += value * second[place]
        found[0, row] = one
        found[1, row] = two
