"""Pixels of any kind as images."""

import numpy as np
import pytest
from PIL import Image

from weakspot.core.errors import DataError
from weakspot.project.given import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    gather,
    make_project,
    pixels_of,
)
from weakspot.project.new_settings import recommended_settings

SHOWN = np.random.default_rng(2).integers(0, 256, (5, 7, 3), dtype=np.uint8)


@pytest.mark.parametrize(
    "given",
    [
        SHOWN,
        SHOWN / 255,
        SHOWN.astype(np.float64),
        np.moveaxis(SHOWN, -1, 0),
        (SHOWN / np.float32(255) - IMAGENET_MEAN) / IMAGENET_STD,
        np.moveaxis((SHOWN / np.float32(255) - IMAGENET_MEAN) / IMAGENET_STD, -1, 0),
    ],
)
def test_pixels_of__numbers_of_any_scale__the_same_image(given):
    assert np.abs(pixels_of(given).astype(int) - SHOWN).max() <= 1


def test_pixels_of__other_numbers__are_stretched():
    assert pixels_of(np.array([[-40.0, 60.0], [10.0, 10.0]])).tolist() == [[0, 255], [128, 128]]


@pytest.mark.parametrize(
    "given", [np.zeros(4), np.zeros((2, 2, 7)), np.array("a"), np.zeros((0, 3))]
)
def test_pixels_of__no_image__says_so(given):
    with pytest.raises(DataError, match="no image"):
        pixels_of(given)


def test_make_project__files_bytes_and_missing_images(tmp_path):
    Image.fromarray(SHOWN).save(tmp_path / "one.png")
    encoded = (tmp_path / "one.png").read_bytes()
    given = gather(
        labels=["a", "b", "a", "b"],
        predictions=["a", "b", "b", "b"],
        images=[tmp_path / "one.png", encoded, {"bytes": encoded, "path": None}, "gone.png"],
    )

    project = make_project(tmp_path / "made", given, None, recommended_settings())

    assert sum(project.ingest().quarantined.values()) == 1
    assert (tmp_path / "made" / "images" / "0000001.png").read_bytes() == encoded


def test_make_project__training_samples_without_embeddings__refused(tmp_path):
    given = gather(labels=["a"], predictions=["a"], embeddings=[[1.0, 0.0]])
    with pytest.raises(DataError, match="'train' have none"):
        make_project(tmp_path, given, gather(labels=["a"]), recommended_settings())
