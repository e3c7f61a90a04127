"""Prompts: the baseline, what a class is a kind of, and captions added to it."""

import pytest

from weakspot.core.errors import ConfigError
from weakspot.generate.search.sentences import (
    SPOKEN_KINDS,
    baseline_prompt,
    caption_of,
    parent_of,
    sentences_of,
    wordnet_hierarchy,
)


@pytest.mark.parametrize(
    ("class_name", "parent"),
    [
        ("fly", "insect"),
        ("Persian cat", "domestic animal"),
        ("crayfish", "crustacean"),
        ("saltshaker", "container"),
        ("apple", "fruit"),
        ("school_bus", "public transport"),
        ("chicken", "bird"),
    ],
)
def test_parent_of__is_a_word_that_people_say(class_name: str, parent: str) -> None:
    assert parent_of(class_name) == parent
    assert parent in SPOKEN_KINDS


def test_parent_of__the_other_classes_decide_between_meanings() -> None:
    assert parent_of("crane") == "device"
    assert parent_of("crane", other_classes=["crane", "heron", "sparrow"]) == "bird"
    assert parent_of("crayfish", other_classes=["bread", "cheese"]) == "seafood"


def test_parent_of__a_given_parent_wins_and_an_unknown_class_has_none() -> None:
    assert parent_of("fly", parents={"fly": "Dipterous_Insect"}) == "dipterous insect"
    assert parent_of("xq7", other_classes=["fly", "bee"]) is None


def test_wordnet_hierarchy__puts_classes_under_the_parent_of_their_prompt() -> None:
    tree = wordnet_hierarchy(["fly", "bee", "sparrow", "xq7"], parents={"sparrow": "songbird"})
    assert tree.parent("fly") == tree.parent("bee") == "insect"
    assert tree.parent("sparrow") == "songbird"
    assert tree.parent("xq7") == "xq7"


@pytest.mark.parametrize("template", ["a photo", "a photo of {a thing}", "a photo of {parent}"])
def test_baseline_prompt__refuses_a_template_without_the_class(template: str) -> None:
    with pytest.raises(ConfigError, match="must name the class"):
        baseline_prompt("fly", template=template)


def test_sentences_of__undoes_caption_of_and_survives_captioners() -> None:
    sentences = ("it is on a flower", "the background is green")
    assert sentences_of(caption_of(sentences)) == sentences
    assert sentences_of("The sky is blue!\nthe sky is blue.  ... It has 2.5 wings.") == (
        "the sky is blue",
        "it has 2.5 wings",
    )
    assert sentences_of(" . ") == ()
