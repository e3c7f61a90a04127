import numpy as np
import pytest

from weakspot.words.caption_judging import N_REMEMBERED, Best, TextSide
from weakspot.words.captions import Caption


def _caption(*added):
    return Caption(noun="apple", added=tuple(("adjective", words) for words in added))


def _add(best, captions, scores, first=0):
    values = np.array(scores)
    best.add(captions, values, values, values, first)


def test_best__keeps_the_best_of_both_ends():
    captions = [_caption("red"), _caption("green"), _caption("blue")]
    for sign, expected in ((1, ["green", "red"]), (-1, ["blue"])):
        best = Best(sign=sign, most=2)
        _add(best, captions, [0.1, 0.9, -0.5])
        assert [one.caption.contrast for one in best.kept] == expected


def test_best__chunks_do_not_matter():
    draws = np.random.default_rng(0)
    captions = [
        _caption(*(f"word{number}" for number in draws.choice(8, size=size)))
        for size in draws.integers(1, 4, 400)
    ]
    scores = draws.normal(size=400)
    whole, pieces = (Best(sign=1, most=7, longer_gain=0.3) for _ in range(2))
    _add(whole, captions, scores)
    for start in range(0, 400, 13):
        _add(pieces, captions[start : start + 13], scores[start : start + 13], start)
    assert len(whole.kept) == 7
    assert pieces.kept == whole.kept


def test_best__what_only_adds_to_a_better_one_is_dropped():
    best = Best(sign=1, most=5, longer_gain=0.0)
    _add(best, [_caption("green", "small"), _caption("green"), _caption("small")], [0.8, 0.9, 0.1])
    assert [one.caption.contrast for one in best.kept] == ["green", "small"]
    # A better one that comes later drops those kept before.
    _add(best, [_caption("small")], [2.0], 3)
    assert [one.caption.contrast for one in best.kept] == ["small", "green"]


def test_best__longer_ones_must_earn_it():
    best = Best(sign=1, most=2, longer_gain=0.5)
    _add(best, [_caption("dark green"), _caption("red")], [1.4, 1.0])
    assert [one.caption.contrast for one in best.kept] == ["red", "dark green"]


def test_best__the_earlier_of_equals_wins():
    best = Best(sign=1, most=1, longer_gain=0.3)
    _add(best, [_caption("red"), _caption("green")], [0.5, 0.5000001])
    assert best.kept[0].caption.contrast == "red"


def test_best__none_wanted():
    best = Best(sign=1, most=0, longer_gain=0.3)
    _add(best, [_caption("red")], [0.5])
    assert best.kept == []


def test_text_side__asks_for_every_phrase_once():
    asked = []

    def embed(phrases):
        asked.extend(phrases)
        return np.array([[float(len(phrase)), 1.0] for phrase in phrases])

    texts = TextSide(embed, 2)
    first = texts.embeddings(["a", "bbb", "a"])
    assert first == pytest.approx(np.array([[1, 1], [3, 1], [1, 1]]) / np.sqrt([[2], [10], [2]]))
    assert texts.embeddings(["bbb"]) == pytest.approx(first[1:2])
    assert asked == ["a", "bbb"]


def test_text_side__remembers_only_so_many():
    n_asked = 0

    def embed(phrases):
        nonlocal n_asked
        n_asked += len(phrases)
        return np.ones((len(phrases), 2))

    texts = TextSide(embed, 2)
    many = [str(number) for number in range(N_REMEMBERED + 10)]
    texts.embeddings(many)
    texts.embeddings(many)
    assert n_asked == len(many) + 10
