"""The class that a phrase names."""

import pytest

from weakspot.core.errors import ConfigError
from weakspot.words.paraphrases import class_in


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
