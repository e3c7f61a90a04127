"""Stage 2: the pictures of a project to vectors; only those that no earlier run has embedded cost time."""

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from weakspot.app.flushing import FlushClock, FlushPolicy
from weakspot.app.picture_requests import requests_for, rows_to_compute
from weakspot.core.arrays import AnyArray, FloatArray, IntArray
from weakspot.core.dataset import Dataset
from weakspot.core.errors import NotEnoughDataError
from weakspot.core.roles import Embedder, Engine
from weakspot.core.run import Progress, no_progress
from weakspot.core.samples import VectorSpace
from weakspot.embed.encode import UnreadablePicture, count_reasons, encode_pictures
from weakspot.store.names import packed_hashes
from weakspot.store.project import ProjectStore
from weakspot.store.vectors import VectorCache


class _Aligned(Protocol):
    @property
    def vectors(self) -> FloatArray: ...


@runtime_checkable
class KnowsVectors(Protocol):
    """An embedder that already has a vector for every sample and looks at no picture."""

    def vectors_for(self, dataset: Dataset) -> _Aligned:
        """Return the vectors in the order of the data set."""


@dataclass(frozen=True, kw_only=True, eq=False)
class EmbedSettings:
    """How pictures are embedded.

    Args:
        batch_size: pictures per call of the encoder.
        flush: when finished vectors are written.
    """

    batch_size: int = 8
    flush: FlushPolicy = field(default_factory=FlushPolicy)


@dataclass(frozen=True, kw_only=True, eq=False)
class Embedded:
    """The vectors of a data set, and what was done for them.

    Args:
        space: vectors in the order of the data set; rows of NaN have none.
        n_new: pictures that went through the encoder now.
        n_vectors: samples that have a vector.
        unreadable: pictures that could not be read now; they are tried again next time.
    """

    space: VectorSpace
    n_new: int
    n_vectors: int
    unreadable: tuple[UnreadablePicture, ...] = ()


def embed(
    project: ProjectStore,
    dataset: Dataset,
    embedder: Embedder,
    *,
    engine: Engine,
    progress: Progress = no_progress,
    settings: EmbedSettings | None = None,
) -> Embedded:
    """Return vectors for every sample; killed at any instant, the next call goes on where this one was.

    Raises:
        NotEnoughDataError: if not one sample has a vector in the end, with the reasons.
    """
    if isinstance(embedder, KnowsVectors):
        return _given(embedder, embedder.encoder_id, embedder.has_text, dataset)
    keys = packed_hashes(dataset.table.column("content_hash"))
    cache = project.vectors(embedder.encoder_id)
    ready = cache.matrix(keys)
    if ready is not None and ready.n_missing == 0:
        return _embedded(embedder, ready.values, n_vectors=len(keys))
    with project.writing():
        work = _EmbedWork(dataset=dataset, keys=keys, cache=cache)
        unreadable = work.run(embedder, engine, progress, settings or EmbedSettings())
        if ready is None or work.n_new:
            cache.compact()
            ready = cache.materialise(keys, width=embedder.dimension)
    n_vectors = len(keys) - ready.n_missing
    if not n_vectors:
        raise _nothing_embedded(len(keys), unreadable)
    return _embedded(embedder, ready.values, n_vectors=n_vectors, n_new=work.n_new, unreadable=unreadable)


class _EmbedWork:
    """One pass over the pictures that have no vector yet."""

    def __init__(self, *, dataset: Dataset, keys: AnyArray, cache: VectorCache) -> None:
        self.n_new = 0
        self._dataset = dataset
        self._keys = keys
        self._cache = cache
        self._positions: list[IntArray] = []
        self._vectors: list[FloatArray] = []

    def run(self, embedder: Embedder, engine: Engine, progress: Progress, settings: EmbedSettings) -> tuple[UnreadablePicture, ...]:
        rows = rows_to_compute(self._dataset, self._keys, self._cache.missing(self._keys))
        unreadable: list[UnreadablePicture] = []
        clock = FlushClock(settings.flush)
        progress(0, len(rows))
        for batch in encode_pictures(requests_for(self._dataset, rows), embedder, engine=engine, batch_size=settings.batch_size):
            self._positions.append(batch.positions)
            self._vectors.append(batch.vectors)
            unreadable.extend(batch.unreadable)
            self.n_new += len(batch.positions)
            if clock.is_due(sum(len(part) for part in self._positions)):
                self._flush()
                clock.flushed()
            progress(self.n_new + len(unreadable), len(rows))
        self._flush()
        return tuple(unreadable)

    def _flush(self) -> None:
        if self._positions:
            self._cache.append(self._keys[np.concatenate(self._positions)], np.concatenate(self._vectors))
        self._positions, self._vectors = [], []


def _given(embedder: KnowsVectors, encoder_id: str, has_text: bool, dataset: Dataset) -> Embedded:  # noqa: FBT001
    vectors = embedder.vectors_for(dataset).vectors
    n_vectors = int(np.isfinite(vectors[:, 0]).sum())
    if not n_vectors:
        raise _nothing_embedded(len(dataset), ())
    return Embedded(space=VectorSpace(encoder_id=encoder_id, vectors=vectors, has_text=has_text), n_new=0, n_vectors=n_vectors)


def _embedded(
    embedder: Embedder, vectors: FloatArray, *, n_vectors: int, n_new: int = 0, unreadable: tuple[UnreadablePicture, ...] = ()
) -> Embedded:
    space = VectorSpace(encoder_id=embedder.encoder_id, vectors=vectors, has_text=embedder.has_text)
    return Embedded(space=space, n_new=n_new, n_vectors=n_vectors, unreadable=unreadable)


def _nothing_embedded(n_samples: int, unreadable: tuple[UnreadablePicture, ...]) -> NotEnoughDataError:
    why = count_reasons(unreadable) or "they have no pictures"
    return NotEnoughDataError(
        f"Not one of {n_samples} samples could be embedded: {why}.",
        fix="Ingest again if files were moved; give vectors if there are no pictures.",
    )
