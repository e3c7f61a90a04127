import pytest

from weakspot.words.paraphrases import addition_of, noun_forms, parts_of, wordings


@pytest.mark.parametrize(
    "phrase",
    [
        "green",
        "green apples",
        "a green apple",
        "Apples that are green",
        "an apple which is green",
        "a photo of green apples",
        "the apple is green",
    ],
)
def test_wordings__paraphrases_of_one_thing_are_one_hypothesis(phrase):
    assert wordings(phrase, "Apple") == ("green", "a green apple")


def test_addition_of__the_noun_inside_another_word_stays():
    assert addition_of("with a pineapple", "apple") == "with a pineapple"
    assert addition_of("Granny Smith apples", "Apple") == "Granny Smith"
    assert addition_of("apples", "apple") == "apples"


def test_noun_forms__of_names_with_several_words():
    assert noun_forms("school_bus") == ("school buses", "school bus")
    assert noun_forms("cherry") == ("cherries", "cherry")


def test_parts_of__a_single_word_has_none():
    assert parts_of("green apples", "apple") == ()
    assert parts_of("dark green apples on a shelf", "apple") == ("dark", "green", "shelf")
