import json

import pytest

from weakspot.core.errors import ModelError
from weakspot.testing.fakes import PlantedTextGenerator
from weakspot.words.planning import (
    built_in_attribute,
    proposed_names,
    task_words,
    values_from_model,
)
from weakspot.words.wordnet import are_synonyms

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
