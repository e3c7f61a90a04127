"""Images to compose from: planted shapes whose masks are known by their paint, in a folder or in memory."""

import cv2
import numpy as np
import pytest
from PIL import Image

from weakspot.core.generated import OwnImages
from weakspot.data.images import UnreadableImageError
from weakspot.testing.scenes import PAINT, Scene, render

PLACES = {"grass": "grassy", "bricks": "brick", "stripes": "striped"}


def planted(kind="disc", *, colour="red", background="plain", instance=0, side=128, size="large"):
    scene = Scene(kinds=(kind,), colour=colour, size=size, background=background, instance=instance)
    return render(scene, side=side, marked=False)


def true_mask(image, colour):
    """The shape by its paint, and the outline around it."""
    pixels = np.asarray(image).astype(float)
    paint = np.linalg.norm(pixels - np.array(PAINT[colour]), axis=2) < 60
    width = 2 * round(0.13 * 0.185 * image.height) + 1
    return cv2.dilate(paint.astype(np.uint8), np.ones((width, width), np.uint8)) > 0


def backdrop_image(name, instance, side=128):
    """An image of a place without any object: the planted texture around a small shape, mirrored over it."""
    pixels = np.asarray(
        planted("disc", background=PLACES[name], instance=instance, side=side, size="small")
    ).copy()
    half = pixels[: side // 3]
    pixels = np.concatenate([half, half[::-1], half], axis=0)
    return Image.fromarray(np.ascontiguousarray(pixels[:side]))


@pytest.fixture
def own():
    """Discs and stars on plain ground, places in three textures, one broken image of each, and a class without images."""
    images = {
        f"{kind}-{colour}-{number}": planted(kind, colour=colour, instance=number)
        for kind in ("disc", "star")
        for colour in ("red", "blue")
        for number in range(3)
    }
    images |= {
        f"{place}-{number}": backdrop_image(place, number)
        for place in PLACES
        for number in range(3)
    }

    def image(name):
        if name.endswith("broken"):
            raise UnreadableImageError("damaged")
        return images[name]

    def objects(class_name):
        return [
            name for name in [*images, "disc-broken", "star-broken"] if name.startswith(class_name)
        ]

    def backgrounds(words):
        return (
            [f"{words}-broken", *(name for name in images if name.startswith(f"{words}-"))]
            if words in PLACES
            else []
        )

    return OwnImages(
        class_names=("disc", "star", "heart"),
        objects=objects,
        backgrounds=backgrounds,
        background_words=tuple(PLACES),
        image=image,
        mask=lambda name: None,
        digest="planted",
        found=lambda name, _class_name: (
            np.ones((1, 1), dtype=np.float32)
            if name.endswith("broken")
            else true_mask(images[name], name.split("-")[1]).astype(np.float32),
            "",
        ),
    )


@pytest.fixture
def shapes():
    """Makes planted images, finds their masks."""
    return planted, true_mask
