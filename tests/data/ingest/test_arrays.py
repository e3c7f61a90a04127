import io

import numpy as np
import pytest
from PIL import Image

from weakspot.core.errors import DataError
from weakspot.data.arrays import ArraySource

PIXELS = np.arange(2 * 4 * 5 * 3, dtype=np.uint8).reshape(2, 4, 5, 3)


def message_of(source) -> str:
    with pytest.raises(DataError) as caught:
        list(source.read())
    return str(caught.value)


def test_read__pixels_survive():
    samples = list(
        ArraySource(images=PIXELS, labels=["cat", "dog"], splits=["train", "dev"]).read()
    )
    for sample, pixels in zip(samples, PIXELS, strict=True):
        with Image.open(io.BytesIO(sample.data)) as image:
            assert image.format == "PNG"
            assert np.array_equal(np.asarray(image), pixels)
    assert [(sample.labels, sample.split) for sample in samples] == [
        (("cat",), "train"),
        (("dog",), "validation"),
    ]


def test_read__grey_lists_and_pillow_images():
    images = [PIXELS[0, ..., 0], PIXELS[0, ..., :1], Image.new("CMYK", (3, 3))]
    modes = [
        Image.open(io.BytesIO(sample.data)).mode for sample in ArraySource(images=images).read()
    ]
    assert modes == ["L", "L", "RGB"]


def test_read__codes_probabilities_and_metadata():
    source = ArraySource(
        images=PIXELS,
        labels=np.array([1, 0]),
        predictions=np.array([1, 1]),
        probabilities=np.array([[0.25, 0.75], [0.5, 0.5]], dtype=np.float32),
        class_names=("cat", "dog"),
        metadata={"age": np.array([3, 4]), "name": ["a", None]},
    )
    first, second = source.read()
    assert (first.labels, first.predictions, first.probabilities) == (
        ("dog",),
        ("dog",),
        {"cat": 0.25, "dog": 0.75},
    )
    assert (first.metadata, second.metadata) == ({"age": 3, "name": "a"}, {"age": 4, "name": None})
    assert [sample.key for sample in source.read(1)] == ["image 2"]


def test_read__every_problem_at_once():
    images = [PIXELS[0].astype(np.float32), PIXELS[0, 0, 0], PIXELS[0]]
    message = message_of(
        ArraySource(
            images=images, labels=[0, 1, 5], splits=["x", None, "test"], class_names=("a", "b")
        )
    )
    assert "Pixels are float32, not uint8" in message
    assert "shape (3,)" in message
    assert "The split 'x' is unknown" in message
    assert "The label '5' is none of the 2 classes" in message


def test_read__lengths_that_do_not_fit():
    message = message_of(
        ArraySource(
            images=PIXELS, labels=["a"], metadata={"age": [1, 2, 3]}, probabilities=[[1.0], [1.0]]
        )
    )
    assert "2 images but 1 values of 'labels'" in message
    assert "2 images but 3 values of 'age'" in message
    assert "Probabilities need class_names" in message
    assert "There are no images" in message_of(ArraySource(images=[]))


def test_fingerprint__depends_on_pixels_and_labels():
    first = ArraySource(images=PIXELS, labels=["a", "b"]).fingerprint()
    assert ArraySource(images=PIXELS.copy(), labels=["a", "b"]).fingerprint() == first
    assert ArraySource(images=PIXELS + 1, labels=["a", "b"]).fingerprint() != first
    assert ArraySource(images=PIXELS, labels=["a", "c"]).fingerprint() != first
    assert ArraySource(images=PIXELS, labels=["a", "b"]).count() == 2
