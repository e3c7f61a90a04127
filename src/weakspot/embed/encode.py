"""Pictures through a model: reading, decoding and preparing in the engine's threads while the model works on the batch before."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from PIL import Image

from weakspot.core.arrays import AnyArray, FloatArray, IntArray
from weakspot.core.errors import ModelError
from weakspot.core.roles import Embedder, Engine
from weakspot.media.locations import UnreadableLocationError, read_location
from weakspot.media.pictures import UnreadablePictureError, content_hash, decode_picture

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
class PreparedBatch:
    """Pictures ready for the model.

    Args:
        positions: their numbers [n].
        prepared: what `prepare` made of them, in the same order.
        unreadable: pictures met on the way that could not be read.
    """

    positions: IntArray
    prepared: list[AnyArray]
    unreadable: tuple[UnreadablePicture, ...]


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
class _Prepared:
    position: int
    array: AnyArray


def encode_pictures(
    requests: Iterable[PictureRequest], embedder: Embedder, *, engine: Engine, batch_size: int = 8
) -> Iterator[EncodedBatch]:
    """Yield vectors batch by batch, in the order of requests; unreadable pictures are listed, not raised.

    Raises:
        ModelError: if the embedder gives vectors of another length than it says, or numbers that are not finite.
    """
    for batch in prepared_batches(requests, embedder.prepare, embedder.picture_side, engine=engine, batch_size=batch_size):
        vectors = np.empty((0, embedder.dimension), dtype=np.float32)
        if batch.prepared:
            vectors = checked_rows(embedder.embed_prepared(batch.prepared), len(batch.prepared), where=embedder.encoder_id)
            if vectors.shape[1] != embedder.dimension:
                said = f"The embedder gives {vectors.shape[1]} numbers a picture and says {embedder.dimension}."
                raise ModelError(said, where=embedder.encoder_id)
        yield EncodedBatch(positions=batch.positions, vectors=vectors, unreadable=batch.unreadable)


def prepared_batches(
    requests: Iterable[PictureRequest],
    prepare: Callable[[Image.Image], AnyArray],
    picture_side: int | None,
    *,
    engine: Engine,
    batch_size: int,
) -> Iterator[PreparedBatch]:
    """Yield prepared pictures in batches; the engine works ahead as far as it allows, so the caller can run a model meanwhile."""
    ready: list[_Prepared] = []
    unreadable: list[UnreadablePicture] = []
    for item in engine.map(partial(_load, prepare=prepare, picture_side=picture_side), requests):
        if isinstance(item, UnreadablePicture):
            unreadable.append(item)
        else:
            ready.append(item)
        if len(ready) == batch_size:
            yield _batch(ready, unreadable)
            ready, unreadable = [], []
    if ready or unreadable:
        yield _batch(ready, unreadable)


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


def _load(
    request: PictureRequest, *, prepare: Callable[[Image.Image], AnyArray], picture_side: int | None
) -> _Prepared | UnreadablePicture:
    try:
        data = read_location(request.location)
        if request.content_hash is not None and content_hash(data) != request.content_hash:
            return _unreadable(request, CHANGED, "The file holds another picture than when it was ingested; ingest again.")
        picture = decode_picture(data, picture_side=picture_side).picture
    except (UnreadableLocationError, UnreadablePictureError) as error:
        return _unreadable(request, error.reason, error.detail)
    return _Prepared(position=request.position, array=prepare(picture))


def _unreadable(request: PictureRequest, reason: str, detail: str) -> UnreadablePicture:
    return UnreadablePicture(position=request.position, location=request.location, reason=reason, detail=detail)


def _batch(ready: list[_Prepared], unreadable: list[UnreadablePicture]) -> PreparedBatch:
    return PreparedBatch(
        positions=np.array([item.position for item in ready], dtype=np.int64),
        prepared=[item.array for item in ready],
        unreadable=tuple(unreadable),
    )
