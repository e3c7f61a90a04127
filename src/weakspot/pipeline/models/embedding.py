"""Stage 2: the images of a project to embeddings; only those that no earlier run has embedded cost time."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

import numpy as np

from weakspot.core.arrays import AnyArray, FloatArray
from weakspot.core.dataset import Dataset
from weakspot.core.errors import NotEnoughDataError
from weakspot.core.roles import Embedder, Engine
from weakspot.core.run import Progress, no_progress
from weakspot.core.samples import EmbeddingSpace
from weakspot.core.text_sides import text_id_of
from weakspot.embed.encode import EmbedderModel, UnreadableImage, count_reasons
from weakspot.pipeline.models.model_map import (
    CachedModel,
    FlushPolicy,
    ModelCount,
    map_missing,
    rows_to_compute,
)
from weakspot.store.embeddings import EmbeddingCache
from weakspot.store.names import packed_hashes
from weakspot.store.project import ProjectStore
from weakspot.store.shared_embeddings import SharedEmbeddings, WithShared


class _Aligned(Protocol):
    @property
    def embeddings(self) -> FloatArray: ...


@runtime_checkable
class KnowsEmbeddings(Protocol):
    """An embedder that already has an embedding for every sample and looks at no image."""

    def embeddings_for(self, dataset: Dataset) -> _Aligned:
        """Return the embeddings in the order of the data set."""


@dataclass(frozen=True, kw_only=True, eq=False)
class EmbedSettings:
    """How images are embedded.

    Args:
        batch_size: images per call of the encoder.
        flush: when finished embeddings are written.
        shared: embeddings that projects of this user share; None if this encoder's are kept in the project alone.
    """

    batch_size: int = 8
    flush: FlushPolicy = field(default_factory=FlushPolicy)
    shared: SharedEmbeddings | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Embedded:
    """The embeddings of a data set, and what was done for them.

    Args:
        space: embeddings in the order of the data set; rows of NaN have none.
        n_new: images that went through the encoder now.
        n_embeddings: samples that have an embedding.
        n_shared: embeddings that another project had computed.
        unreadable: images that could not be read now; they are tried again next time.
    """

    space: EmbeddingSpace
    n_new: int
    n_embeddings: int
    n_shared: int = 0
    unreadable: tuple[UnreadableImage, ...] = ()


def embed(  # noqa: PLR0913 - the samples, the model, and how
    project: ProjectStore,
    dataset: Dataset,
    embedder: Embedder,
    *,
    engine: Engine,
    progress: Progress = no_progress,
    settings: EmbedSettings | None = None,
    done: ModelCount | None = None,
) -> Embedded:
    """Return embeddings for every sample; killed at any instant, the next call goes on where this one was.

    Args:
        project: keeps the embeddings.
        dataset: the samples.
        embedder: the model.
        engine: where it runs.
        progress: called with how many images are done.
        settings: how images are embedded.
        done: what a pass over the images has just done for this embedder; nothing is computed then.

    Raises:
        NotEnoughDataError: if not one sample has an embedding in the end, with the reasons.
    """
    if isinstance(embedder, KnowsEmbeddings):
        return _given(embedder, embedder.encoder_id, has_text=embedder.has_text, dataset=dataset)
    keys = packed_hashes(dataset.table.column("content_hash"))
    cache = project.embeddings(embedder.encoder_id)
    ready = cache.matrix(keys)
    if ready is not None and ready.n_missing == 0:
        return _embed(embedder, ready.values, n_embeddings=len(keys), done=done)
    chosen = settings or EmbedSettings()
    shared = chosen.shared
    with project.writing():
        n_shared = 0 if shared is None else shared.take(cache, keys, width=embedder.dimension)
        if done is None or (shared is not None and _lacks_images(cache, keys, dataset, done)):
            (rest,) = map_missing(
                dataset,
                keys,
                [cached_embedder(project, embedder, replace(chosen, shared=None))],
                engine=engine,
                progress=progress,
                flush=chosen.flush,
            )
            done = rest if done is None else replace(rest, n_new=done.n_new + rest.n_new)
            cache = project.embeddings(embedder.encoder_id)
        if ready is None or done.n_new or n_shared:
            cache.compact()
            ready = cache.materialise(keys, width=embedder.dimension)
    n_embeddings = len(keys) - ready.n_missing
    if not n_embeddings:
        raise _nothing_embedded(len(keys), done.unreadable)
    if shared is not None:
        shared.give(cache, keys, ready.values)
    return replace(
        _embed(embedder, ready.values, n_embeddings=n_embeddings, done=done), n_shared=n_shared
    )


def _lacks_images(
    cache: EmbeddingCache, keys: AnyArray, dataset: Dataset, done: ModelCount
) -> bool:
    """Return whether images were left out of a pass as shared, and then could not be taken."""
    unreadable = {one.position for one in done.unreadable}
    rows = rows_to_compute(dataset, keys, cache.missing(keys))
    return not unreadable.issuperset(rows.tolist())


def cached_embedder(
    project: ProjectStore, embedder: Embedder, settings: EmbedSettings
) -> CachedModel:
    """Return an embedder as a model whose embeddings are kept in a project."""
    model = EmbedderModel(embedder=embedder, batch_size=settings.batch_size)
    cache = project.embeddings(embedder.encoder_id)
    known = cache if settings.shared is None else WithShared(cache, settings.shared)
    return CachedModel(model=model, cache=known)


def is_embedded(project: ProjectStore, dataset: Dataset, embedder: Embedder) -> bool:
    """Return whether every sample has an embedding of this embedder already; cheap."""
    keys = packed_hashes(dataset.table.column("content_hash"))
    ready = project.embeddings(embedder.encoder_id).matrix(keys)
    return ready is not None and ready.n_missing == 0


def _given(
    embedder: KnowsEmbeddings, encoder_id: str, *, has_text: bool, dataset: Dataset
) -> Embedded:
    embeddings = embedder.embeddings_for(dataset).embeddings
    n_embeddings = int(np.isfinite(embeddings[:, 0]).sum())
    if not n_embeddings:
        raise _nothing_embedded(len(dataset), ())
    return Embedded(
        space=EmbeddingSpace(encoder_id=encoder_id, embeddings=embeddings, has_text=has_text),
        n_new=0,
        n_embeddings=n_embeddings,
    )


def _embed(
    embedder: Embedder, embeddings: FloatArray, *, n_embeddings: int, done: ModelCount | None
) -> Embedded:
    space = EmbeddingSpace(
        encoder_id=embedder.encoder_id,
        embeddings=embeddings,
        has_text=embedder.has_text,
        text_id=text_id_of(embedder),
    )
    counted = done or ModelCount()
    return Embedded(
        space=space,
        n_new=counted.n_new,
        n_embeddings=n_embeddings,
        unreadable=tuple(counted.unreadable),
    )


def _nothing_embedded(n_samples: int, unreadable: Sequence[UnreadableImage]) -> NotEnoughDataError:
    why = count_reasons(unreadable) or "they have no images"
    return NotEnoughDataError(
        f"Not one of {n_samples} samples could be embedded: {why}.",
        fix="Ingest again if files were moved; give embeddings if there are no images.",
    )
