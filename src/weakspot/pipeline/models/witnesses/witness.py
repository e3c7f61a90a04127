"""What every witness has: a part that looks at images, and what can be read off what it said of one."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
from PIL import Image

Judge = Callable[[str], float]
"""What was said of an image to how surely something is seen there, 0 to 1."""
SEEN = 0.5
"""From this on a witness has seen it; every scale is set so on photographs that no figure is given for."""


class Looker(Protocol):
    """A part that says something of images; it may have to travel to another process."""

    @property
    def witness_id(self) -> str:
        """Name and hash: what it says is kept by it."""

    @property
    def image_side(self) -> int | None:
        """Shortest image side in pixels that it makes use of; None for full size."""

    def speak(self, images: Sequence[Image.Image]) -> list[str]:
        """Return one text an image, never empty."""


class Witness(Protocol):
    """Somebody who can tell certain words from what a part said of an image."""

    @property
    def kind(self) -> str:
        """What it is called in settings and notes."""

    @property
    def is_by_class(self) -> bool:
        """Whether images of different classes are looked at differently."""

    def looker(self, class_name: str) -> Looker:
        """Return the part that looks at images of a class."""

    def judge(self, words: str) -> Judge | None:
        """Return how it tells these words, or None if it cannot.

        Raises:
            UnavailableError: if names that it needs were never fetched and there is no package index.
        """

    def tags(self, said: str) -> Mapping[str, str]:
        """Return the value of each of its attributes, by name; empty where it is not sure."""

    def phrase(self, said: str) -> str:
        """Return what it would put into a caption; empty if nothing."""


def surely(probability: float, least: float) -> float:
    """Return a probability on the scale on which `least` is one half.

    >>> surely(0.1, 0.1), surely(1.0, 0.1), surely(0.0, 0.1)
    (0.5, 1.0, 0.0)
    """
    inside = probability * (1.0 - least)
    outside = least * (1.0 - probability)
    return inside / (inside + outside) if inside + outside > 0 else 0.0


def above(value: float, least: float, *, width: float) -> float:
    """Return how clearly a number lies above a bound: one half at it, three quarters about one `width` above.

    A negative width means below.

    >>> above(3.0, 3.0, width=1.0), above(2.0, 3.0, width=-1.0) > 0.7
    (0.5, True)
    """
    return float(1.0 / (1.0 + np.exp(np.clip((least - value) / width, -50.0, 50.0))))
