"""Pictures to compose from: planted shapes whose masks are known by their paint, in a folder or in memory."""

import cv2
import numpy as np
import pytest
from PIL import Image

from weakspot.core.own_pictures import OwnPictures
from weakspot.media.pictures import UnreadablePictureError
from weakspot.testing.renderer import PAINT, render
from weakspot.testing.scenes import Scene

PLACES = {"grass": "grassy", "bricks": "brick", "stripes": "striped"}


def planted(kind="disc", *, colour="red", background="plain", instance=0, side=128, size="large"):
    scene = Scene(kinds=(kind,), colour=colour, size=size, background=background, instance=instance)
    return render(scene, side=side, marked=False)


def true_mask(picture, colour):
    """The shape by its paint, and the outline around it."""
    pixels = np.asarray(picture).astype(float)
    paint = np.linalg.norm(pixels - np.array(PAINT[colour]), axis=2) < 60
    width = 2 * round(0.13 * 0.185 * picture.height) + 1
    return cv2.dilate(paint.astype(np.uint8), np.ones((width, width), np.uint8)) > 0


def backdrop_picture(name, instance, side=128):
    """A picture of a place without any object: the planted texture around a small shape, mirrored over it."""
    pixels = np.asarray(planted("disc", background=PLACES[name], instance=instance, side=side, size="small")).copy()
    half = pixels[: side // 3]
    pixels = np.concatenate([half, half[::-1], half], axis=0)
    return Image.fromarray(np.ascontiguousarray(pixels[:side]))


@pytest.fixture
def own():
    """Discs and stars on plain ground, places in three textures, one broken picture of each, and a class without pictures."""
    pictures = {
        f"{kind}-{colour}-{number}": planted(kind, colour=colour, instance=number)
        for kind in ("disc", "star")
        for colour in ("red", "blue")
        for number in range(3)
    }
    pictures |= {f"{place}-{number}": backdrop_picture(place, number) for place in PLACES for number in range(3)}

    def picture(name):
        if name.endswith("broken"):
            raise UnreadablePictureError("damaged")
        return pictures[name]

    def objects(class_name):
        return [name for name in [*pictures, "disc-broken", "star-broken"] if name.startswith(class_name)]

    def backgrounds(words):
        return [f"{words}-broken", *(name for name in pictures if name.startswith(f"{words}-"))] if words in PLACES else []

    return OwnPictures(
        class_names=("disc", "star", "heart"),
        objects=objects,
        backgrounds=backgrounds,
        background_words=tuple(PLACES),
        picture=picture,
        mask=lambda name: None,
        digest="planted",
    )


@pytest.fixture
def shapes():
    """Makes planted pictures, finds their masks."""
    return planted, true_mask
