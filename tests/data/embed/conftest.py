import numpy as np
import pytest
from PIL import Image


class ColourEmbedder:
    """The mean colour of an image; a real embedder in every respect but cleverness."""

    encoder_id = "colour@1"
    dimension = 3
    image_side = 4
    has_text = True

    def __init__(self):
        self.batches = []
        self.asked = []

    def prepare(self, image):
        return np.asarray(image.resize((1, 1)), dtype=np.float32).reshape(3)

    def embed_prepared(self, prepared):
        self.batches.append(len(prepared))
        return np.stack(prepared)

    def embed_texts(self, texts):
        self.asked.append(list(texts))
        return np.array([[len(text), 0.0, 1.0] for text in texts], dtype=np.float32)


@pytest.fixture
def embedder():
    return ColourEmbedder()


@pytest.fixture
def images(tmp_path):
    """Five files; the second is no image and the fourth is missing."""
    for number in (0, 2, 4):
        Image.new("RGB", (20, 10), (number * 40, 7, 200)).save(tmp_path / f"{number}.png")
    (tmp_path / "1.png").write_bytes(b"not an image")
    return [str(tmp_path / f"{number}.png") for number in range(5)]
