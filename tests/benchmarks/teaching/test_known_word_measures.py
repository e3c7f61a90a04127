import numpy as np
import pytest
from known_word_measures import (
    ToldImages,
    card_page,
    card_rows,
    embed_images,
    measure_words,
)
from PIL import Image
from tests.models import tiny_pipelines as tiny

from weakspot.models.transformers.images import TransformersEmbedder

RED, GREEN = np.eye(2, dtype=np.float32)
ROWS = np.stack([RED, RED, GREEN, GREEN, (RED + GREEN) / 2])


def embed(texts):
    return np.stack([RED if "red" in text else GREEN for text in texts])


def told(on, truths, **more):
    return ToldImages(on=on, embeddings=ROWS, truths=truths, fewest=1, **more)


def test_measure_words__area_and_number_of_every_source():
    is_red = np.array([True, True, False, False, False])
    found = measure_words(
        [told("captions", {"red": ~is_red}), told("made", {"a red": is_red, "blue": is_red})],
        embed,
        ["red", "unseen"],
    )
    assert [(one.on, one.area, one.n_true) for one in found.pop("red")] == [
        ("captions", 0.0, 3),
        ("made", 1.0, 2),
    ]
    assert not found


def test_measure_words__only_what_is_compared_and_enough():
    is_red = np.array([True, True, False, False, False])
    among = np.array([True, False, True, False, True])
    (figure,) = measure_words([told("made", {"red": is_red}, compared={"red": among})], embed)[
        "red"
    ]
    assert (figure.area, figure.n_true) == (1.0, 1)
    few = ToldImages(on="few", embeddings=ROWS, truths={"red": is_red}, fewest=3)
    everything = told("all", {"red": np.ones(5, dtype=bool)})
    assert measure_words([few, everything], embed) == {}


def test_card__the_last_source_counts_and_what_is_bad_comes_first():
    is_red = np.array([True, True, False, False, False])
    figures = measure_words(
        [told("captions", {"red": ~is_red, "green": is_red}), told("made", {"red": is_red})], embed
    )
    rows = card_rows(["red", "green", "round"], figures, taught=lambda word: f"as {word}")
    assert [(row["word"], row["auc"], row["may_be_said"]) for row in rows] == [
        ("red", 1.0, True),
        ("green", 0.0, False),
        ("round", None, False),
    ]
    assert rows[0]["also"] == ["0.00 on 3 of captions"]
    page = card_page("Words of a toy", rows, ["It is a toy."]).splitlines()
    assert page[2].startswith("What it is still bad at: green (0.00).")
    assert page[3] == "It is a toy."
    assert "| made | red |" in page
    assert "Measured, and not said: green 0.00." in page
    assert page[-1] == "Not measured, so never said of itself: round."


@pytest.fixture(scope="module")
def tiny_clip(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clip")
    tiny.save_clip(folder)
    return TransformersEmbedder(model=str(folder))


def test_measure_words__a_clip_by_name(tiny_clip):
    """The same benchmark for any embedder: random weights tell nothing, and say so."""
    rng = np.random.default_rng(0)
    images = [Image.fromarray(rng.integers(0, 256, (40, 40, 3), dtype=np.uint8)) for _ in range(12)]
    rows = embed_images(images, tiny_clip)
    assert rows.shape == (12, tiny_clip.dimension)
    is_true = np.arange(12) < 6
    source = ToldImages(on="noise", embeddings=rows, truths={"with text": is_true}, fewest=5)
    (figure,) = measure_words([source], tiny_clip.embed_texts)["with text"]
    assert 0.0 <= figure.area <= 1.0
    assert figure.n_true == 6
