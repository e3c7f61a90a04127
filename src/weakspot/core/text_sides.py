"""What a text side may say of itself beside embeddings: which one it is, and how well it knows a phrase."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from weakspot.core.arrays import FloatArray
from weakspot.core.roles import Embedder


@runtime_checkable
class KnowsPhrases(Protocol):
    """An embedder that says how well it knows a phrase. One that cannot has no such method."""

    def knows(self, texts: Sequence[str]) -> FloatArray | None:
        """Return how well phrases are known [m], from 0 to 1; None if this cannot be said."""


@runtime_checkable
class MeasuredWords(Protocol):
    """An embedder whose words were put to images that took no part in teaching them."""

    def measured(self, texts: Sequence[str]) -> FloatArray | None:
        """Return the area under the curve of each word [m], not a number where nobody measured it; None if nothing was measured."""


def text_id_of(embedder: Embedder) -> str:
    """Return the name of the text side: `text_id` where phrases can change without the images, else the encoder's id."""
    return str(getattr(embedder, "text_id", embedder.encoder_id))
