"""Adding pool samples that are far from everything trained on: greedy k-centre."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import FloatArray, IntArray
from weakspot.core.errors import NotEnoughDataError
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.core.training_sets import RepairMaterial, TrainingSelection
from weakspot.repair.methods.pool.added import PoolScope, with_added
from weakspot.repair.methods.pool.candidates import by_id, open_pool

SPACES = ("features", "clip")
CHUNK_ROWS = 2_048
BLOCK_ROWS = 256


@dataclass(frozen=True, kw_only=True)
class CoresetRepairer(PoolScope):
    """Adds, one by one, the sample farthest from all training samples and all samples added before.

    After Sener and Savarese, *Active Learning for Convolutional Neural Networks: A Core-Set Approach* (2018), without their
    robust refinement. Distances are measured in the classifier's own features, else in the joint space.

    >>> from weakspot.testing.examples import repair_example
    >>> slices, material = repair_example()
    >>> CoresetRepairer().select(slices, material).note
    'Pool samples added to the 404 training samples: 5, chosen as the farthest from what is trained on in the whole pool.'
    """

    def select(self, slices: Sequence[FailureSlice], material: RepairMaterial) -> TrainingSelection:
        """Return training rows and the pool rows that cover the pool best; the seed has no influence."""
        pool = open_pool(material, "pool-coreset")
        space = next((name for name in SPACES if name in pool.samples.spaces), None)
        if space is None:
            raise NotEnoughDataError(
                "The strategy pool-coreset needs embeddings.",
                where="[repair]",
                fix="Run weakspot embed.",
            )
        rows, embeddings = _known(pool.samples, pool.candidates(slices, self.within), space)
        _, centres = _known(material.training, by_id(material.training, material.labelled), space)
        chosen = rows[farthest_first(embeddings, centres, pool.budget)]
        return with_added(material, chosen, f"as the farthest from what is trained on {self.place}")


def _known(samples: SampleSet, rows: IntArray, space: str) -> tuple[IntArray, FloatArray]:
    embeddings = samples.embeddings(space, rows)
    is_known = np.isfinite(embeddings).all(axis=1)
    return rows[is_known], embeddings[is_known]


def farthest_first(embeddings: FloatArray, centres: FloatArray, count: int) -> IntArray:
    """Return positions in embeddings [n, d], each the farthest from the centres [m, d] and from those before it.

    Distances only shrink while centres are added, so an old distance is an upper bound. Blocks of samples are brought up to date
    only while their bound is the largest; the answer is that of the plain algorithm. Without centres the mean is the first.
    """
    middle = (
        (centres if len(centres) else embeddings).mean(axis=0, dtype=np.float64).astype(np.float32)
        if len(embeddings)
        else 0.0
    )
    search = _Search(
        embeddings - middle,
        centres - middle if len(centres) else np.zeros((1, embeddings.shape[1]), dtype=np.float32),
    )
    return np.array([search.next() for _ in range(min(count, len(embeddings)))], dtype=np.int64)


class _Search:
    """Samples in blocks of falling distance, with the number of added centres that each block has heard of."""

    def __init__(self, embeddings: FloatArray, centres: FloatArray) -> None:
        first = np.full(len(embeddings), np.inf, dtype=np.float32)
        squares = np.einsum("nd,nd->n", embeddings, embeddings)
        for start in range(0, len(centres), CHUNK_ROWS):
            part = centres[start : start + CHUNK_ROWS]
            for begin in range(0, len(embeddings), CHUNK_ROWS):
                piece = slice(begin, begin + CHUNK_ROWS)
                _approach(first[piece], embeddings[piece], squares[piece], part)
        self._order = np.argsort(-first, kind="stable")
        self._embeddings, self._squares, self._distances = (
            embeddings[self._order],
            squares[self._order],
            first[self._order],
        )
        self._starts = np.arange(0, len(embeddings), BLOCK_ROWS)
        self._bounds = (
            np.maximum.reduceat(self._distances, self._starts) if len(embeddings) else first
        )
        self._heard = np.zeros(len(self._starts), dtype=np.int64)
        self._added: list[int] = []

    def next(self) -> int:
        """Return the farthest sample and make it a centre."""
        while self._heard[block := int(np.argmax(self._bounds))] < len(self._added):
            self._refresh(block)
        begin = int(self._starts[block])
        place = begin + int(np.argmax(self._distances[begin : begin + BLOCK_ROWS]))
        self._added.append(place)
        self._distances[place] = -1.0
        self._bounds[block] = self._distances[begin : begin + BLOCK_ROWS].max()
        return int(self._order[place])

    def _refresh(self, block: int) -> None:
        piece = slice(int(self._starts[block]), int(self._starts[block]) + BLOCK_ROWS)
        fresh = self._embeddings[self._added[int(self._heard[block]) :]]
        _approach(self._distances[piece], self._embeddings[piece], self._squares[piece], fresh)
        self._heard[block] = len(self._added)
        self._bounds[block] = self._distances[piece].max()


def _approach(
    distances: FloatArray, embeddings: FloatArray, squares: FloatArray, centres: FloatArray
) -> None:
    """Lower squared distances [n] in place to those from further centres [m, d]; minus one, for what was chosen, stays."""
    lengths = np.einsum("md,md->m", centres, centres)
    nearest = (lengths - 2.0 * (embeddings @ centres.T)).min(axis=1) + squares
    np.minimum(distances, np.maximum(nearest, 0.0), out=distances)
