import json
from dataclasses import replace

import pytest

from weakspot.core.errors import ModelError
from weakspot.testing.fakes import PlantedTextGenerator
from weakspot.words.captions import WordedAttribute
from weakspot.words.planning import (
    Cut,
    Planner,
    ProposedValue,
    built_in_attribute,
    class_nouns,
    cleaned,
    different,
    no_phrases,
    proposed_names,
    proposed_values,
    same_spelling,
    task_words,
    values_from_model,
    worded_phrases,
)
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


def test_worded_phrases__halves_in_turn_each_with_its_own_wordings():
    found = worded_phrases("place", ("on a beach", "on the sand", "by the sea"), (None, "apple"))
    assert found[::2] == (
        "a photo on a beach",
        "a photo of an apple on a beach",
        "a photo by the sea",
        "a photo of an apple by the sea",
    )
    assert (
        found[1::2]
        == ("a picture of an object on the sand", "a picture of an apple on the sand") * 2
    )


def test_worded_phrases__one_wording_differs_by_the_words_around_it():
    assert worded_phrases("adjective", ("icy",)) == (
        "a photo of an icy thing",
        "a picture of an icy object",
    )
    assert worded_phrases("sentence", ("a photo of one thing",)) == ("a photo of one thing",) * 2


def test_class_nouns__spread_over_the_classes_without_codes():
    assert class_nouns(["ant", "bee", "n0144", "cat", "dog", "3"], most=2) == ("ant", "cat")
    assert class_nouns(["n01", "n02"], most=4) == ()
    assert class_nouns(["ant"], most=0) == ()


CLASSES = ("disc", "square")


def _planted(prompt, schema):
    return json.loads(PlantedTextGenerator().generate(prompt, schema=schema))


def _names(answer, class_names=CLASSES):
    return proposed_names(
        lambda _prompt, _schema: answer, "", class_names, same_meaning=are_synonyms
    )


def test_proposed_names__of_a_language_model():
    assert set(proposed_names(_planted, "Sort shapes", CLASSES, same_meaning=are_synonyms)) == {
        "background",
        "lighting",
        "colour",
    }


def test_proposed_names__the_prompt_tells_task_and_classes_and_the_schema_the_form():
    asked = []
    proposed_names(
        lambda prompt, schema: asked.append((prompt, schema)) or {"attributes": ["pose"]},
        "Find shapes.",
        CLASSES,
        same_meaning=are_synonyms,
    )
    prompt, schema = asked[0]
    assert "Find shapes. The classes are: disc, square." in prompt
    assert schema["required"] == ["attributes"]


def test_proposed_names__repeated_long_and_class_names_are_dropped():
    odd = [
        "Color",
        "colour",
        "disc",
        "",
        7,
        None,
        "a very long name of an attribute indeed",
        "couch",
        "sofa",
    ]
    assert _names({"attributes": odd}) == ("color", "couch")
    assert len(_names({"attributes": [f"attribute {letter}" for letter in "abcdefghijklmno"]})) == 8


@pytest.mark.parametrize(
    "answer",
    [None, "garbage", [], {"attributes": "colour"}, {"attributes": []}, {"other": ["colour"]}, 3],
)
def test_proposed_names__garbage_is_a_model_error(answer):
    with pytest.raises(ModelError, match="The language model"):
        _names(answer)


def test_values_from_model__of_one_attribute():
    found = values_from_model(_planted, "colour", "", ["cat", "dog"])
    assert set(found) == {"red", "orange", "yellow", "green", "blue", "purple", "pink", "white"}
    with pytest.raises(ModelError, match="list of values"):
        values_from_model(lambda _prompt, _schema: {"values": None}, "colour", "", CLASSES)


def test_task_words__many_classes_are_cut():
    said = task_words("", [f"class {number}" for number in range(100)])
    assert said.endswith("class 29 and 70 more.")


def test_built_in_attribute__by_name_other_name_or_meaning():
    assert built_in_attribute("color", are_synonyms).name == "colour"
    assert built_in_attribute("Object size", are_synonyms).name == "size in the image"
    assert built_in_attribute("scene", are_synonyms).name == "place"
    assert built_in_attribute("hair style", are_synonyms) is None


def _never(_first, _second):
    return False


def test_cleaned__plain_words_or_nothing():
    given = [
        "  The GREEN one. ",
        "n/a",
        "I don't know",
        "...",
        "in a kitchen",
        "x" * 41,
        "one two three four five",
        "Bird's-eye",
    ]
    assert [cleaned(answer) for answer in given] == [
        "green one",
        "",
        "",
        "",
        "kitchen",
        "",
        "",
        "bird's eye",
    ]


def test_same_spelling__american_british_plural_hyphen():
    assert same_spelling("Grey", "gray")
    assert same_spelling("berries", "berry")
    assert same_spelling("close-up", "close up")
    assert not same_spelling("grass", "gras")
    assert not same_spelling("bus", "bu")


def test_proposed_values__merged_by_spelling_and_meaning_most_frequent_word_stands():
    answers = ["sofa"] * 5 + ["couch"] * 2 + ["Sofas."] + ["tree"] * 3 + ["trees"] * 4
    found = proposed_values(answers, same_meaning=are_synonyms)
    assert found.values == (
        ProposedValue(value="sofa", count=8, merged=("couch", "sofas")),
        ProposedValue(value="trees", count=7, merged=("tree",)),
    )
    assert (found.n_usable, found.n_cut, found.is_yes_no) == (15, 0, False)


def test_proposed_values__rare_ones_are_kept_if_they_can_be_told():
    answers = ["red"] * 60 + ["blue"] * 37 + ["mauve", "green", "reddish blue"]
    known = {"purple": ("mauve",)}
    everything = proposed_values(answers, same_meaning=_never, known=known)
    assert [(each.value, each.count) for each in everything.values] == [
        ("red", 60),
        ("blue", 37),
        ("green", 1),
        ("purple", 1),
        ("reddish blue", 1),
    ]
    asked = []

    def can_be_told(words):
        asked.extend(words)
        return [word == "green" for word in words]

    found = proposed_values(answers, same_meaning=_never, known=known, can_be_told=can_be_told)
    assert [each.value for each in found.values] == ["red", "blue", "green", "purple"]
    assert (found.n_cut, asked) == (1, ["green", "reddish blue"])


def test_proposed_values__yes_and_no():
    found = proposed_values(["Yes", "no.", "yes", "yes", "maybe"], same_meaning=_never)
    assert found.is_yes_no
    assert [(each.value, each.count) for each in found.values] == [("yes", 3), ("no", 1)]
    only = proposed_values(["yes"] * 4, same_meaning=_never)
    assert [each.value for each in only.values] == ["yes"]


def test_proposed_values__ten_thousand_different_answers_are_cut():
    found = proposed_values(
        [f"thing {number}" for number in range(10_000)] + ["red", "red"],
        same_meaning=_never,
        cut=Cut(least_share=0),
    )
    assert found.values[0].value == "red"
    assert len(found.values) == Cut().most
    assert found.n_cut == 10_001 - Cut().most


def test_proposed_values__as_many_as_the_cut_allows():
    answers = [name for name in "abcdefgh" for _ in range(3)]
    assert len(proposed_values(answers, same_meaning=_never, cut=Cut(most=5)).values) == 5


@pytest.mark.parametrize("answers", [[], ["", "unknown", "?"]])
def test_proposed_values__empty_answers(answers):
    found = proposed_values(answers, same_meaning=_never)
    assert (found.values, found.n_usable, found.is_yes_no) == ((), 0, False)


def test_different__first_wording_stands():
    assert different(["Color", "colour", "the couch", "sofa", "", "size"], are_synonyms) == (
        "color",
        "couch",
        "size",
    )
