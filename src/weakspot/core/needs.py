"""What a method needs to work at all, and what there is: columns, captions, embeddings, images.

A discoverer states its needs in a property `needs`; one that states none is taken to work with labels and predictions alone, and says
itself what it misses.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from weakspot.core.attributes import marked_attributes
from weakspot.core.samples import SampleSet

CLIP = "clip"
CAPTION_COLUMN = "caption"


class Need(StrEnum):
    """Something that a method reads beside labels and predictions."""

    COLUMNS = "columns"
    CAPTIONS = "captions"
    EMBEDDINGS = "embeddings"
    IMAGES = "images"


@dataclass(frozen=True, kw_only=True)
class Material:
    """What there is beside labels and predictions.

    Args:
        n_columns: metadata columns that can be compared.
        has_captions: whether samples come with captions.
        spaces: names of the spaces of embeddings.
        has_images: whether samples have images.
        has_idle_columns: whether there are columns, but none that can be compared.
    """

    n_columns: int = 0
    has_captions: bool = False
    spaces: frozenset[str] = frozenset()
    has_images: bool = False
    has_idle_columns: bool = False

    @classmethod
    def of(cls, samples: SampleSet) -> "Material":
        dataset = samples.dataset
        marked = marked_attributes(dataset.table)
        return cls(
            n_columns=len(dataset.metadata_names if marked is None else marked),
            has_captions=CAPTION_COLUMN in dataset.metadata_names,
            spaces=frozenset(samples.spaces),
            has_images=dataset.has_images,
            has_idle_columns=marked == () and bool(dataset.metadata_names),
        )

    def has(self, need: Need) -> bool:
        return {
            Need.COLUMNS: self.n_columns > 0,
            Need.CAPTIONS: self.has_captions,
            Need.EMBEDDINGS: bool(self.spaces),
            Need.IMAGES: self.has_images,
        }[need]

    def missing(self, part: object) -> tuple[Need, ...]:
        """Return what a method needs and is not there."""
        return tuple(need for need in needs_of(part) if not self.has(need))

    def words(self, needs: Sequence[Need]) -> list[str]:
        """Return what there is of some needs, in words: `8 columns`, `captions`."""
        columns = "1 column" if self.n_columns == 1 else f"{self.n_columns} columns"
        return [columns if need is Need.COLUMNS else need.value for need in needs]


def needs_of(part: object) -> tuple[Need, ...]:
    """Return the needs that a method states; a plug-in of an earlier version states none."""
    return tuple(Need(need) for need in getattr(part, "needs", ()))
