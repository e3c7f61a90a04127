"""Fingerprints of images: small, and close together for images that hardly differ."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from PIL import Image

from weakspot.core.arrays import DoubleArray

N_BITS = 64
MOST_COLOUR_DIFFERENCE = 12
_BITS_BYTES = N_BITS // 8
_WAVES_SIDE = 32
_COLOURS_SIDE = 8
_N_BYTES = _BITS_BYTES + 3 * _COLOURS_SIDE**2


@dataclass(frozen=True, kw_only=True)
class Fingerprint:
    """What an image looks like from far away.

    Args:
        bits: the signs of its 64 slowest waves of brightness.
        colours: mean red, green and blue of 8 by 8 places, row by row.
    """

    bits: int
    colours: bytes

    def is_near(self, other: "Fingerprint", n_bits: int) -> bool:
        """Return whether no more than so many bits differ and every colour is nearly the same."""
        if (self.bits ^ other.bits).bit_count() > n_bits:
            return False
        return all(
            abs(mine - yours) <= MOST_COLOUR_DIFFERENCE
            for mine, yours in zip(self.colours, other.colours, strict=True)
        )

    @property
    def text(self) -> str:
        return (self.bits.to_bytes(_BITS_BYTES, "big") + self.colours).hex()

    @classmethod
    def from_text(cls, text: str) -> "Fingerprint | None":
        """Return the fingerprint that a text stands for, None if it stands for none.

        >>> Fingerprint.from_text("") is None
        True
        """
        try:
            content = bytes.fromhex(text)
        except ValueError:
            return None
        if len(content) != _N_BYTES:
            return None
        return cls(bits=int.from_bytes(content[:_BITS_BYTES], "big"), colours=content[_BITS_BYTES:])


def fingerprint_of(image: Image.Image) -> Fingerprint:
    """Return the fingerprint of an RGB image.

    >>> fingerprint_of(Image.new("RGB", (32, 32), "red")).colours[:6].hex()
    'ff0000ff0000'
    """
    small = image.resize((_WAVES_SIDE, _WAVES_SIDE), Image.Resampling.BOX)
    grey = np.asarray(small.convert("L"), dtype=np.float64)
    waves = _waves()
    slow = (waves[:_BITS_BYTES] @ (grey - grey.mean()) @ waves[: _BITS_BYTES + 1].T).ravel()[
        1 : N_BITS + 1
    ]
    signs = np.packbits(slow > 0).tobytes()
    colours = small.resize((_COLOURS_SIDE, _COLOURS_SIDE), Image.Resampling.BOX)
    return Fingerprint(bits=int.from_bytes(signs, "big"), colours=colours.tobytes())


@lru_cache(maxsize=1)
def _waves() -> DoubleArray:
    places = np.arange(_WAVES_SIDE)
    return np.cos(np.pi * places[:, None] * (2 * places[None, :] + 1) / (2 * _WAVES_SIDE))
