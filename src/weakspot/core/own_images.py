"""A user's own images, as a generator that composes new ones from them may ask for them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image

from weakspot.core.arrays import FloatArray

ObjectsOf = Callable[[str], Sequence[str]]
BackgroundsFor = Callable[[str], Sequence[str]]
ImageOf = Callable[[str], Image.Image]
MaskOf = Callable[[str], Image.Image | None]
ColouredIn = Callable[[str, str], Sequence[str]]
FoundIn = Callable[[str, str], tuple[FloatArray, str]]


def nothing_found(_sample_id: str, _class_name: str) -> tuple[FloatArray, str]:
    """Refuse every image: there is no segmenter."""
    return (
        np.zeros((1, 1), dtype=np.float32),
        "it has no mask and no segmenter is configured ([segmenter] name)",
    )


def nothing_coloured(_class_name: str, _colour: str) -> tuple[str, ...]:
    """Know no colour of any image."""
    return ()


@dataclass(frozen=True, kw_only=True, eq=False)
class OwnImages:
    """Images by sample id, only from splits that suit the purpose: to repair, those to train on; to measure, those held out.

    Args:
        class_names: the classes of the data set.
        objects: a class to the ids of its images, in a fixed order.
        backgrounds: words for a place to the ids of the images that show it, best first; empty where no image fits well enough.
        background_words: words that `backgrounds` is known to have images for, to be named when a prompt is refused.
        image: an id to its RGB image. Raises a WeakspotError for one that cannot be read.
        mask: an id to the mask of its object (mode L, white is the object) where the data set has one, else None.
        digest: which images these are, and who found their objects; it becomes a part of the generator's id.
        coloured: a class and a colour to the ids of its images that show the object in this colour, as it looks in these images; empty
            where too few do or nobody can say.
        found: an id and a class to how much of each pixel is the object [h, w], at any size, and why that is not to be used, which is
            empty if it is. Asked only where there is no mask.
    """

    class_names: tuple[str, ...]
    objects: ObjectsOf
    backgrounds: BackgroundsFor
    background_words: tuple[str, ...]
    image: ImageOf
    mask: MaskOf
    digest: str
    coloured: ColouredIn = nothing_coloured
    found: FoundIn = nothing_found
