import dataclasses

import numpy as np
import pytest
from PIL import Image

from weakspot.core.errors import ModelError
from weakspot.generate.compose.generator import ComposeGenerator, typical_colours, typicality
from weakspot.generate.compose.placing import Cut


def test_typical_colours__tells_colours_of_the_middle_from_those_around(shapes):
    planted, true_mask = shapes
    images = [planted("disc", instance=number, background="grassy") for number in range(4)]
    typical = typical_colours(np.asarray(one) for one in images)
    alpha = true_mask(images[0], "red").astype(np.float32)
    inside = Cut(pixels=np.asarray(images[0]), alpha=alpha)
    assert typicality(typical, inside) > 0.5
    assert typicality(typical, dataclasses.replace(inside, alpha=1.0 - alpha)) < 0.0
    assert typicality(typical_colours([]), inside) == 0.0


def test_generate__does_not_take_a_label_for_the_object(own):
    label = Image.new("RGB", (128, 128), (214, 28, 36))
    label.paste((139, 135, 128), (40, 48, 88, 80))
    noise = np.random.default_rng(0).normal(0, 3, (128, 128, 3))
    label = Image.fromarray(np.clip(np.asarray(label) + noise, 0, 255).astype(np.uint8))
    middle = np.zeros((128, 128), dtype=np.float32)
    middle[48:80, 40:88] = 1.0
    names = ["label", *(f"disc-red-{number}" for number in range(3))]
    mixed = dataclasses.replace(
        own,
        objects=lambda class_name: names,
        image=lambda name: label if name == "label" else own.image(name),
        found=lambda name, kind: (middle, "") if name == "label" else own.found(name, kind),
    )
    compose = ComposeGenerator(side=64).with_images(mixed)
    found = compose.generate(["a photo of a disc"] * 8, seeds=range(8))
    assert "label" not in {one.parents[0] for one in found}


def test_generate__names_untypical_colours_among_the_reasons(own):
    names = ["a", "b"]
    corner = np.zeros((96, 96), dtype=np.float32)
    corner[4:20, 4:20] = 1.0
    plain = dataclasses.replace(
        own,
        objects=lambda class_name: names,
        image=_frames,
        found=lambda _name, _kind: (corner, ""),
    )
    with pytest.raises(ModelError, match="2 of 2 images were tried .2 times its colours are those"):
        ComposeGenerator(side=64).with_images(plain).generate(["a photo of a disc"], seeds=[0])


def _frames(name):
    pixels = np.full((96, 96, 3), 60, dtype=np.uint8)
    pixels[24:72, 24:72] = (200, 40, 40)
    return Image.fromarray(pixels)
