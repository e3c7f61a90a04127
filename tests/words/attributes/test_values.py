import pytest

from weakspot.words.planning import (
    Cut,
    ProposedValue,
    cleaned,
    different,
    proposed_values,
    same_spelling,
)
from weakspot.words.wordnet import are_synonyms


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
