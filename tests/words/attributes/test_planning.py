from dataclasses import replace

from weakspot.words.captions import WordedAttribute
from weakspot.words.planning import Planner, no_phrases
from weakspot.words.wordnet import are_synonyms

COLOUR = WordedAttribute(
    name="colour",
    question="What colour is it?",
    slot="adjective",
    values={"red": ("red", "crimson"), "green": ("green", "verdant")},
)
PLANNER = Planner(class_names=("cat", "dog"), same_meaning=are_synonyms)


def _answered(answers, *, name="colour", worded=COLOUR):
    return PLANNER.from_answers(name, answers, worded=worded, question="What?", source="built-in")


def test_built_in__all_values_with_phrases_in_two_halves():
    found = PLANNER.built_in(COLOUR)
    assert (found.name, found.column, found.source, found.question) == (
        "colour",
        "colour",
        "built-in",
        "What colour is it?",
    )
    assert found.values[0].phrases == ("a photo of a red thing", "a picture of a crimson object")


def test_built_in__nouns_of_classes_beside_anything():
    phrases = (
        Planner(class_names=(), same_meaning=are_synonyms, nouns=("cat",))
        .built_in(COLOUR)
        .values[1]
        .phrases
    )
    assert phrases == (
        "a photo of a green thing",
        "a picture of a verdant object",
        "a photo of a green cat",
        "a picture of a verdant cat",
    )


def test_from_answers__known_values_keep_their_words_and_new_ones_get_some():
    plan = _answered(["Crimson"] * 3 + ["green"] + ["beige"] * 2 + ["teal"])
    values = {value.value: value for value in plan.attribute.values}
    assert list(values) == ["red", "beige", "green", "teal"]
    assert values["red"].merged == ("crimson",)
    assert values["red"].phrases == ("a photo of a red thing", "a picture of a crimson object")
    assert values["beige"].phrases == ("a photo of a beige thing", "a picture of a beige object")
    assert plan.notes == ()


def test_from_answers__a_rare_answer_that_the_text_side_does_not_know__is_cut():
    careful = replace(PLANNER, can_be_told=lambda words: [word != "teal" for word in words])
    plan = careful.from_answers(
        "colour",
        ["red"] * 3 + ["beige"] + ["teal"],
        worded=COLOUR,
        question="What?",
        source="built-in",
    )
    assert [value.value for value in plan.attribute.values] == ["red", "beige"]
    assert plan.notes == (
        "Of the answers on 'colour', 1 different ones were rare and could not be told, or too many.",
    )


def test_from_answers__one_value_falls_back_to_the_built_in_ones_or_is_left_out():
    plan = _answered(["red"] * 5)
    assert [value.value for value in plan.attribute.values] == ["red", "green"]
    assert plan.notes == (
        "The attribute 'colour' has its built-in values: the only answer is 'red' (5 answers).",
    )
    unknown = _answered(["calm"] * 5, name="mood", worded=None)
    assert unknown.attribute is None
    assert (
        unknown.left_out.sentence
        == "The attribute 'mood' is left out: the only answer is 'calm' (5 answers)."
    )


def test_from_answers__empty_answers_and_no_answers():
    assert _answered(["", "unknown"], worded=None).left_out.why == "none of 2 answers says anything"
    assert _answered([], worded=None).left_out.why == "none of 0 answers says anything"
    assert (
        _answered([f"word {number}" for number in range(90)], worded=None).left_out.why
        == "no answer is frequent (90 answers)"
    )


def test_from_answers__values_that_are_the_classes():
    plan = _answered(["cat"] * 4 + ["dog"] * 4 + ["tree"] * 3, name="species", worded=None)
    assert plan.left_out.why == "its values are the classes themselves"


def test_from_answers__yes_and_no():
    plan = _answered(["yes"] * 4 + ["no"] * 2, name="glasses", worded=None)
    assert [(value.value, value.phrases) for value in plan.attribute.values] == [
        ("yes", ("a photo with glasses", "a picture that shows glasses")),
        ("no", no_phrases()),
    ]


def test_from_list__every_listed_value_is_kept():
    plan = PLANNER.from_list("mood", ["calm", "wild", "calm"], worded=None, question="?")
    assert [value.value for value in plan.attribute.values] == ["calm", "wild"]
    assert plan.attribute.values[1].phrases == (
        "a photo with a wild mood",
        "a picture in which the mood is wild",
    )
    assert plan.attribute.source == "proposed"
