from io import BytesIO

import numpy as np
import pytest
from PIL import Image, ImageEnhance

from weakspot.generate.quality import Fingerprint, fingerprint_of
from weakspot.testing.fakes import PlantedImageGenerator

PROMPTS = (
    "a disc",
    "a green disc",
    "one small red disc on the left of a plain background in normal light",
)


def _images(prompt, n, side=64):
    return [
        made.image
        for made in PlantedImageGenerator(side=side).generate([prompt] * n, seeds=list(range(n)))
    ]


def test_text__and_back():
    for image in _images("a disc", 3):
        found = fingerprint_of(image)
        assert Fingerprint.from_text(found.text) == found
    for nothing in ("", "zz", "zz" * 200, "00" * 199):
        assert Fingerprint.from_text(nothing) is None


@pytest.mark.parametrize("prompt", PROMPTS)
def test_is_near__different_images_of_a_prompt_are_not(prompt):
    found = [fingerprint_of(image) for image in _images(prompt, 40)]
    assert not any(
        one.is_near(other, 3) for place, one in enumerate(found) for other in found[:place]
    )


@pytest.mark.parametrize("prompt", PROMPTS)
def test_is_near__copies_are(prompt):
    for image in _images(prompt, 5, side=128):
        stream = BytesIO()
        image.save(stream, "JPEG", quality=90)
        noise = np.random.default_rng(0).integers(-3, 4, (128, 128, 3))
        noisy = Image.fromarray((np.asarray(image) + noise).clip(0, 255).astype(np.uint8))
        brighter = ImageEnhance.Brightness(image).enhance(1.02)
        for copy in (image, Image.open(stream), noisy, brighter):
            assert fingerprint_of(image).is_near(fingerprint_of(copy), 3)


def test_is_near__the_same_drawing_in_another_colour_is_not():
    red, blue = (fingerprint_of(Image.new("RGB", (32, 32), colour)) for colour in ("red", "blue"))
    assert (red.bits ^ blue.bits).bit_count() == 0
    assert not red.is_near(blue, 64)


def test_is_near__the_same_colours_in_another_pattern_are_not():
    """Faint patterns look alike in every colour; only the bits tell them apart."""
    random = np.random.default_rng(0)
    first, second = (
        fingerprint_of(
            Image.fromarray(random.integers(124, 132, (32, 32), dtype=np.uint8)).convert("RGB")
        )
        for _ in range(2)
    )
    assert (first.bits ^ second.bits).bit_count() > 20
    assert not first.is_near(second, 20)
    # Exactly as many bits as allowed may differ.
    third = Fingerprint(bits=first.bits ^ 0b111, colours=second.colours)
    assert first.is_near(third, 3)
    assert not first.is_near(third, 2)
