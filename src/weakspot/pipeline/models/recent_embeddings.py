"""An embedder that remembers what it has just embedded, for images that several steps look at."""

import hashlib
from collections.abc import Sequence

import numpy as np
from PIL import Image

from weakspot.core.arrays import AnyArray, FloatArray
from weakspot.core.roles import Embedder

MOST_REMEMBERED = 8192


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
        self._known = dict(list(found.items())[-MOST_REMEMBERED:])
        return (
            np.stack([found[key] for key in keys])
            if keys
            else np.zeros((0, self.dimension), dtype=np.float32)
        )

    def embed_texts(self, texts: Sequence[str]) -> FloatArray:
        """Return unit vectors [m, d] of phrases."""
        return self._embedder.embed_texts(texts)
