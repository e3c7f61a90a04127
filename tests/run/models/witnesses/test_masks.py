import math

import pytest
from PIL import Image
from tests.run.models.witnesses.tiny_segmenter import CornerSegmenter

from weakspot.run.witnesses import MasksWitness

WITNESS = MasksWitness(segmenter=CornerSegmenter())


def _said(box=(40, 40, 60, 60), colour="green", behind="white"):
    image = Image.new("RGB", (100, 100), behind)
    if box:
        image.paste(Image.new("RGB", (box[2] - box[0], box[3] - box[1]), colour), box[:2])
    return WITNESS.looker("apple").speak([image])[0]


@pytest.mark.parametrize(
    ("words", "box", "colour", "behind"),
    [
        ("green", (30, 30, 70, 70), "green", "white"),
        ("gray", (30, 30, 70, 70), "grey", "white"),
        ("on a blue background", (30, 30, 70, 70), "white", "blue"),
        ("on a plain background", (30, 30, 70, 70), "red", "white"),
        ("far away", (45, 45, 60, 60), "red", "white"),
        ("fills the frame", (5, 5, 95, 95), "red", "white"),
        ("close-up", (5, 5, 95, 95), "red", "white"),
        ("on the left", (5, 40, 30, 60), "red", "white"),
        ("on the right", (70, 40, 95, 60), "red", "white"),
        ("at the top", (40, 5, 60, 30), "red", "white"),
        ("at the bottom", (40, 70, 60, 95), "red", "white"),
        ("in the middle", (40, 40, 60, 60), "red", "white"),
        ("at the edge", (40, 60, 60, 100), "red", "white"),
    ],
)
def test_judge__seen(words, box, colour, behind):
    assert WITNESS.judge(words)(_said(box, colour, behind)) > 0.5


@pytest.mark.parametrize(
    "words",
    [
        "red",
        "white",
        "on a green background",
        "on a cluttered background",
        "fills the frame",
        "on the left",
        "at the edge",
    ],
)
def test_judge__not_seen(words):
    assert WITNESS.judge(words)(_said((42, 42, 75, 75), "green")) < 0.5


def test_judge__colour_of_the_object_not_of_the_image():
    small_red_on_green = _said((40, 40, 60, 60), "red", "green")

    assert WITNESS.judge("red")(small_red_on_green) > 0.9
    assert WITNESS.judge("green")(small_red_on_green) < 0.1


@pytest.mark.parametrize(
    "words", ["with text", "striped", "on a brick background", "small", "background"]
)
def test_judge__what_it_cannot_tell(words):
    assert WITNESS.judge(words) is None


def test_judge__refused_mask_tells_nothing():
    said = _said(None)

    assert math.isnan(WITNESS.judge("green")(said))
    assert WITNESS.tags(said) == {"object colour": "", "object in the frame": "", "background": ""}
    assert WITNESS.phrase(said) == ""


def test_tags__of_a_small_object():
    assert WITNESS.tags(_said((45, 45, 60, 60), "red")) == {
        "object colour": "red",
        "object in the frame": "small in the frame",
        "background": "plain",
    }
    assert WITNESS.phrase(_said(colour="red")) == "red object"


def test_looker__asks_for_the_class():
    segmenter = CornerSegmenter()
    witness = MasksWitness(segmenter=segmenter)
    witness.looker("pear").speak([Image.new("RGB", (20, 20))])

    assert segmenter.asked == ["pear"]
    assert "corner@1 pear" in witness.looker("pear").witness_id
