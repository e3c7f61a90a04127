"""Any image encoder with a text side that `weakspot align` learnt for it."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from weakspot.backends.embedded_default import SENTENCE_MODEL, SENTENCE_TOKENIZER
from weakspot.backends.given_vectors import AlignedVectors, GivenVectors
from weakspot.backends.registry_source import fetch, file_sha256
from weakspot.backends.sentence_encoder import SentenceEncoder
from weakspot.core.arrays import AnyArray, FloatArray
from weakspot.core.dataset import Dataset
from weakspot.core.errors import ModelError
from weakspot.core.projection import TextProjection
from weakspot.core.registry import part_class
from weakspot.core.roles import Embedder
from weakspot.core.sending import Sendable

TEXT_SIDE_FILE = "text_side.npz"


class AlignedEmbedder(Sendable):
    """Pictures through an image encoder, phrases through a sentence encoder and a learnt projection.

    Args:
        pictures: the image encoder, or its `{"name": ..., "options": ...}`.
        text_side: the folder that `weakspot align` wrote, or the file `text_side.npz` in it.
        sentences: the sentence encoder; by default the one that `weakspot align` uses.
    """

    def __init__(
        self, *, pictures: Embedder | Mapping[str, Any], text_side: str | Path, sentences: SentenceEncoder | None = None
    ) -> None:
        self._inner = _built(pictures)
        path = Path(text_side)
        self._path = path / TEXT_SIDE_FILE if path.is_dir() else path
        self._given_sentences = sentences

    @cached_property
    def encoder_id(self) -> str:
        """The image encoder and the hash of the text side."""
        if not self._path.is_file():
            raise ModelError("The text side is missing.", where=str(self._path), fix="Learn it with `weakspot align`.")
        return f"{self._inner.encoder_id}+text@{file_sha256(self._path)[:12]}"

    @property
    def dimension(self) -> int:
        """Length of the vectors."""
        return self._projection.dimension

    @property
    def picture_side(self) -> int | None:
        """Shortest picture side in pixels that `prepare` needs."""
        return self._inner.picture_side

    @property
    def has_text(self) -> bool:
        """Whether `embed_texts` works."""
        return True

    def prepare(self, picture: Image.Image) -> AnyArray:
        """Turn one RGB picture into what the image encoder takes."""
        return self._inner.prepare(picture)

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
        return self._given_sentences or SentenceEncoder(fetch(SENTENCE_MODEL), fetch(SENTENCE_TOKENIZER))


class AlignedGivenVectors(AlignedEmbedder):
    """The same for vectors that the user already has."""

    def vectors_for(self, dataset: Dataset) -> AlignedVectors:
        """Return the given vectors in the order of a data set, centred as the text side expects them."""
        if not isinstance(self._inner, GivenVectors):
            raise ModelError("Only given vectors know the vectors of samples.", given=self._inner.encoder_id)
        found = self._inner.vectors_for(dataset)
        has_vector = np.isfinite(found.vectors).all(axis=1)
        centred = found.vectors.copy()
        centred[has_vector] = self._projection.centre(found.vectors[has_vector])
        return AlignedVectors(vectors=centred, n_missing=found.n_missing, matched_by=found.matched_by)


def aligned_embedder(
    *, pictures: Embedder | Mapping[str, Any], text_side: str | Path, sentences: SentenceEncoder | None = None
) -> AlignedEmbedder:
    """Return the form that fits the image encoder; this is what is registered as `aligned`."""
    inner = _built(pictures)
    kind = AlignedGivenVectors if isinstance(inner, GivenVectors) else AlignedEmbedder
    return kind(pictures=inner, text_side=text_side, sentences=sentences)


def _built(pictures: Embedder | Mapping[str, Any]) -> Embedder:
    if not isinstance(pictures, Mapping):
        return pictures
    name = str(pictures.get("name", ""))
    built: Embedder = part_class("embedders", name)(**dict(pictures.get("options") or {}))
    return built
