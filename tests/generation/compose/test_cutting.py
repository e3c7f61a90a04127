import numpy as np
import pytest

from weakspot.generation.compose.cutting import Cut, CutQuality, cut_by_colours, cut_by_mask

GOOD = {
    "share": 0.2,
    "contact": 0.0,
    "largest": 1.0,
    "solidity": 0.9,
    "contrast": 40.0,
    "likeness": 0.1,
    "outline": 5.0,
}


def _overlap(first, second):
    return (first & second).sum() / (first | second).sum()


@pytest.mark.parametrize("background", ["plain", "gradient", "wavy", "grassy"])
@pytest.mark.parametrize(
    ("kind", "colour"), [("disc", "red"), ("star", "yellow"), ("heart", "purple")]
)
def test_cut_by_colours__finds_the_planted_shape(shapes, kind, colour, background):
    planted, true_mask = shapes
    image = planted(kind, colour=colour, background=background, instance=1)
    cut = cut_by_colours(np.asarray(image))
    assert isinstance(cut, Cut), cut
    assert _overlap(cut.alpha > 0.5, true_mask(image, colour)) > 0.75


@pytest.mark.parametrize("background", ["brick", "striped", "checked", "dotted"])
def test_cut_by_colours__is_right_or_refused_where_the_background_has_strong_edges(
    shapes, background
):
    planted, true_mask = shapes
    for kind in ("disc", "star", "cross", "triangle"):
        image = planted(kind, background=background, instance=2)
        cut = cut_by_colours(np.asarray(image))
        assert isinstance(cut, str) or _overlap(cut.alpha > 0.5, true_mask(image, "red")) > 0.6


def test_cut_by_colours__is_the_same_every_time(shapes):
    planted, _ = shapes
    pixels = np.asarray(planted("star", background="wavy"))
    first = cut_by_colours(pixels)
    cut_by_colours(np.asarray(planted("disc", background="grassy")))
    assert np.array_equal(first.alpha, cut_by_colours(pixels).alpha)


def test_cut_by_colours__works_for_tall_and_for_tiny_images(shapes):
    planted, true_mask = shapes
    tall = planted("disc", side=300).crop((60, 0, 240, 300))
    cut = cut_by_colours(np.asarray(tall))
    assert cut.alpha.shape == (300, 180)
    assert _overlap(cut.alpha > 0.5, true_mask(tall, "red")) > 0.8
    assert isinstance(cut_by_colours(np.zeros((4, 5, 3), np.uint8)), str)


def test_cut_by_colours__says_why_a_image_cannot_be_used(shapes):
    planted, _ = shapes
    flat = np.full((96, 96, 3), 128, dtype=np.uint8)
    assert cut_by_colours(flat) == "hardly anything was found"
    pixels = np.asarray(planted("disc", side=128))
    assert isinstance(cut_by_colours(pixels[:, 64:]), str)
    assert isinstance(cut_by_colours(pixels[44:84, 44:84]), str)


def test_cut_by_colours__does_not_take_a_heap(shapes):
    planted, _ = shapes
    tile = np.asarray(planted("disc", side=96))[24:72, 24:72]
    heap = np.tile(tile, (4, 4, 1))
    assert isinstance(cut_by_colours(heap), str)


@pytest.mark.parametrize(
    ("figures", "reason"),
    [
        ({"share": 0.01}, "hardly anything"),
        ({"share": 0.9}, "nearly the whole"),
        ({"contact": 0.3}, "beyond the edge"),
        ({"largest": 0.4}, "pieces"),
        ({"solidity": 0.2}, "frayed"),
        ({"contrast": 2.0}, "same colours"),
        ({"likeness": 0.5}, "more of the same"),
        ({"outline": 1.0}, "heap"),
        ({"aside": 0.8}, "not in the middle"),
        ({"stability": 0.3}, "disagree"),
    ],
)
def test_cut_quality__names_what_is_wrong(figures, reason):
    assert CutQuality(**GOOD).problem() == ""
    assert reason in CutQuality(**(GOOD | figures)).problem()


def test_cut_quality__outline_can_be_asked_for_less_strictly():
    patterned = CutQuality(**(GOOD | {"outline": 1.5}))
    assert patterned.problem()
    assert patterned.problem(least_outline=1.2) == ""


def test_cut_by_mask__takes_what_the_mask_says():
    pixels = np.random.default_rng(0).integers(0, 255, (60, 80, 3), dtype=np.uint8)
    mask = np.zeros((30, 40), dtype=np.uint8)
    mask[5:15, 10:30] = 255
    cut = cut_by_mask(pixels, mask)
    assert cut.box == (10, 20, 30, 60)
    assert cut_by_mask(pixels, np.zeros((30, 40), dtype=np.uint8)) == "the mask is empty"
