import numpy as np

from weakspot.core.arrays import generator
from weakspot.generate.own_images import ColourWords

COLOURS = ("red", "green", "blue")


def _words(n_green=6):
    """Return ten images, the last of them green, and words whose embeddings are axes; every image is near to red by itself."""
    images = np.zeros((10, 4), dtype=np.float32)
    images[:, 3] = 1.0
    images[:, 0] = 0.6
    images[10 - n_green :, 1] = 1.2
    images += 0.02 * generator(1, "colours").standard_normal(images.shape)

    def embed_texts(phrases):
        assert phrases == [f"a photo of a {colour} apple" for colour in COLOURS]
        return np.eye(3, 4, dtype=np.float32)

    return ColourWords(
        embeddings=images / np.linalg.norm(images, axis=1, keepdims=True),
        class_name="apple",
        colours=COLOURS,
        embed_texts=embed_texts,
    )


def test_rows__images_that_words_find():
    assert set(_words(4).rows("green").tolist()) <= {6, 7, 8, 9}
    assert len(_words(4).rows("green")) >= 3


def test_rows__too_few_are_none():
    assert _words(2).rows("green").tolist() == []
    assert _words(4).rows("blue").tolist() == []
