from pathlib import Path

import numpy as np

from weakspot_lab.reproduce.directions.case import POOL, TEST, TRAIN, VALIDATION
from weakspot_lab.reproduce.directions.data_sets import celeba_rows, cifar_world, minority
from weakspot_lab.reproduce.photographs import CifarImages, ImageList
from weakspot_lab.reproduce.request import ReproduceRequest


class MeanColour:
    """An encoder of mean colours, without words."""

    encoder_id, dimension, image_side, has_text = "mean colour", 3, None, False

    def prepare(self, image):
        return np.asarray(image, dtype=np.float32)

    def embed_prepared(self, prepared):
        return np.stack([one.mean(axis=(0, 1)) for one in prepared])


def test_cifar_world__parts_and_numbers_of_subclasses():
    fine = np.arange(400) % 4
    images = CifarImages(
        superclasses=("fish", "large_flowers"),
        subclasses=("rose", "shark", "tulip", "ray"),
        images=np.repeat(np.arange(400) % 250, 32 * 32 * 3)
        .reshape(400, 32, 32, 3)
        .astype(np.uint8),
        coarse=np.array([1, 0, 1, 0])[fine],
        fine=fine,
        is_test=np.arange(400) >= 300,
    )
    world = cifar_world(images, MeanColour(), seed=0)
    assert world.names == ("shark", "ray", "rose", "tulip")
    assert world.subclasses[:4].tolist() == [2, 0, 3, 1]
    assert world.class_caption(1) == "a photo of large flowers"
    assert world.caption(0) == "a photo of a shark"
    counts = {split: len(world.case.rows(split)) for split in (TRAIN, VALIDATION, POOL, TEST)}
    assert counts[TEST] == 100
    assert 90 < counts[TRAIN] < 150
    assert 40 < counts[VALIDATION] < 80
    assert world.case.embeddings[7].tolist() == [7.0, 7.0, 7.0]


def test_celeba_rows__training_by_ratio_and_validation_even():
    draws = np.random.default_rng(0)
    images = ImageList(
        class_names=("old", "young"),
        values=("woman", "man"),
        paths=(Path("x"),) * 3000,
        labels=draws.integers(0, 2, 3000),
        attributes=draws.integers(0, 2, 3000),
        splits=np.array(["train", "validation", "test"])[np.arange(3000) % 3],
    )
    request = ReproduceRequest(paper="directions", out=Path("x"), data=Path("x"))
    used = images.only(celeba_rows(images, 4.0, request, 0))
    shares = {
        split: minority(used)[used.splits == split.value].mean() for split in (TRAIN, VALIDATION)
    }
    np.testing.assert_allclose([shares[TRAIN], shares[VALIDATION]], [0.2, 0.5], atol=0.01)
    assert (used.splits == "test").sum() == 1000
