"""Stage 2: which embedder to use and why, and the images of a project to embeddings.

Only those that no earlier run has embedded cost time.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from PIL import Image
from pydantic import JsonValue

from weakspot.core.arrays import AnyArray, FloatArray
from weakspot.core.dataset import Dataset
from weakspot.core.errors import ConfigError, NotEnoughDataError
from weakspot.core.roles import Embedder, Engine
from weakspot.core.run import Progress, no_progress
from weakspot.core.samples import EmbeddingSpace
from weakspot.data.embed import EmbedderModel, UnreadableImage, count_reasons
from weakspot.models.given_embeddings import AlignedEmbeddings
from weakspot.models.text_side import text_id_of
from weakspot.models.transformers import source
from weakspot.run.model_map import (
    CachedModel,
    FlushPolicy,
    ModelCount,
    map_missing,
    rows_to_compute,
)
from weakspot.run.settings import EmbedderSettings
from weakspot.run.wiring import build_part, resolved_options, with_provider
from weakspot.store.array_files import packed_hashes
from weakspot.store.embeddings import EmbeddingCache, SharedEmbeddings, WithShared
from weakspot.store.project import ProjectStore


@runtime_checkable
class KnowsEmbeddings(Protocol):
    """An embedder that already has an embedding for every sample and looks at no image."""

    def embeddings_for(self, dataset: Dataset) -> AlignedEmbeddings:
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


def embed(
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


AUTO = "auto"
HUB_MODELS = (
    "openai/clip-vit-base-patch16",
    "openai/clip-vit-large-patch14",
    "openai/clip-vit-base-patch32",
    "google/siglip2-base-patch16-224",
    "google/siglip-base-patch16-224",
)
EMBEDDED = "embedded"
EMBEDDED_NAME = "the embedded default (CLIP ViT-B/16 image tower with weakspot's own text side)"


def choose_embedder(
    settings: EmbedderSettings,
    *,
    folder: Path | None = None,
    ask_hub: bool = True,
    provider: str = AUTO,
    progress: Progress | None = None,
) -> tuple[Embedder, str]:
    """Return the configured embedder, for `auto` a hub model that is cached or reachable, else the embedded default; and why.

    Args:
        settings: section `embedder` of weakspot.toml.
        folder: the project's folder, which relative paths in options start from.
        ask_hub: whether the network may be tried.
        provider: the project's execution provider.
        progress: told the bytes of the embedded default's first download.

    Raises:
        ConfigError: if the embedder or one of its options does not exist.
    """
    if settings.name != AUTO:
        embedder = build_embedder(
            settings.name, settings.options, folder=folder, provider=provider, progress=progress
        )
        return embedder, f"Using the embedder {settings.name!r}, as configured."
    if settings.options:
        raise ConfigError(
            "Options need a named embedder, since `auto` may choose any.",
            where="embedder.options",
            given=dict(settings.options),
            fix='Set embedder.name, for example to "embedded" or "transformers", or remove the options.',
        )
    name, options, reason = _automatic(ask_hub=ask_hub)
    return build_embedder(name, options, provider=provider, progress=progress), reason


def build_embedder(
    name: str,
    options: Mapping[str, JsonValue],
    *,
    folder: Path | None = None,
    provider: str = AUTO,
    progress: Progress | None = None,
) -> Embedder:
    """Return a registered embedder; options that name an existing file or folder are taken relative to `folder`."""
    resolved = with_provider("embedders", name, resolved_options(options, folder), provider)
    if name == EMBEDDED:
        resolved.setdefault("progress", progress)
    embedder: Embedder = build_part("embedders", name, resolved, where="[embedder] options")
    return embedder


def _automatic(*, ask_hub: bool) -> tuple[str, dict[str, Any], str]:
    if not source.can_load_hub_models():
        return (
            EMBEDDED,
            {},
            f"Using {EMBEDDED_NAME}, because torch and transformers are not installed.",
        )
    cached = next(filter(source.is_in_hub_cache, HUB_MODELS), None)
    if cached is not None:
        said = f"Using {cached} from the hub's cache on this machine."
        return "transformers", {"model": cached}, said
    switched_off, first = source.hub_is_off(), HUB_MODELS[0]
    if switched_off is None and ask_hub and source.hub_answers():
        return "transformers", {"model": first}, f"Using {first}, because the hub can be reached."
    why = "the hub does not answer" if ask_hub else "the hub is not to be asked"
    if switched_off is not None:
        why = f"{switched_off} forbids asking the hub"
    return EMBEDDED, {}, f"Using {EMBEDDED_NAME}, because no known model is cached and {why}."


MAX_REMEMBERED = 8192


class RememberingEmbedder:
    """The same embedder; the embedding of an image that was prepared alike before is not computed again.

    Args:
        embedder: does the work.
    """

    def __init__(self, *, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[bytes, FloatArray] = {}

    @property
    def encoder_id(self) -> str:
        return self._embedder.encoder_id

    @property
    def dimension(self) -> int:
        return self._embedder.dimension

    @property
    def image_side(self) -> int | None:
        """Shortest image side in pixels that `prepare` needs."""
        return self._embedder.image_side

    @property
    def has_text(self) -> bool:
        """Whether `embed_texts` works."""
        return self._embedder.has_text

    def prepare(self, image: Image.Image) -> AnyArray:
        """Turn one RGB image into what `embed_prepared` takes."""
        return self._embedder.prepare(image)

    def embed_prepared(self, prepared: Sequence[AnyArray]) -> FloatArray:
        """Return unit vectors [n, d]; those that are not known yet are computed together."""
        keys = [
            hashlib.blake2b(np.ascontiguousarray(one).tobytes(), digest_size=16).digest()
            for one in prepared
        ]
        new = {key: one for key, one in zip(keys, prepared, strict=True) if key not in self._known}
        found = dict(self._known)
        if new:
            embeddings = np.asarray(
                self._embedder.embed_prepared(list(new.values())), dtype=np.float32
            )
            if len(embeddings) != len(new):
                return embeddings
            found |= dict(zip(new, embeddings, strict=True))
        self._known = dict(list(found.items())[-MAX_REMEMBERED:])
        return (
            np.stack([found[key] for key in keys])
            if keys
            else np.zeros((0, self.dimension), dtype=np.float32)
        )

    def embed_texts(self, texts: Sequence[str]) -> FloatArray:
        """Return unit vectors [m, d] of phrases."""
        return self._embedder.embed_texts(texts)
