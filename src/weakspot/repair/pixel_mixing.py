"""Mixed training images: a part of one is put into another, and the labels are mixed as the areas are."""

from dataclasses import dataclass
from math import sqrt

import numpy as np
from PIL import Image


@dataclass(frozen=True, kw_only=True, eq=False)
class MixedImage:
    """A mixed image.

    Args:
        image: as large as the first of the two.
        share: how much of it is the first.
    """

    image: Image.Image
    share: float


def mixed_image(
    first: Image.Image,
    second: Image.Image,
    random: np.random.Generator,
    *,
    concentration: float = 1.0,
) -> MixedImage:
    """Return the first image with a rectangle of the second, at the same place of both.

    After Yun and others, *CutMix: Regularization Strategy to Train Strong Classifiers with Localizable Features* (2019): the middle
    of the rectangle is anywhere in the image, so a part of it may lie outside; the share is that of what can be seen.

    Args:
        first: what is covered.
        second: what covers; it is resized to the first.
        random: draws the share and the place.
        concentration: both parameters of the beta distribution that the share is drawn from.
    """
    width, height = first.size
    side = sqrt(1.0 - float(random.beta(concentration, concentration)))
    spans = []
    for length in (width, height):
        middle, half = int(random.integers(length)), int(length * side) // 2
        spans.append((max(middle - half, 0), min(middle + half, length)))
    (left, right), (top, bottom) = spans
    box = (left, top, right, bottom)
    mixed = first.convert("RGB")
    if left < right and top < bottom:
        mixed.paste(second.convert("RGB").resize(first.size).crop(box), box)
    covered = max(right - left, 0) * max(bottom - top, 0)
    return MixedImage(image=mixed, share=1.0 - covered / (width * height))
