import json

import numpy as np
import pytest
from known_word_memory import (
    centred_words,
    combined,
    fit_memory,
    read_word_embeddings,
    read_words,
)

from weakspot.core.errors import DataError


def test_centred_words__have_no_common_part():
    rows = np.random.default_rng(0).normal(size=(50, 6)).astype(np.float32) + 3
    found = centred_words(rows)
    assert np.linalg.norm(found, axis=1) == pytest.approx(1.0)
    assert (
        np.linalg.norm(found.mean(axis=0))
        < 0.2
        < np.linalg.norm((rows / np.linalg.norm(rows, axis=1, keepdims=True)).mean(axis=0))
    )


def test_combined__is_between_noun_and_addition():
    apple, text = np.eye(4, dtype=np.float32)[:2]
    found = combined({"apple": apple}, {"text": text}, "{noun} with {word}")
    assert list(found) == ["apple with text"]
    assert found["apple with text"] == pytest.approx([0.5**0.5, 0.5**0.5, 0, 0])


def test_read_words__lines_of_text_or_json(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text('apple\n{"text": "pear", "split": "train"}\n')
    assert [word["text"] for word in read_words(path)] == ["apple", "pear"]
    path.write_text(json.dumps({"label": "x"}))
    with pytest.raises(DataError, match="no `text`"):
        read_words(path)
    with pytest.raises(DataError, match="cannot be read"):
        read_words(tmp_path / "none")


def test_read_word_embeddings__must_be_one_a_word(tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, np.zeros((2, 3)))
    assert read_word_embeddings(path, 2).shape == (2, 3)
    with pytest.raises(DataError, match="one embedding for every word"):
        read_word_embeddings(path, 3)


def test_fit_memory__nothing_to_learn():
    with pytest.raises(DataError, match="No phrase"):
        fit_memory({}, encode=lambda texts: texts, projection=None)
