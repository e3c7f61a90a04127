import numpy as np

from weakspot.core.arrays import generator
from weakspot.generate.compose.prompts import COLOURS
from weakspot.generate.own_images import colour_likeness

PLACE = {colour: place for place, colour in enumerate(COLOURS)}


def _likeness(n_green):
    """Return ten images, the last of them green, and words whose embeddings are axes; every image is near to red by itself."""
    images = np.zeros((10, len(COLOURS) + 1), dtype=np.float32)
    images[:, -1] = 1.0
    images[:, PLACE["red"]] = 0.6
    images[10 - n_green :, PLACE["green"]] = 1.2
    images += 0.02 * generator(1, "colours").standard_normal(images.shape)

    def embed_texts(phrases):
        assert phrases[PLACE["green"]] == "a photo of a green apple"
        return np.eye(len(COLOURS), len(COLOURS) + 1, dtype=np.float32)

    return colour_likeness(
        images / np.linalg.norm(images, axis=1, keepdims=True), "apple", embed_texts
    )


def test_colour_likeness__takes_images_that_words_find_and_too_few_are_none():
    green = _likeness(4).rows(PLACE["green"]).tolist()
    assert set(green) <= {6, 7, 8, 9}
    assert len(green) >= 3
    assert _likeness(2).rows(PLACE["green"]).tolist() == []
    assert _likeness(4).rows(PLACE["blue"]).tolist() == []
