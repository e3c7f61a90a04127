"""A person's words as rules: values of columns and words of captions."""

import numpy as np
import pytest

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.rules import AllOfRule, ColumnRule
from weakspot.core.samples import SampleSet
from weakspot.words.caption_rule import CaptionRule, spoken_rule
from weakspot.words.meanings import class_in

COLOURS = ["red", "Green", "red", "Green"]
COLUMNS = {
    "colour": COLOURS,
    "size of it": ["sand and sea", "small", "small", "large"],
    "age": [1, 2, 3, 4],
    "night": [True, False, True, False],
    "fog": ["yes", "no", "no", "no"],
    "site": ["north", "red-hot", "north", "south"],
}


def _dataset(**further):
    columns = COLUMNS | further
    return dataset_from_columns(
        class_names=("a", "b"),
        labels=[0, 0, 1, 1],
        splits=["validation"] * 4,
        sample_ids=["s0", "s1", "s2", "s3"],
        metadata=columns,
    )


def _members(phrase, *, has_text_side=False, **further):
    dataset = _dataset(**further)
    rule = spoken_rule(phrase, dataset, has_text_side=has_text_side)
    samples = SampleSet(dataset=dataset, rows=np.arange(4))
    return rule.members(samples, np.arange(4)).tolist()


@pytest.mark.parametrize(
    ("phrase", "members"),
    [
        ("colour = red", [1, 0, 1, 0]),
        ("Colour is green", [0, 1, 0, 1]),
        ("colour == red and night = yes", [1, 0, 1, 0]),
        ("colour = red and age > 1", [0, 0, 1, 0]),
        ("size_of_it = sand and sea", [1, 0, 0, 0]),
        ("size of it = sand and sea and age <= 1", [1, 0, 0, 0]),
        ("age >= 3", [0, 0, 1, 1]),
        ("age < 3", [1, 1, 0, 0]),
        ("age = 2", [0, 1, 0, 0]),
        ("night = no", [0, 1, 0, 1]),
        ("fog", [1, 0, 0, 0]),
        ("no fog", [0, 1, 1, 1]),
        ("south", [0, 0, 0, 1]),
    ],
)
def test_spoken_rule__means_the_samples_with_these_values(phrase, members):
    assert _members(phrase) == [bool(one) for one in members]


def test_spoken_rule__caption_words_in_any_form():
    captions = ["wet roads at dusk", "a road, wet", "a tree", None]
    assert _members("wet road", caption=captions) == [True, False, False, False]
    assert _members("caption says road", has_text_side=True, caption=captions) == [
        True,
        True,
        False,
        False,
    ]
    assert _members("roads and trees", caption=["a road by a tree", "road", "tree", ""]) == [
        True,
        False,
        False,
        False,
    ]


def test_spoken_rule__words_are_left_to_embeddings_where_these_have_a_text_side():
    assert spoken_rule("green apples", _dataset(), has_text_side=True) is None
    assert spoken_rule("the sky is blue", _dataset(), has_text_side=True) is None
    assert spoken_rule("' OR 1=1 --", _dataset(), has_text_side=True) is None
    with pytest.raises(DataError, match="did you mean 'colour'"):
        spoken_rule("color = red", _dataset(), has_text_side=True)
    assert isinstance(spoken_rule("colour = red", _dataset(), has_text_side=True), ColumnRule)


def test_spoken_rule__kinds_of_rules():
    rule = spoken_rule("colour = red and size of it = small", _dataset(), has_text_side=False)
    assert isinstance(rule, AllOfRule)
    assert rule.columns == {"colour", "size of it"}
    said = spoken_rule("wet road", _dataset(caption=["x"] * 4), has_text_side=False)
    assert said == CaptionRule(words="wet road")


@pytest.mark.parametrize(
    ("phrase", "says"),
    [
        ("color = red", "no column 'color' \\(did you mean 'colour'\\?\\)"),
        ("colour = purple", "No sample has 'purple' in the column 'colour'.*Green, red"),
        ("colour > 3", "both must be numbers"),
        ("age > old", "both must be numbers"),
        ("shiny", "no column holds them.*colour = red and size = small"),
    ],
)
def test_spoken_rule__says_what_is_wrong_and_what_to_ask(phrase, says):
    with pytest.raises(DataError, match=says):
        spoken_rule(phrase, _dataset(), has_text_side=False)


def test_spoken_rule__a_value_of_two_columns_is_not_guessed():
    with pytest.raises(DataError, match='Several columns hold.*"colour = red" or "other = red"'):
        spoken_rule("red", _dataset(other=["red", "b", "b", "b"]), has_text_side=False)


@pytest.mark.parametrize(
    ("phrases", "names", "meant"),
    [
        (["green apples"], ["apple", "pear"], "apple"),
        (["Granny Smith apple", "apples in a bowl"], ["apple", "pear"], "apple"),
        (["a polar bear in the snow"], ["bear", "polar bear"], "polar bear"),
        (["fire trucks at night"], ["fire_truck", "car"], "fire_truck"),
        (["berries"], ["berry", "apple"], "berry"),
        (["green"], ["apple"], "apple"),
        (["pineapples"], ["apple", "pineapple"], "pineapple"),
    ],
)
def test_class_in__named(phrases, names, meant):
    assert class_in(phrases, names) == meant


@pytest.mark.parametrize("phrases", [["green"], ["apples and pears"], ["pineapple"]])
def test_class_in__none_or_several__says_which_there_are(phrases):
    with pytest.raises(ConfigError, match=r"--class NAME, one of apple, pear"):
        class_in(phrases, ["apple", "pear"])
