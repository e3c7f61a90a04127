"""Samples and phrases to embeddings, on any engine."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeAlias

import numpy as np
from PIL import Image

from weakspot.core.arrays import AnyArray, FloatArray, IntArray
from weakspot.core.errors import ModelError
from weakspot.core.roles import Embedder, Engine
from weakspot.core.run import Progress, no_progress
from weakspot.data.images import (
    UNREADABLE_REASONS,
    WORKER_LOST,
    DecodedImage,
    UnreadableImageError,
    content_hash,
    decode_for_sides,
)
from weakspot.data.locations import UnreadableLocationError, read_location

CHANGED = "changed"


@dataclass(frozen=True, kw_only=True)
class ImageRequest:
    """An image to be put through models.

    Args:
        position: number by which the caller knows it.
        location: where it is.
        content_hash: what it held when it was ingested; another content is refused. None: whatever is there is taken.
        models: numbers of the models that are to see it.
    """

    position: int
    location: str
    content_hash: str | None = None
    models: tuple[int, ...] = (0,)


@dataclass(frozen=True, kw_only=True)
class UnreadableImage:
    """An image that could not be read now, although it may have been when it was ingested."""

    position: int
    location: str
    reason: str
    detail: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Answers:
    """What a model gives for some images of a batch.

    Args:
        places: which images of the batch have an answer [n].
        columns: arrays with one row for each of them.
        failure: why the model is not to be asked any more; None if it can be.
    """

    places: IntArray
    columns: tuple[AnyArray, ...]
    failure: ModelError | None = None


class ImageModel(Protocol):
    """A model that images are put through; it may have to travel to another process."""

    @property
    def image_side(self) -> int | None:
        """Shortest image side in pixels that `prepare` needs; None for full size."""

    @property
    def batch_size(self) -> int:
        """Images per call of `answer`."""

    def prepare(self, image: Image.Image) -> AnyArray:
        """Turn one RGB image into what `answer` takes; runs in decoder threads."""

    def answer(self, prepared: Sequence[AnyArray]) -> Answers:
        """Return what the model gives for prepared images; places count from the first of them."""


PreparedArrays: TypeAlias = Mapping[int, AnyArray]
"""An image as each model takes it, by the number of the model."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ImageBatch:
    """What models give for consecutive images.

    Args:
        positions: numbers of the images [n].
        answers: of every model, one for each call of it; their places count the images of the batch.
        unreadable: images of the batch that no model could see.
    """

    positions: IntArray
    answers: tuple[tuple[Answers, ...], ...]
    unreadable: tuple[UnreadableImage, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class ImageWork:
    """Requests to answers, wherever an engine has a worker.

    Args:
        models: built again in every worker that is another process.
    """

    models: tuple[ImageModel, ...]

    def prepare(self, item: ImageRequest) -> tuple[int, PreparedArrays | UnreadableImage]:
        """Return the number of an image, and the image ready for models, or why there is none."""
        try:
            data = read_location(item.location)
            if item.content_hash is not None and content_hash(data) != item.content_hash:
                detail = "The file holds another image than when it was ingested; ingest again."
                return item.position, _unreadable(item, CHANGED, detail)
            arrays, _ = prepare_for(self.models, item.models, data)
        except (UnreadableLocationError, UnreadableImageError) as error:
            return item.position, _unreadable(item, error.reason, error.detail)
        return item.position, arrays

    def run(self, ready: Sequence[tuple[int, PreparedArrays | UnreadableImage]]) -> ImageBatch:
        """Return the answers to those that could be read.

        Raises:
            ModelError: if a model gives something else than it should.
        """
        arrays = [{} if isinstance(image, UnreadableImage) else image for _, image in ready]
        return ImageBatch(
            positions=np.array([position for position, _ in ready], dtype=np.int64),
            answers=answer_all(self.models, arrays),
            unreadable=tuple(image for _, image in ready if isinstance(image, UnreadableImage)),
        )


def map_images(
    requests: Iterable[ImageRequest], models: Sequence[ImageModel], *, engine: Engine
) -> Iterator[ImageBatch]:
    """Yield answers batch by batch, in the order of requests; unreadable images are listed, not raised.

    A batch is so many consecutive requests, whether they can be read or not, as the model with the largest batches takes.

    Raises:
        ModelError: if a model gives something else than it should.
    """
    chosen = tuple(models)
    yield from engine.map_batches(
        partial(ImageWork, models=chosen),
        requests,
        batch_size=shared_batch_size(chosen),
        lost=partial(_lost_batch, n_models=len(chosen)),
    )


def shared_batch_size(models: Sequence[ImageModel]) -> int:
    """Return how many images share a batch: those of the largest call."""
    return max(model.batch_size for model in models)


def prepare_for(
    models: Sequence[ImageModel], numbers: Sequence[int], data: bytes
) -> tuple[PreparedArrays, DecodedImage]:
    """Return an encoded image as the numbered models take it, and decoded.

    Every model sees what it would see alone; those that want the same scale share one decoded image.

    Raises:
        UnreadableImageError: if it cannot be decoded.
    """
    sides = {number: models[number].image_side for number in numbers}
    decoded = decode_for_sides(data, sides.values())
    arrays: dict[int, AnyArray] = {}
    remaining = list(sides.values())
    for number, side in sides.items():
        image = decoded[side].image
        del remaining[0]
        # A model may change the image that it is given.
        is_shared = any(decoded[other].image is image for other in remaining)
        arrays[number] = models[number].prepare(image.copy() if is_shared else image)
    return arrays, next(iter(decoded.values()))


def answer_all(
    models: Sequence[ImageModel], images: Sequence[PreparedArrays]
) -> tuple[tuple[Answers, ...], ...]:
    return tuple(
        tuple(
            _calls(
                model,
                [
                    (place, arrays[number])
                    for place, arrays in enumerate(images)
                    if number in arrays
                ],
            )
        )
        for number, model in enumerate(models)
    )


def _calls(model: ImageModel, asked: list[tuple[int, AnyArray]]) -> Iterator[Answers]:
    for start in range(0, len(asked), model.batch_size):
        some = asked[start : start + model.batch_size]
        given = model.answer([array for _, array in some])
        places = np.array([place for place, _ in some], dtype=np.int64)[given.places]
        yield Answers(places=places, columns=given.columns, failure=given.failure)


@dataclass(frozen=True, kw_only=True, eq=False)
class EmbedderModel:
    """An embedder as a model that images are put through; its one column are embeddings [n, d]."""

    embedder: Embedder
    batch_size: int = 8

    @property
    def image_side(self) -> int | None:
        return self.embedder.image_side

    def prepare(self, image: Image.Image) -> AnyArray:
        return self.embedder.prepare(image)

    def answer(self, prepared: Sequence[AnyArray]) -> Answers:
        """Return embeddings.

        Raises:
            ModelError: if they have another length than the embedder declares, or numbers that are not finite.
        """
        where, dimension = self.embedder.encoder_id, self.embedder.dimension
        made = self.embedder.embed_prepared(prepared)
        embeddings = checked_rows(made, len(prepared), where=where)
        if embeddings.shape[1] != dimension:
            given = embeddings.shape[1]
            raise ModelError(
                f"The embedder gives {given} numbers per image and declares {dimension}.",
                where=where,
            )
        return Answers(places=np.arange(len(prepared)), columns=(embeddings,))


def checked_rows(rows: AnyArray, n_rows: int, *, where: str) -> FloatArray:
    """Return what a model gave as float32 [n, d].

    Raises:
        ModelError: if it is not one row of finite numbers per image.
    """
    values = np.asarray(rows, dtype=np.float32)
    if values.ndim != 2 or len(values) != n_rows:  # noqa: PLR2004 - rows and columns
        raise ModelError(
            f"The model must give one row for each of {n_rows} images.",
            where=where,
            given=values.shape,
        )
    if not np.isfinite(values).all():
        raise ModelError(
            "The model gives numbers that are not finite.",
            where=where,
            fix="Check its weights and pre-processing.",
        )
    return values


def count_reasons(unreadable: Sequence[UnreadableImage]) -> str:
    """Return how often each reason occurs, for messages.

    >>> count_reasons([UnreadableImage(position=0, location="a.jpg", reason="missing-file", detail="")])
    '1 missing-file'
    """
    return ", ".join(
        f"{count} {reason}"
        for reason, count in Counter(item.reason for item in unreadable).most_common()
    )


def _unreadable(request: ImageRequest, reason: str, detail: str) -> UnreadableImage:
    return UnreadableImage(
        position=request.position, location=request.location, reason=reason, detail=detail
    )


def _lost_batch(request: ImageRequest, *, n_models: int) -> ImageBatch:
    lost = _unreadable(request, WORKER_LOST, UNREADABLE_REASONS[WORKER_LOST])
    return ImageBatch(
        positions=np.array([request.position], dtype=np.int64),
        answers=((),) * n_models,
        unreadable=(lost,),
    )


def embed_phrases(
    phrases: Sequence[str],
    embedder: Embedder,
    *,
    chunk_size: int = 256,
    progress: Progress = no_progress,
) -> FloatArray:
    """Return one embedding a phrase [m, d], in the order of phrases.

    Raises:
        ModelError: if the embedder has no text side, or gives rows that do not fit.
    """
    if not embedder.has_text:
        raise ModelError(
            "The embedder has no text side, so phrases cannot be compared with images.",
            where=embedder.encoder_id,
            fix="Choose an embedder with text, or learn one for it: weakspot lab align.",
        )
    if isinstance(phrases, str):
        raise ModelError(
            "Phrases must be a list; a single string would be read letter by letter.", given=phrases
        )
    different = list(dict.fromkeys(phrases))
    embeddings = np.empty((len(different), embedder.dimension), dtype=np.float32)
    for start in range(0, len(different), chunk_size):
        chunk = different[start : start + chunk_size]
        embeddings[start : start + len(chunk)] = _embed(chunk, embedder)
        progress(start + len(chunk), len(different))
    position = {phrase: row for row, phrase in enumerate(different)}
    return embeddings[[position[phrase] for phrase in phrases]]


def _embed(phrases: Sequence[str], embedder: Embedder) -> FloatArray:
    embeddings = np.asarray(embedder.embed_texts(phrases), dtype=np.float32)
    if embeddings.shape != (len(phrases), embedder.dimension) or not np.isfinite(embeddings).all():
        raise ModelError(
            f"The text side must give {embedder.dimension} finite numbers for each of {len(phrases)} phrases.",
            where=embedder.encoder_id,
            given=embeddings.shape,
        )
    return embeddings
