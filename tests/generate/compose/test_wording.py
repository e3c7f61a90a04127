import pytest

from weakspot.core.errors import RefusedPromptError
from weakspot.core.generated import OwnImages
from weakspot.generate.compose.prompts import read_prompt

PLACES = {
    "grass": ("g1", "g2"),
    "table": ("t1", "g2"),
    "yellow flower": ("f1",),
    "kitchen": ("t1",),
    "striped": ("s1",),
    "outdoors": ("g1",),
}


def _images(**places):
    known = PLACES | places
    return OwnImages(
        class_names=(
            "Apple",
            "orange",
            "fly",
            "disc",
            "Golden-Delicious",
            "bus",
            "satsumas",
            "crane (bird)",
        ),
        objects=lambda class_name: (),
        backgrounds=lambda words: known.get(words, ()),
        background_words=tuple(known),
        image=lambda name: None,
        mask=lambda name: None,
        digest="none",
    )


@pytest.mark.parametrize(
    ("prompt", "class_name", "changes", "place"),
    [
        ("a photo of an apple with text on it", "Apple", {"text": "over"}, None),
        ("a photo of an apple. there is a watermark.", "Apple", {"text": "over"}, None),
        ("a photo of an apple upside down", "Apple", {"pose": "upside down"}, None),
        ("a tilted photo of an apple on grass", "Apple", {"pose": "tilted"}, "grass"),
        ("A photo of an apple on grass", "Apple", {}, "grass"),
        ("a photo of a green apple", "Apple", {"colour": "green"}, None),
        (
            "a photo of two small red discs in the dark",
            "disc",
            {"count": "two", "size": "small", "colour": "red", "light": "dark"},
            None,
        ),
        (
            "a photo of three large apples on the left",
            "Apple",
            {"count": "three", "size": "large", "position": "left"},
            None,
        ),
        ("a photo of apples", "Apple", {"count": "two"}, None),
        ("a photo of satsumas", "satsumas", {}, None),
        ("a photo of an orange apple", "Apple", {"colour": "orange"}, None),
        ("a photo of an orange", "orange", {}, None),
        ("a photo of a golden delicious on a table", "Golden-Delicious", {}, "table"),
        ("a blurry photo of an apple outdoors", "Apple", {"blur": "all"}, "outdoors"),
        ("a photo of a bus. there is grass. the bus is blue.", "bus", {"colour": "blue"}, "grass"),
        (
            "an apple, partly hidden, at night, in fog",
            "Apple",
            {"hiding": "part", "light": "dark", "weather": "fog"},
            None,
        ),
        ("a photo of a crane (bird) on grass", "crane (bird)", {}, "grass"),
        ("a black and white photo of an apple", "Apple", {"look": "grey"}, None),
        ("a photo of an apple on a grassy background", "Apple", {}, "grassy background"),
        ("a photo of an apple on its own background", "Apple", {}, "its own background"),
        ("a close-up photo of an apple", "Apple", {"size": "large"}, None),
        (
            "a realistic photograph of a fly (insect). it is on a yellow flower. the background is blurred. it is dark.",
            "fly",
            {"blur": "background", "light": "dark"},
            "yellow flower",
        ),
        (
            "a photo of one medium red disc in the middle of a striped background, in bright light",
            "disc",
            {
                "count": "one",
                "size": "medium",
                "colour": "red",
                "position": "middle",
                "light": "bright",
            },
            "striped background",
        ),
    ],
)
def test_read_prompt__finds_class_changes_and_place(prompt, class_name, changes, place):
    wanted = read_prompt(prompt, _images())
    assert (wanted.class_name, wanted.changes) == (class_name, changes)
    assert (wanted.place.words if wanted.place else None) == place


def test_read_prompt__colour_of_the_place_is_not_the_objects():
    wanted = read_prompt("a photo of a green apple on a yellow flower", _images())
    assert wanted.changes == {"colour": "green"}
    assert wanted.place.candidates == ("f1",)


def test_read_prompt__several_places_take_images_that_show_all():
    assert read_prompt("a photo of an apple on a table near grass", _images()).place.candidates == (
        "g2",
    )
    with pytest.raises(
        RefusedPromptError, match="No image shows all the places .* table and yellow flower"
    ):
        read_prompt("a photo of an apple on a table with a yellow flower", _images())


def test_read_prompt__whole_place_comes_before_its_parts():
    wanted = read_prompt(
        "a photo of an apple on a table in a kitchen", _images(**{"table in kitchen": ("both",)})
    )
    assert wanted.place.candidates == ("both",)


def test_read_prompt__snow_is_a_place_before_it_is_weather():
    assert read_prompt("a photo of an apple in the snow", _images()).changes == {"weather": "snow"}
    wanted = read_prompt("a photo of an apple in the snow", _images(snow=("w1",)))
    assert (wanted.changes, wanted.place.candidates) == ({}, ("w1",))


def test_read_prompt__plain_colour_is_painted_where_no_image_shows_it():
    assert (
        read_prompt("a photo of an apple on a white background", _images()).place.paint == "white"
    )
    assert (
        read_prompt("a photo of an apple. the background is green.", _images()).place.paint
        == "green"
    )
    shown = read_prompt(
        "a photo of an apple on a white background", _images(**{"white background": ("w1",)})
    ).place
    assert (shown.paint, shown.candidates) == ("", ("w1",))


@pytest.mark.parametrize(
    ("prompt", "named"),
    [
        ("a photo of a rotten apple with a hat on grass", ("'rotten'", "'with a hat'")),
        ("a photo of an apple, not dark", ("'not'",)),
        ("a photo of an apple on a dark wooden table", ("'on a dark wooden table'",)),
        ("a photo of an apple and a fly", ("'apple'",)),
        ("a photo of an apple behind a fence", ("'behind a fence'",)),
        ("a painting of an apple", ("'painting'",)),
        ("a photo of four apples", ("'four'",)),
        ("a photo of an apple without grass", ("'without grass'",)),
    ],
)
def test_read_prompt__names_every_word_that_it_cannot_draw(prompt, named):
    with pytest.raises(RefusedPromptError) as refused:
        read_prompt(prompt, _images())
    assert all(words in refused.value.what for words in named)
    assert refused.value.given == prompt


def test_read_prompt__says_when_there_are_no_backgrounds():
    none = OwnImages(
        class_names=tuple(f"kind {number}" for number in range(40)),
        objects=lambda class_name: (),
        backgrounds=lambda words: (),
        background_words=(),
        image=lambda name: None,
        mask=lambda name: None,
        digest="none",
    )
    with pytest.raises(
        RefusedPromptError, match="kind 29 and 10 more; backgrounds: plain ones only"
    ):
        read_prompt("a photo of a kind 3 on grass", none)


@pytest.mark.parametrize(
    "prompt", ["a photo of a dark and bright apple", "a photo of a red apple. it is blue."]
)
def test_read_prompt__refuses_contradictions(prompt):
    with pytest.raises(RefusedPromptError, match="two things"):
        read_prompt(prompt, _images())


@pytest.mark.parametrize("prompt", ["", "...", "a photo of a pear", "(apple"])
def test_read_prompt__refuses_prompts_without_a_class(prompt):
    with pytest.raises(RefusedPromptError, match="names no class"):
        read_prompt(prompt, _images())
