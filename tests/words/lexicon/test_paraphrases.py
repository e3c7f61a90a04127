import pytest
from tests import build

from weakspot.words.captions import Caption
from weakspot.words.meanings import (
    addition_of,
    is_noun,
    noun_forms,
    parts_of,
    plural,
    title_of,
    wordings,
)


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


@pytest.mark.parametrize(
    ("noun", "expected"),
    build.pairs(
        "shoe: shoes, box: boxes, strawberry: strawberries, toy: toys, police woman: police "
        "women, goldfish: goldfish, deer: deer, bus: buses, Satsumas: Satsumas, oat milk: oat "
        "milk"
    ),
)
def test_plural__reads_as_english(noun, expected):
    assert plural(noun) == expected


@pytest.mark.parametrize(
    ("caption", "class_name", "expected"),
    [
        (Caption(noun="shoe", adjective="black"), "Shoe", "black shoes"),
        (Caption(noun="car", place="with text on it"), "car", "cars with text on them"),
        (Caption(noun="dog", place="with its young"), "dog", "dogs with their young"),
        (
            Caption(noun="apple", adjective="green", place="in a fridge"),
            "apple",
            "green apples in a fridge",
        ),
        (Caption(noun="cat", look="blurry photo"), "cat", "blurry photos of cats"),
        (Caption(noun="poodle"), "dog", "poodles (dog)"),
        (Caption(noun="golden delicious apple"), "apple", "golden delicious apples"),
        (Caption(noun="sports car", adjective="red"), "sports_car", "red sports cars"),
    ],
)
def test_title_of__class_and_words_in_english_order(caption, class_name, expected):
    assert title_of(caption, class_name) == expected


@pytest.mark.parametrize("class_name", ["n01440764", "class3", "Äpfel", "xqzt", "+", ""])
def test_title_of__a_class_that_is_no_english_noun__has_none(class_name):
    assert not is_noun(class_name)
    assert title_of(Caption(noun=class_name.lower(), adjective="green"), class_name) == ""


def test_title_of__samples_that_lack_a_label__have_none():
    assert title_of(Caption(noun=None, place="in a kitchen"), "apple") == ""
