"""A machine-readable strip along the top and bottom edge of planted images.

It holds the scene and its number, so that the fakes know exactly what is in an image without seeing. Sixteen grey cells a strip,
two bits a cell: it survives PNG, JPEG of good quality and changes of size. An image without it, or whose check sum is wrong, is
not from the planted world.
"""

import zlib

import numpy as np
from PIL import Image

from weakspot.core.arrays import AnyArray, ByteArray
from weakspot.core.errors import ModelError
from weakspot.testing.scenes import Scene, scene_from_codes

CELLS = 16
LEVELS = np.array([32, 96, 160, 224])
LEVEL_TOLERANCE = 28
GREY_TOLERANCE = 40
CODE_BITS = (8, 3, 2, 3, 2, 3, 2)
INSTANCE_BITS = 24
CHECK_BITS = 17
N_INSTANCES = 1 << INSTANCE_BITS


def strip_height(side: int) -> int:
    return max(side // CELLS, 1)


def write_marker(pixels: ByteArray, scene: Scene) -> ByteArray:
    """Return a copy of pixels [h, w, 3] with the scene written along its edges."""
    payload = _payload(scene)
    levels = np.array([payload >> 2 * place & 3 for place in range(2 * CELLS)])
    marked = pixels.copy()
    height = strip_height(pixels.shape[0])
    cell_of_column = np.arange(pixels.shape[1]) * CELLS // pixels.shape[1]
    marked[:height] = LEVELS[levels[:CELLS]][cell_of_column][None, :, None]
    marked[-height:] = LEVELS[levels[CELLS:]][cell_of_column][None, :, None]
    return marked


def read_marker(image: Image.Image) -> Scene:
    """Return the scene that a planted image shows.

    Raises:
        ModelError: if the image is not from the planted world.
    """
    pixels = np.asarray(image.convert("RGB"), dtype=np.float64)
    if min(pixels.shape[:2]) < CELLS:
        raise _foreign("it is smaller than 16 pixels")
    height = strip_height(pixels.shape[0])
    cells = np.concatenate([_cells(pixels[:height]), _cells(pixels[-height:])])
    greys = cells.mean(axis=1)
    levels = np.abs(greys[:, None] - LEVELS[None, :]).argmin(axis=1)
    if (
        np.abs(greys - LEVELS[levels]).max() > LEVEL_TOLERANCE
        or np.ptp(cells, axis=1).max() > GREY_TOLERANCE
    ):
        raise _foreign("its edges carry no marker")
    return _scene(sum(int(level) << 2 * place for place, level in enumerate(levels)))


def _cells(strip: AnyArray) -> AnyArray:
    edges = np.linspace(0, strip.shape[1], CELLS + 1)
    margin = (edges[1] - edges[0]) / 4
    spans = [(int(np.floor(low + margin)), int(np.ceil(low + 3 * margin))) for low in edges[:-1]]
    return np.stack([strip[:, low:high].mean(axis=(0, 1)) for low, high in spans])


def _payload(scene: Scene) -> int:
    value, shift = 0, 0
    for code, bits in zip(
        [*scene.codes, scene.instance % N_INSTANCES], [*CODE_BITS, INSTANCE_BITS], strict=True
    ):
        value |= int(code) << shift
        shift += bits
    return value | _check_sum(value) << shift


def _scene(payload: int) -> Scene:
    n_bits = sum(CODE_BITS) + INSTANCE_BITS
    content, check = payload & (1 << n_bits) - 1, payload >> n_bits
    if check != _check_sum(content):
        raise _foreign("its marker has a wrong check sum")
    codes = []
    for bits in CODE_BITS:
        codes.append(content & (1 << bits) - 1)
        content >>= bits
    return scene_from_codes(np.array(codes, dtype=np.uint8), instance=content)


def _check_sum(content: int) -> int:
    return zlib.crc32(b"planted" + content.to_bytes(8, "big")) & (1 << CHECK_BITS) - 1


def _foreign(reason: str) -> ModelError:
    return ModelError(
        f"This image is not from the planted world: {reason}.",
        fix="The planted models are test doubles. Choose a real model for your own images.",
    )
