"""Whom methods may ask for words, made from the models of a project."""

from weakspot.core.assistants import NOBODY, Assistants
from weakspot.core.roles import Embedder
from weakspot.embed.phrases import embed_phrases


def assistants_for(embedder: Embedder | None) -> Assistants:
    """Return the assistants that a project has."""
    if embedder is None or not embedder.has_text:
        return NOBODY
    return Assistants(embed_texts=lambda phrases: embed_phrases(phrases, embedder))
