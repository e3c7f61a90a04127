import pytest
from tests import build

from weakspot.words.meanings import (
    are_near,
    covers,
    mean_the_same,
    phrase_words,
    same_contrast,
    says_more,
)


@pytest.mark.parametrize(
    ("one", "other"),
    build.pairs(
        "with a label: with a watermark, boat: ship, boat: vessel, yellow: golden, on the "
        "grass: on a grassy background, green: green"
    ),
)
def test_are_near__either_may_stand_for_the_other(one, other):
    assert are_near(one, other)
    assert are_near(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [("truck", "ship"), ("red", "blue"), ("red", "orange"), ("dark", "bright"), ("horse", "running"), ("painting", "pixelated")],
)  # fmt: skip
def test_are_near__rivals(one, other):
    assert not are_near(one, other)
    assert not are_near(other, one)


def test_says_more__one_way_only():
    assert says_more("sketch", "bright")
    assert not says_more("bright", "sketch")
    assert not says_more("sketch", "sketch")


@pytest.mark.parametrize(
    ("first", "second"),
    build.pairs(
        "grass: grassy, stripe: striped, stripes: striped, dot: dotted, wood: wooden, sun: "
        "sunny, wave: wavy, couch: sofas, Grey: gray"
    ),
)
def test_mean_the_same__synonyms_and_words_made_from_others(first, second):
    assert mean_the_same(first, second)
    assert mean_the_same(second, first)


@pytest.mark.parametrize(
    ("first", "second"),
    [("grass", "glass"), ("green", "greed"), ("red", "ready"), ("", "y"), ("car", "card")],
)
def test_mean_the_same__other_words(first, second):
    assert not mean_the_same(first, second)


def test_phrase_words__lemmas_without_articles():
    assert phrase_words("on the Left of a striped background") == {"left", "striped", "background"}
    assert phrase_words("is_green") == {"green"}
    assert phrase_words("") == frozenset()


def test_covers__every_wanted_word_has_its_like():
    assert covers({"small", "crimson"}, {"red"})
    assert not covers({"small"}, {"small", "red"})
    assert not covers({"small"}, set())


def test_same_contrast__word_for_word_or_by_synonyms():
    assert same_contrast("green", "Green")
    assert same_contrast("on the grass", "on a grassy background")
    assert same_contrast("on a sofa", "on a couch")
    assert not same_contrast("green", "green, blurry")
    assert not same_contrast("", "green")
