import hashlib
import json

import numpy as np
import pytest

from weakspot.core.arrays import generator
from weakspot.core.errors import ConfigError, DataError, NotEnoughDataError
from weakspot.models.text_side import TextProjection
from weakspot_lab.align.aligning import CaptionedEmbeddings, learn, read_captioned

COLOURS = ("red", "green", "blue", "white")
SHAPES = ("disc", "square", "star")


def _word_embedding(word):
    return generator(int(hashlib.sha256(word.encode()).hexdigest()[:6], 16)).standard_normal(24)


def _encode(texts):
    """A bag of words: every word has a fixed random direction."""
    sums = np.stack([sum(_word_embedding(word) for word in text.split()) for text in texts])
    return (sums / np.linalg.norm(sums, axis=1, keepdims=True)).astype(np.float32)


def _captioned(n_images=240, *, with_labels=False):
    draws = generator(0, "aligning")
    colours, shapes = (
        draws.integers(len(COLOURS), size=n_images),
        draws.integers(len(SHAPES), size=n_images),
    )
    axes = generator(1, "axes").standard_normal((len(COLOURS) + len(SHAPES), 16))
    embeddings = (
        axes[colours]
        + axes[len(COLOURS) + shapes]
        + 0.2 * draws.standard_normal((n_images, 16))
        + 2.0
    )
    texts = [
        [f"a {COLOURS[colour]} {SHAPES[shape]}"]
        for colour, shape in zip(colours, shapes, strict=True)
    ]
    labels = [SHAPES[shape] if with_labels else "" for shape in shapes]
    return CaptionedEmbeddings(
        embeddings=embeddings.astype(np.float32), texts=texts, labels=labels, where="here"
    )


def test_learn__phrases_find_their_images(tmp_path):
    given = _captioned(with_labels=True)
    result = learn(given, tmp_path, encode=_encode, loss="ridge", seed=0)
    projection = TextProjection.load(tmp_path / "text_side.npz")
    similarity = projection.centre(given.embeddings) @ projection.apply(_encode(["a red disc"])).T
    fits = np.array([texts == ["a red disc"] for texts in given.texts])
    assert similarity[fits].min() > np.median(similarity[~fits])
    assert result.figures["accuracy over 3 class names"] > 0.8
    assert result.figures["text to image recall@10 of 36"] > 0.6


def test_learn__writes_a_card_with_figures_and_limits(tmp_path):
    result = learn(_captioned(), tmp_path, encode=_encode, loss="ridge", seed=0)
    card = json.loads((tmp_path / "card.json").read_text())
    assert {figure["name"] for figure in card["figures"]} == set(result.figures)
    assert "What it is bad at" in (tmp_path / "CARD.md").read_text()


def test_learn__same_seed_same_text_side(tmp_path):
    for name in ("first", "second"):
        learn(_captioned(80), tmp_path / name, encode=_encode, loss="ridge", seed=5)
    first, second = (
        TextProjection.load(tmp_path / name / "text_side.npz") for name in ("first", "second")
    )
    np.testing.assert_array_equal(first.linear, second.linear)


def test_learn__too_few_images(tmp_path):
    with pytest.raises(NotEnoughDataError, match="5 images"):
        learn(_captioned(5), tmp_path, encode=_encode, loss="ridge", seed=0)


def test_learn__unknown_loss(tmp_path):
    with pytest.raises(ConfigError, match="loss is not known"):
        learn(_captioned(), tmp_path, encode=_encode, loss="hinge", seed=0)


def test_read_captioned__captions_and_labels(tmp_path):
    np.save(tmp_path / "v.npy", np.ones((2, 4), np.float16))
    (tmp_path / "t.jsonl").write_text(
        '{"captions": ["a dog", "a pet"]}\n{"label": "owl", "split": "test"}\n'
    )
    given = read_captioned(tmp_path / "v.npy", tmp_path / "t.jsonl")
    assert given.texts[0] == ["a dog", "a pet"]
    assert "a photo of an owl" in given.texts[1]
    assert list(given.labels) == ["", "owl"]
    assert list(given.held_out) == [False, True]


def test_learn__marked_images_are_measured_on(tmp_path):
    given = _captioned(200)
    marked = CaptionedEmbeddings(
        embeddings=given.embeddings,
        texts=given.texts,
        labels=given.labels,
        where="here",
        held_out=[row >= 150 for row in range(200)],
    )
    result = learn(marked, tmp_path, encode=_encode, loss="ridge", seed=0)
    assert list(result.figures) == ["text to image recall@10 of 50"]


@pytest.mark.parametrize(
    ("embeddings", "texts", "said"),
    [
        (np.ones((2, 4)), '{"label": "owl"}\n{"id": 3}\n', "line 2"),
        (np.ones((3, 4)), '{"label": "owl"}\n', "one line of texts for every embedding"),
        # no pickles
        (np.array([{"a": 1}], dtype=object), '{"label": "owl"}\n', "cannot be read"),
    ],
)
def test_read_captioned__refused(tmp_path, embeddings, texts, said):
    np.save(tmp_path / "v.npy", embeddings, allow_pickle=True)
    (tmp_path / "t.jsonl").write_text(texts)
    with pytest.raises(DataError, match=said):
        read_captioned(tmp_path / "v.npy", tmp_path / "t.jsonl")
