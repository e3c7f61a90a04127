"""The section of the settings that says which witnesses look at images."""

from typing import Literal

from pydantic import Field

from weakspot.pipeline.settings_section import Section

WitnessKind = Literal["text", "objects", "scenes", "properties", "masks"]
WITNESS_KINDS: tuple[WitnessKind, ...] = ("text", "objects", "scenes", "properties", "masks")


class WitnessSettings(Section):
    """Independent witnesses of words: they read text, know objects and places, and measure."""

    on: Literal["asked", "all", "none"] = Field(
        default="asked",
        description="asked: look only where a name or an attribute is asked about; all: at every image, captions too; none.",
    )
    kinds: tuple[WitnessKind, ...] = Field(
        default=WITNESS_KINDS,
        description="Who is asked; masks needs a segmenter. Weights are fetched when one is first asked.",
    )
    most_asked: int = Field(
        default=120,
        ge=1,
        description="With `asked`, of more images that a word is asked about only so many are looked at, at even steps.",
    )
    most_images: int = Field(
        default=2000,
        ge=0,
        description="With `asked`, attributes of data sets with more images are made without the witnesses that need a network.",
    )
