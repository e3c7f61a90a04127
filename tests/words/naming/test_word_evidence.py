from dataclasses import replace

import numpy as np
import pytest

from weakspot.core.arrays import unit_rows
from weakspot.core.assistants import Assistants
from weakspot.core.errors import ModelError
from weakspot.words.captions import plain_caption
from weakspot.words.word_choice import Fits, Members, look

WORDS = ("apple", "green", "red", "blurry")
PLAIN = plain_caption("apple")


def embed_texts(texts):
    return unit_rows(
        np.array([[float(word in text.split()) for word in WORDS] for text in texts]) + 1e-6
    )


def captions(*words):
    return [replace(PLAIN, adjective=word, added=(("adjective", word),)) for word in words]


def half(seed, *, n=40, green=0.9):
    draws = np.random.default_rng(seed)
    inside = np.arange(n) % 4 == 0
    values = 0.2 * draws.normal(size=(n, len(WORDS)))
    values[:, 0] += 1.0
    values[inside, 1] += green
    return Members(rows=np.arange(n), embeddings=values.astype(np.float32), inside=inside)


@pytest.fixture(scope="module")
def fits():
    return Fits.of(captions("red", "green", "blurry"), PLAIN, (half(0), half(1)), embed_texts)


def test_fits__the_word_that_sets_members_apart_lies_furthest(fits):
    assert np.argmax(fits.chosen) == np.argmax(fits.drawn[0]) == 1
    assert fits.fits_found(1) > 0.95
    assert fits.held(1).p_value < 1e-4 < fits.held(0).p_value
    assert fits.held(1).n_members == 10


def test_fits__beats_is_sure_of_the_truth_and_not_of_chance(fits):
    assert fits.beats(1, 0) == 1.0
    assert fits.beats(0, 1) == 0.0
    assert 0.02 < fits.beats(0, 2) < 0.98


def test_fits__chosen_reads_the_first_half_only():
    told = Fits.of(captions("red", "green"), PLAIN, (half(0), half(1)), embed_texts)
    other = Fits.of(captions("red", "green"), PLAIN, (half(0), half(2, green=-2.0)), embed_texts)

    assert np.array_equal(told.chosen, other.chosen)
    assert other.drawn[0, 1] < told.drawn[0, 1]


def test_fits__too_few_members_to_judge():
    few = half(1, n=12)
    assert Fits.of(captions("green"), PLAIN, (half(0), few), embed_texts).held(0) is None


def test_look__what_is_seen_in_members_and_in_others():
    members = half(0)
    seen = Assistants(seen=lambda rows, words: np.where(rows % 4 == 0, 0.8, 0.1).astype(np.float32))

    sight = look("green", members, seen, most=5)

    assert (sight.n_members, sight.n_others, sight.n_seen, sight.n_others_seen) == (5, 5, 5, 0)
    assert sight.auc == 1.0
    assert sight.members == pytest.approx(0.8)
    assert sight.held.n_fitting == 5


def test_look__nobody_who_can_tell():
    def fails(rows, words):
        raise ModelError("It is gone.")

    for seen in (
        None,
        fails,
        lambda rows, words: None,
        lambda rows, words: np.full(len(rows), np.nan),
    ):
        assert look("green", half(0), Assistants(seen=seen), most=5) is None


def test_look__an_answerer_is_asked_about_what_pixels_do_not_measure():
    asked = []

    def answers(rows, question):
        asked.append(question)
        return ["Yes, it is." if row % 4 == 0 else "no" for row in rows]

    nothing = lambda rows, words: np.zeros(len(rows), dtype=np.float32)  # noqa: E731
    both = Assistants(seen=nothing, answers=answers)

    assert look("green", half(0), both, most=8).auc == 1.0
    assert look("dark", half(0), both, most=8).auc == 0.5
    assert look("dark", half(0), Assistants(answers=answers), most=8).auc == 1.0
    assert asked == ["Is it green?", "Is it dark?"]


def test_look__an_answerer_who_does_not_know_leaves_it_to_others():
    told = Assistants(
        answers=lambda rows, question: ["unknown"] * len(rows),
        seen=lambda rows, words: (rows % 4 == 0).astype(np.float32),
    )
    assert look("green", half(0), told, most=8).auc == 1.0
