"""Generated images: requests and what came of them, the user's own images they are composed from.

And how samples say that they are generated.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan

import numpy as np
from PIL import Image
from pydantic import Field

from weakspot.core.arrays import FloatArray
from weakspot.core.record import Record

PASS = "pass"


class GenerationRequest(Record):
    """One image to be made. The same request with the same generator is the same image.

    Args:
        class_name: what it is to show.
        prompt: the words it is made from.
        seed: decides what the words leave open.
    """

    class_name: str
    prompt: str
    seed: int


class GenerationResult(Record):
    """A request and what came of it; an image is generated for ever and never verified on.

    Args:
        request: what was asked for.
        generator_id: who was asked.
        content_hash: sha256 of the encoded image; empty when none came.
        file: where it is, relative to the folder it is kept in; empty when none came.
        parents: ids of the samples that it was made from, for generators that compose.
        verdicts: what every quality check said of it: `pass`, or why it is rejected.
    """

    request: GenerationRequest
    generator_id: str
    content_hash: str = ""
    file: str = ""
    parents: tuple[str, ...] = ()
    verdicts: dict[str, str] = Field(default_factory=dict)

    @property
    def rejected_by(self) -> str:
        """Return the first quality check that rejected it, empty if it may be used."""
        return next((quality for quality, said in self.verdicts.items() if said != PASS), "")

    @property
    def is_kept(self) -> bool:
        """Return whether it may be used."""
        return bool(self.content_hash) and not self.rejected_by


def rejections(generated: Iterable[GenerationResult]) -> dict[str, int]:
    """Return how many images each quality check rejected, most first."""
    return dict(Counter(one.rejected_by for one in generated if one.rejected_by).most_common())


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


MARK, MAKER = "synthetic", "generator"
_YES, _NO = frozenset({"true", "yes", "1"}), frozenset({"false", "no", "0"})


def is_generated(metadata: Mapping[str, object]) -> bool:
    """Return whether free columns say that a sample was generated: `synthetic` is true, or else a `generator` is named.

    >>> [is_generated(told) for told in ({"synthetic": True}, {"generator": "a model"}, {"synthetic": "no", "generator": "diesel"})]
    [True, True, False]
    """
    mark = metadata.get(MARK)
    said = str(int(mark) if mark in (0, 1) else mark).strip().lower()
    if said in _YES | _NO:
        return said in _YES
    maker = metadata.get(MAKER)
    is_missing = maker is None or (isinstance(maker, float) and isnan(maker))
    return not is_missing and bool(str(maker).strip())
