"""Phrases through the text side of an embedder: each different phrase once, in chunks."""

from collections.abc import Sequence

import numpy as np

from weakspot.core.arrays import FloatArray
from weakspot.core.errors import ModelError
from weakspot.core.roles import Embedder
from weakspot.core.run import Progress, no_progress


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
