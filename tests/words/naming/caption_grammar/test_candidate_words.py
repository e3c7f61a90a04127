import numpy as np
import pytest

from weakspot.core.assistants import Assistants
from weakspot.core.errors import ModelError, UnavailableError
from weakspot.core.failures import Side
from weakspot.words.caption_grammar import (
    CaptionGrammarDescriber,
    proposed_words,
    without_own_words,
)
from weakspot.words.captions import ClassWords

BARE = CaptionGrammarDescriber(adjectives=(), places=(), n_kinds=0)


def test_words_for__words_the_text_side_does_not_know_are_no_candidates():
    sources = CaptionGrammarDescriber(class_words={"poodle": {"adjectives": ["shorn"]}}, n_kinds=5)

    def trust(texts):
        return np.array([0.9 if text in ("green", "on a table") else 0.1 for text in texts])

    for side in (None, Side.ABSENT):
        words = sources.words_for("poodle", side, Assistants(trust=trust))
        assert words == ClassWords(adjectives=("green", "shorn"), places=("on a table",))
    everything = sources.words_for("poodle", None, Assistants(trust=lambda _: None))
    assert everything == sources.words_for("poodle", None)


def test_words_for__built_in_ancestors_kinds_and_given():
    sources = CaptionGrammarDescriber(
        class_words={
            "poodle": {"places": ["at a show"]},
            "animal": ClassWords(adjectives=("shorn",)),
        },
        n_kinds=5,
    )
    words = sources.words_for("Poodle", None)
    assert {"green", "furry", "shorn"} <= set(words.adjectives)
    assert {"on a table", "behind a fence", "at a show"} <= set(words.places)
    assert words.nouns[:1] == ("toy poodle",)
    assert "shorn" not in sources.words_for("car", None).adjectives


def test_words_for__own_words_instead_of_the_built_in_ones():
    assert BARE.words_for("dog", None) == ClassWords()
    only_places = CaptionGrammarDescriber(adjectives=("green",), n_kinds=0).words_for("dog", None)
    assert only_places.adjectives == ("green",)
    assert "behind a fence" in only_places.places


def test_words_for__samples_that_lack_a_class_get_no_words_of_it():
    def refuse(prompt, _schema):
        raise AssertionError(prompt)

    words = CaptionGrammarDescriber(n_kinds=5, n_proposed=5).words_for(
        "dog", Side.ABSENT, Assistants(propose=refuse)
    )
    assert words.nouns == ()
    assert "behind a fence" not in words.places
    assert "green" in words.adjectives


def test_without_own_words__no_orange_orange():
    words = ClassWords(
        adjectives=("orange", "green"),
        nouns=("Orange", "navel orange"),
        places=("on an orange background",),
    )
    expected = ClassWords(
        adjectives=("green",), nouns=("navel orange",), places=("on an orange background",)
    )
    assert without_own_words(words, "orange") == expected


def test_proposed_words__of_a_language_model():
    seen = []

    def propose(prompt, schema):
        seen.append((prompt, schema))
        return {
            "adjectives": ["Muddy", " muddy.", "very very very long words"],
            "places": ["in a  trench", "under a jeep"],
        }

    assert proposed_words("boot", propose, 9) == ClassWords(
        adjectives=("muddy",), places=("in a trench", "under a jeep")
    )
    assert "boot" in seen[0][0]
    assert seen[0][1]["required"] == ["adjectives", "places"]


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "Sure! Here is a list",
        7,
        [],
        {},
        {"adjectives": "green", "places": None},
        {"adjectives": [1, None, {}, ["green"]], "places": [True]},
        {
            "adjectives": ["", " ", "the", "<b>", "__import__('os')", "a; b"],
            "places": ["1", "{}", "in\x00", "../x"],
        },
    ],
)
def test_proposed_words__garbage_is_nothing(answer):
    assert proposed_words("boot", lambda _prompt, _schema: answer, 9) == ClassWords()


@pytest.mark.parametrize("error", [ModelError("no JSON"), UnavailableError("timed out")])
def test_proposed_words__nobody_answers(error):
    def propose(_prompt, _schema):
        raise error

    assert proposed_words("boot", propose, 9) == ClassWords()
