"""Any image encoder with a text side that `weakspot lab align` learnt for it."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from weakspot.core.arrays import AnyArray, FloatArray
from weakspot.core.dataset import Dataset
from weakspot.core.errors import ModelError
from weakspot.core.registry import Sendable, part_class
from weakspot.core.roles import Embedder
from weakspot.models.embedded.encoder import SENTENCE_MODEL, SENTENCE_TOKENIZER, SentenceEncoder
from weakspot.models.given_embeddings import AlignedEmbeddings, GivenEmbeddings
from weakspot.models.packages.registry_source import fetch, file_sha256
from weakspot.models.text_side import TextProjection

TEXT_SIDE_FILE = "text_side.npz"


class AlignedEmbedder(Sendable):
    """Images through an image encoder, phrases through a sentence encoder and a learnt projection.

    Args:
        images: the image encoder, or its `{"name": ..., "options": ...}`.
        text_side: the folder that `weakspot lab align` wrote, or the file `text_side.npz` in it.
        sentences: the sentence encoder; by default the one that `weakspot lab align` uses.
    """

    def __init__(
        self,
        *,
        images: Embedder | Mapping[str, Any],
        text_side: str | Path,
        sentences: SentenceEncoder | None = None,
    ) -> None:
        self._inner = _built(images)
        path = Path(text_side)
        self._path = path / TEXT_SIDE_FILE if path.is_dir() else path
        self._given_sentences = sentences

    @cached_property
    def encoder_id(self) -> str:
        if not self._path.is_file():
            raise ModelError(
                "The text side is missing.",
                where=str(self._path),
                fix="Learn it with `weakspot lab align`.",
            )
        return f"{self._inner.encoder_id}+text@{file_sha256(self._path)[:12]}"

    @property
    def dimension(self) -> int:
        return self._projection.dimension

    @property
    def image_side(self) -> int | None:
        return self._inner.image_side

    @property
    def has_text(self) -> bool:
        return True

    def prepare(self, image: Image.Image) -> AnyArray:
        return self._inner.prepare(image)

    def embed_prepared(self, prepared: Sequence[AnyArray]) -> FloatArray:
        """Return unit vectors [n, d], centred as the text side expects them."""
        if not prepared:
            return np.zeros((0, self.dimension), dtype=np.float32)
        return self._projection.centre(self._inner.embed_prepared(prepared))

    def embed_texts(self, texts: Sequence[str]) -> FloatArray:
        """Return unit vectors [m, d] of phrases."""
        return self._projection.apply(self._sentences.encode(list(texts)))

    @cached_property
    def _projection(self) -> TextProjection:
        return TextProjection.load(self._path)

    @cached_property
    def _sentences(self) -> SentenceEncoder:
        return self._given_sentences or SentenceEncoder(
            fetch(SENTENCE_MODEL), fetch(SENTENCE_TOKENIZER)
        )


class AlignedGivenEmbeddings(AlignedEmbedder):
    """The same for embeddings that the user already has."""

    def embeddings_for(self, dataset: Dataset) -> AlignedEmbeddings:
        """Return the given embeddings in the order of a data set, centred as the text side expects them."""
        if not isinstance(self._inner, GivenEmbeddings):
            raise ModelError(
                "Only given embeddings know the embeddings of samples.",
                given=self._inner.encoder_id,
            )
        found = self._inner.embeddings_for(dataset)
        has_embedding = np.isfinite(found.embeddings).all(axis=1)
        centred = found.embeddings.copy()
        centred[has_embedding] = self._projection.centre(found.embeddings[has_embedding])
        return AlignedEmbeddings(
            embeddings=centred, n_missing=found.n_missing, matched_by=found.matched_by
        )


def aligned_embedder(
    *,
    images: Embedder | Mapping[str, Any],
    text_side: str | Path,
    sentences: SentenceEncoder | None = None,
) -> AlignedEmbedder:
    """Return the form that fits the image encoder; this is what is registered as `aligned`."""
    inner = _built(images)
    kind = AlignedGivenEmbeddings if isinstance(inner, GivenEmbeddings) else AlignedEmbedder
    return kind(images=inner, text_side=text_side, sentences=sentences)


def _built(images: Embedder | Mapping[str, Any]) -> Embedder:
    if not isinstance(images, Mapping):
        return images
    name = str(images.get("name", ""))
    built: Embedder = part_class("embedders", name)(**dict(images.get("options") or {}))
    return built
