import numpy as np
import pytest

from weakspot.core.errors import DataError
from weakspot.testing.scenes import (
    FACTORS,
    KINDS,
    Scene,
    factors_of,
    scene_from_codes,
    scene_from_phrase,
)


def test_caption__tells_every_factor():
    scene = Scene(
        kinds=("cross",),
        colour="blue",
        size="small",
        background="brick",
        count="two",
        position="left",
        lighting="bright",
    )
    assert (
        scene.caption
        == "a photo of two small blue crosses on the left of a brick background, in bright light"
    )


def test_caption__several_kinds():
    scene = Scene(kinds=("disc", "star"), size="large", position="top", lighting="dark")
    expected = "a photo of one large red disc and one large red star at the top of a plain background, in the dark"
    assert scene.caption == expected


def test_codes__and_back():
    scene = Scene(
        kinds=("square", "ring"),
        colour="white",
        size="large",
        background="wavy",
        position="bottom",
        instance=9,
    )
    # square is bit 1 and ring is bit 5 of the mask: 2 + 32.
    assert scene.codes.tolist() == [34, 7, 2, 6, 0, 4, 0]
    assert scene_from_codes(scene.codes, instance=9) == scene


@pytest.mark.parametrize("seed", range(30))
def test_scene_from_phrase__a_caption_gives_its_scene_back(seed):
    scene = scene_from_phrase("", generator=np.random.default_rng(seed), instance=3)
    assert (
        scene_from_phrase(scene.caption, generator=np.random.default_rng(99), instance=3) == scene
    )


def test_scene_from_phrase__what_is_left_open_is_drawn():
    drawn = [
        scene_from_phrase("a red disc", generator=np.random.default_rng(seed)) for seed in range(40)
    ]
    assert {scene.kinds for scene in drawn} == {("disc",)}
    assert {scene.colour for scene in drawn} == {"red"}
    assert {scene.background for scene in drawn} == set(FACTORS["background"])


def test_scene_from_phrase__several_kinds_show_one_of_each():
    scene = scene_from_phrase("three stars and a disc", generator=np.random.default_rng(0))
    assert scene.kinds == ("disc", "star")
    assert scene.count == "one"


def test_factors_of__synonyms_plurals_and_unknown_words():
    assert factors_of("Two tiny circles on GRASS at night, shiny") == {
        "count": ("two",),
        "size": ("small",),
        "kind": ("disc",),
        "background": ("grassy",),
        "lighting": ("dark",),
    }
    assert factors_of("a red and blue disc") == {"colour": ("red", "blue"), "kind": ("disc",)}
    assert factors_of("") == {}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"colour": "beige"}, r"no colour 'beige'.*'red'"),
        ({"kinds": ()}, "known kinds"),
        ({"kinds": ("apple",)}, "known kinds"),
        ({"kinds": ("star", "disc")}, "order of KINDS"),
        ({"kinds": ("disc", "star"), "count": "two"}, "one object of each"),
    ],
)
def test_scene__refused(wrong, message):
    with pytest.raises(DataError, match=message):
        Scene(**wrong)


def test_vocabulary__no_value_stands_for_two_factors():
    values = [value for group in FACTORS.values() for value in group]
    assert len(values) == len(set(values)) == 38
    assert len(KINDS) == 8
