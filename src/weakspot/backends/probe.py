"""Pictures of noise, the same on every machine, that a model is tried on once when it is loaded."""

import numpy as np
from PIL import Image

from weakspot.core.seeding import generator

N_PICTURES = 2


def probe_pictures(height: int, width: int) -> list[Image.Image]:
    """Return two pictures of noise with different brightness."""
    noise = generator(0, "model probe").integers(0, 128, size=(N_PICTURES, height, width, 3), dtype=np.uint8)
    return [Image.fromarray(pixels + np.uint8(100 * number)) for number, pixels in enumerate(noise)]
