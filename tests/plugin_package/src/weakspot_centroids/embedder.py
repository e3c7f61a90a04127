"""Tiny thumbnails as embeddings."""

from collections.abc import Sequence

import numpy as np
from PIL import Image

from weakspot.core.arrays import FloatArray, unit_rows
from weakspot.core.errors import ModelError


class ThumbnailEmbedder:
    """Shrinks an image to a few pixels and calls that an embedding; it knows no words.

    Args:
        side: width and height of the thumbnail.
    """

    has_text = False

    def __init__(self, *, side: int = 4) -> None:
        self.image_side = side

    @property
    def encoder_id(self) -> str:
        """Name and size."""
        return f"thumbnail-{self.image_side}"

    @property
    def dimension(self) -> int:
        """Length of the embeddings."""
        return 3 * self.image_side**2

    def prepare(self, image: Image.Image) -> FloatArray:
        """Shrink one image."""
        small = image.resize((self.image_side, self.image_side), Image.Resampling.BOX)
        return np.asarray(small, dtype=np.float32).ravel() + np.float32(1.0)

    def embed_prepared(self, prepared: Sequence[FloatArray]) -> FloatArray:
        """Return unit vectors [n, d]."""
        return (
            unit_rows(np.stack(prepared))
            if len(prepared)
            else np.zeros((0, self.dimension), dtype=np.float32)
        )

    def embed_texts(self, texts: Sequence[str]) -> FloatArray:
        """Refuse: there is no text side."""
        raise ModelError(
            "Thumbnails know no words.",
            given=list(texts)[:3],
            fix="Choose an embedder with a text side.",
        )
