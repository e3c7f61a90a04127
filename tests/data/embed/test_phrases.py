import numpy as np
import pytest

from weakspot.core.errors import ModelError
from weakspot.data.embed import embed_phrases


def test_embed_phrases__each_once_in_order(embedder):
    told = []
    embeddings = embed_phrases(
        ["ab", "c", "ab", "def"],
        embedder,
        chunk_size=2,
        progress=lambda done, total: told.append((done, total)),
    )
    assert embeddings.tolist() == [[2, 0, 1], [1, 0, 1], [2, 0, 1], [3, 0, 1]]
    assert embedder.asked == [["ab", "c"], ["def"]]
    assert told == [(2, 3), (3, 3)]


def test_embed_phrases__no_text_side(embedder):
    embedder.has_text = False
    with pytest.raises(ModelError, match=r"no text side.*weakspot lab align"):
        embed_phrases(["a"], embedder)


def test_embed_phrases__single_string(embedder):
    with pytest.raises(ModelError, match="letter by letter"):
        embed_phrases("a bird", embedder)


def test_embed_phrases__nonsense_of_the_model(embedder):
    embedder.embed_texts = lambda texts: np.full((len(texts), 3), np.inf)
    with pytest.raises(ModelError, match="3 finite numbers for each of 1 phrases"):
        embed_phrases(["a"], embedder)
