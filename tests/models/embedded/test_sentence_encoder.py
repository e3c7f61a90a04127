from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto
from tests.models.tiny_graphs import entry, node, save_graph
from tokenizers import Tokenizer, models, pre_tokenizers

from weakspot.core.errors import ModelError
from weakspot.models.embedded.encoder import SentenceEncoder

WORD_EMBEDDINGS = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 4.0], [3.0, 4.0]], dtype=np.float32)


@pytest.fixture
def encoder(tmp_path: Path) -> SentenceEncoder:
    """A bag of three known words: the graph looks up one embedding per token."""
    tokenizer = Tokenizer(
        models.WordLevel({"[UNK]": 0, "red": 1, "green": 2, "apple": 3}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.enable_padding(length=8)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    nodes = [node("Gather", ["table", "input_ids"], ["hidden"])]
    given, found = (
        entry("input_ids", TensorProto.INT64, ["m", "t"]),
        entry("hidden", shape=["m", "t", 2]),
    )
    save_graph(tmp_path / "model.onnx", nodes, [given], [found], {"table": WORD_EMBEDDINGS})
    return SentenceEncoder(tmp_path / "model.onnx", tmp_path / "tokenizer.json", max_tokens=3)


def test_encode__mean_of_the_tokens_at_unit_length(encoder: SentenceEncoder) -> None:
    # "red green": mean of (3, 0) and (0, 4) is (1.5, 2), of length 2.5.
    np.testing.assert_allclose(encoder.encode(["red green"]), [[0.6, 0.8]], rtol=1e-6)


def test_encode__keeps_the_order_and_ignores_the_neighbours(encoder: SentenceEncoder) -> None:
    texts = ["apple", "red green apple", "red", "green red", "apple"]

    together = encoder.encode(texts, batch_size=2)

    alone = np.concatenate([encoder.encode([text]) for text in texts])
    np.testing.assert_array_equal(together, alone)


def test_encode__long_phrases_are_cut(encoder: SentenceEncoder) -> None:
    np.testing.assert_array_equal(
        encoder.encode(["red red red green"]), encoder.encode(["red red red"])
    )


def test_encode__no_phrases(encoder: SentenceEncoder) -> None:
    assert encoder.encode([]).shape == (0, 2)


def test_encode__empty_phrase(encoder: SentenceEncoder) -> None:
    with pytest.raises(ModelError, match="phrase to embed is empty"):
        encoder.encode(["red", "  "])


def test_encode__missing_file(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"missing.*tokenizer\.json"):
        SentenceEncoder(tmp_path / "model.onnx", tmp_path / "tokenizer.json").encode(["red"])
