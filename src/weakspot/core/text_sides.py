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


def text_id_of(embedder: Embedder) -> str:
    """Return the name of the text side: `text_id` where phrases can change without the images, else the encoder's id."""
    return str(getattr(embedder, "text_id", embedder.encoder_id))
