import io

import numpy as np
import pytest
from PIL import Image

from weakspot.core.errors import DataError, ModelError
from weakspot.testing.scenes import (
    FACTORS,
    KINDS,
    Scene,
    factors_of,
    read_marker,
    render,
    scene_from_codes,
    scene_from_phrase,
    write_marker,
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


def _scenes(n_scenes=25):
    random = np.random.default_rng(0)
    return [
        scene_from_phrase("", generator=random, instance=int(random.integers(1 << 24)))
        for _ in range(n_scenes)
    ]


def _through(image, **options):
    buffer = io.BytesIO()
    image.save(buffer, **options)
    return Image.open(buffer)


def test_read_marker__exact_through_files():
    for scene in _scenes():
        image = render(scene)
        assert read_marker(image) == scene
        assert read_marker(_through(image, format="PNG")) == scene
        for quality in (95, 75, 50):
            assert read_marker(_through(image, format="JPEG", quality=quality)) == scene


@pytest.mark.parametrize("side", [40, 100, 224, 301])
def test_read_marker__exact_after_resizing(side):
    for scene in _scenes(8):
        assert read_marker(render(scene).resize((side, side))) == scene
        assert read_marker(render(scene, side=max(side, 64))) == scene


@pytest.mark.parametrize(
    "pixels",
    [
        np.zeros((64, 64, 3)),
        np.full((64, 64, 3), 255),
        np.full((64, 64, 3), 32),
        np.random.default_rng(0).integers(0, 255, (64, 64, 3)),
        np.zeros((5, 5, 3)),
        np.zeros((1, 400, 3)),
    ],
)
def test_read_marker__foreign_images_are_refused(pixels):
    with pytest.raises(ModelError, match=r"not from the planted world.*Choose a real model"):
        read_marker(Image.fromarray(pixels.astype(np.uint8)))


def test_read_marker__unmarked_or_cropped_images_are_refused():
    with pytest.raises(ModelError, match="not from the planted world"):
        read_marker(render(Scene(), marked=False))
    with pytest.raises(ModelError, match="not from the planted world"):
        read_marker(render(Scene()).crop((0, 8, 64, 56)))


def test_read_marker__one_wrong_cell_breaks_the_check_sum():
    pixels = np.array(render(Scene()))
    pixels[:4, :4] = 224 if pixels[0, 0, 0] != 224 else 32
    with pytest.raises(ModelError, match="check sum"):
        read_marker(Image.fromarray(pixels))


def test_write_marker__only_the_edges_change():
    blank = np.full((64, 64, 3), 7, dtype=np.uint8)
    marked = write_marker(blank, Scene(instance=5))
    assert (marked[4:-4] == 7).all()
    assert (blank == 7).all()
    assert set(np.unique(marked[:4])) <= {32, 96, 160, 224}
