"""Pictures through a model, on any engine: reading, decoding and preparing while the model works on the batch before."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
from PIL import Image

from weakspot.core.arrays import AnyArray, FloatArray, IntArray
from weakspot.core.errors import ModelError
from weakspot.core.roles import Embedder, Engine
from weakspot.media.locations import UnreadableLocationError, read_location
from weakspot.media.pictures import UNREADABLE_REASONS, WORKER_LOST, UnreadablePictureError, content_hash, decode_picture

CHANGED = "changed"


@dataclass(frozen=True, kw_only=True)
class PictureRequest:
    """A picture to be put through a model.

    Args:
        position: number by which the caller knows it.
        location: where it is.
        content_hash: what it held when it was ingested; another content is refused. None: whatever is there is taken.
    """

    position: int
    location: str
    content_hash: str | None = None


@dataclass(frozen=True, kw_only=True)
class UnreadablePicture:
    """A picture that could not be read now, although it may have been when it was ingested."""

    position: int
    location: str
    reason: str
    detail: str


@dataclass(frozen=True, kw_only=True, eq=False)
class LoadedPicture:
    """A picture ready for a model.

    Args:
        position: its number.
        array: what `prepare` made of it.
    """

    position: int
    array: AnyArray


Loaded: TypeAlias = LoadedPicture | UnreadablePicture


@dataclass(frozen=True, kw_only=True, eq=False)
class EncodedBatch:
    """Vectors of some pictures.

    Args:
        positions: their numbers [n].
        vectors: [n, d].
        unreadable: pictures met on the way that have no vector.
    """

    positions: IntArray
    vectors: FloatArray
    unreadable: tuple[UnreadablePicture, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class EncodeWork:
    """Requests to vectors, wherever an engine has a worker.

    Args:
        embedder: built again in every worker that is another process.
    """

    embedder: Embedder

    def prepare(self, item: PictureRequest) -> Loaded:
        """Return one picture read, decoded and prepared, or why it cannot be."""
        return load_picture(item, self.embedder.prepare, self.embedder.picture_side)

    def run(self, ready: Sequence[Loaded]) -> EncodedBatch:
        """Return the vectors of those that could be read.

        Raises:
            ModelError: if the embedder gives vectors of another length than it says, or numbers that are not finite.
        """
        loaded, unreadable = sorted_out(ready)
        vectors = np.empty((0, self.embedder.dimension), dtype=np.float32)
        if loaded:
            made = self.embedder.embed_prepared([picture.array for picture in loaded])
            vectors = checked_rows(made, len(loaded), where=self.embedder.encoder_id)
            if vectors.shape[1] != self.embedder.dimension:
                said = f"The embedder gives {vectors.shape[1]} numbers a picture and says {self.embedder.dimension}."
                raise ModelError(said, where=self.embedder.encoder_id)
        return EncodedBatch(positions=positions_of(loaded), vectors=vectors, unreadable=unreadable)


def encode_pictures(
    requests: Iterable[PictureRequest], embedder: Embedder, *, engine: Engine, batch_size: int = 8
) -> Iterator[EncodedBatch]:
    """Yield vectors batch by batch, in the order of requests; unreadable pictures are listed, not raised.

    A batch is so many consecutive requests, whether they can be read or not.

    Raises:
        ModelError: if the embedder gives vectors of another length than it says, or numbers that are not finite.
    """
    build = partial(EncodeWork, embedder=embedder)
    lost = partial(_lost_batch, dimension=embedder.dimension)
    yield from engine.map_batches(build, requests, batch_size=batch_size, lost=lost)


def load_picture(request: PictureRequest, prepare: Callable[[Image.Image], AnyArray], picture_side: int | None) -> Loaded:
    """Return the picture of a request as a model takes it; one that cannot be read is told, not raised."""
    try:
        data = read_location(request.location)
        if request.content_hash is not None and content_hash(data) != request.content_hash:
            return _unreadable(request, CHANGED, "The file holds another picture than when it was ingested; ingest again.")
        picture = decode_picture(data, picture_side=picture_side).picture
    except (UnreadableLocationError, UnreadablePictureError) as error:
        return _unreadable(request, error.reason, error.detail)
    return LoadedPicture(position=request.position, array=prepare(picture))


def sorted_out(ready: Iterable[Loaded]) -> tuple[list[LoadedPicture], tuple[UnreadablePicture, ...]]:
    """Return the pictures of a batch that could be read, and the others."""
    items = list(ready)
    loaded = [item for item in items if isinstance(item, LoadedPicture)]
    return loaded, tuple(item for item in items if isinstance(item, UnreadablePicture))


def positions_of(loaded: Sequence[LoadedPicture]) -> IntArray:
    """Return the numbers of pictures [n]."""
    return np.array([picture.position for picture in loaded], dtype=np.int64)


def lost_picture(request: PictureRequest) -> UnreadablePicture:
    """Return how a picture is told on which workers died again and again."""
    return _unreadable(request, WORKER_LOST, UNREADABLE_REASONS[WORKER_LOST])


def checked_rows(rows: AnyArray, n_rows: int, *, where: str) -> FloatArray:
    """Return what a model gave as float32 [n, d].

    Raises:
        ModelError: if it is not one row of finite numbers a picture.
    """
    values = np.asarray(rows, dtype=np.float32)
    if values.ndim != 2 or len(values) != n_rows:  # noqa: PLR2004 - rows and columns
        raise ModelError(f"The model must give one row for each of {n_rows} pictures.", where=where, given=values.shape)
    if not np.isfinite(values).all():
        raise ModelError("The model gives numbers that are not finite.", where=where, fix="Check its weights and pre-processing.")
    return values


def count_reasons(unreadable: Sequence[UnreadablePicture]) -> str:
    """Return how often each reason occurs, for messages.

    >>> count_reasons([UnreadablePicture(position=0, location="a.jpg", reason="missing-file", detail="")])
    '1 missing-file'
    """
    return ", ".join(f"{count} {reason}" for reason, count in Counter(item.reason for item in unreadable).most_common())


def _unreadable(request: PictureRequest, reason: str, detail: str) -> UnreadablePicture:
    return UnreadablePicture(position=request.position, location=request.location, reason=reason, detail=detail)


def _lost_batch(request: PictureRequest, *, dimension: int) -> EncodedBatch:
    vectors = np.empty((0, dimension), dtype=np.float32)
    return EncodedBatch(positions=positions_of([]), vectors=vectors, unreadable=(lost_picture(request),))
