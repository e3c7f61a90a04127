"""Boxes of detection data: each a sample, with what can be said of its place, or with the reason why it is none."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from weakspot.core.bounds import Bounds, PositiveFraction, check_bounds

BOX_REASONS: dict[str, str] = {
    "crowd": "The box stands for a group of objects.",
    "bad-box": "The box is not four finite numbers with a positive width and height.",
    "outside": "The box lies outside its image.",
    "tiny-box": "The part of the box inside its image has too few pixels.",
    "other-size": "The image has another size than the annotations say.",
    "unknown-class": "The annotation names a class that is not listed.",
    "unknown-image": "The annotation names an image that is not listed.",
}
BORDER_PIXELS = 1.0
COORDINATES = 4

Value = str | int | float | bool | None
Corners = tuple[float, float, float, float]


@dataclass(frozen=True, kw_only=True)
class BoxOptions:
    """How boxes become samples.

    Args:
        margin: how much of the surroundings is shown on every side, as a share of width and height of the box.
        least_side: a box with a shorter side, in pixels inside the image, is set aside.
        images: folder that names of images start at; empty: looked for around the annotations.
        detections: COCO results file with what a detector said; empty if there is none.
        overlap: intersection over union from which on a detection is taken for a box.
        validation_fraction: share of images without a split put in validation, with all their boxes.
        test_fraction: share of images without a split put in test.
    """

    margin: Annotated[float, Bounds(ge=0, le=2)] = 0.1
    least_side: Annotated[float, Bounds(ge=1)] = 4.0
    images: str = ""
    detections: str = ""
    overlap: PositiveFraction = 0.5
    validation_fraction: float = 0.25
    test_fraction: float = 0.25

    def __post_init__(self) -> None:
        check_bounds(self, where="boxes")


@dataclass(frozen=True, kw_only=True)
class Box:
    """One annotation.

    Args:
        key: unique in the source.
        annotation_id: as the source calls it.
        category_id: as the source numbers the class.
        label: the class, None if it has none.
        corners: left, top, width, height; in pixels, or as shares of the image's sides.
        are_shares: whether they are shares.
        reason: one of `BOX_REASONS` if it is no sample.
        detail: more on that, for people.
        prediction: the class that a detector gave it; None if nothing is known.
        attributes: what the source says of it besides.
    """

    key: str
    annotation_id: str
    category_id: str
    label: str | None
    corners: Corners
    are_shares: bool = False
    reason: str = ""
    detail: str = ""
    prediction: str | None = None
    attributes: Mapping[str, Value] = field(default_factory=dict)

    def in_pixels(self, width: int, height: int) -> Corners:
        if not self.are_shares:
            return self.corners
        left, top, wide, high = self.corners
        return left * width, top * height, wide * width, high * height


@dataclass(frozen=True, kw_only=True)
class BoxedImage:
    """An image with the boxes to be cut out of it.

    Args:
        location: where it is; None if nobody knows.
        name: as the source calls the file.
        image_id: as the source numbers it.
        split: its split, or None.
        size: width and height as the source says, or None.
        boxes: in the order of the source.
        n_boxes: how many boxes it has in all, wanted or not.
    """

    location: str | None
    name: str
    image_id: str
    split: str | None
    size: tuple[int, int] | None
    boxes: tuple[Box, ...]
    n_boxes: int


@dataclass(frozen=True, kw_only=True)
class PixelRectangle:
    """Whole pixels from left and top up to, but without, right and bottom."""

    left: int
    top: int
    right: int
    bottom: int


def fault_of(corners: Corners, width: int, height: int, least_side: float) -> tuple[str, str]:
    """Return why a box in pixels is no sample of its image, as (reason, detail); both empty if it is one."""
    left, top, wide, high = corners
    if not all(math.isfinite(number) for number in corners) or wide <= 0 or high <= 0:
        return "bad-box", f"{corners}"
    inside_wide, inside_high = (
        min(left + wide, width) - max(left, 0.0),
        min(top + high, height) - max(top, 0.0),
    )
    if inside_wide <= 0 or inside_high <= 0:
        return "outside", f"{corners} in an image of {width} x {height}"
    if min(inside_wide, inside_high) < least_side:
        return (
            "tiny-box",
            f"{inside_wide:.4g} x {inside_high:.4g} pixels; at least {least_side:g} are needed",
        )
    return "", ""


def shown_rectangle(corners: Corners, width: int, height: int, margin: float) -> PixelRectangle:
    """Return the pixels that show a box with a margin of its surroundings, inside the image.

    >>> shown_rectangle((10.0, 10.0, 20.0, 10.0), 100, 18, 0.1)
    PixelRectangle(left=8, top=9, right=32, bottom=18)
    """
    left, top, wide, high = corners
    return PixelRectangle(
        left=max(0, math.floor(left - margin * wide)),
        top=max(0, math.floor(top - margin * high)),
        right=min(width, math.ceil(left + wide + margin * wide)),
        bottom=min(height, math.ceil(top + high + margin * high)),
    )


def box_columns(image: BoxedImage, box: Box, width: int, height: int) -> dict[str, Value]:
    """Return what can be said of a box: words and numbers to cut by, and all that is needed to write the annotation again."""
    corners = box.in_pixels(width, height)
    left, top, wide, high = corners
    right, bottom = left + wide, top + high
    return {
        "image": image.name,
        "image_id": image.image_id,
        "annotation_id": box.annotation_id,
        "category_id": box.category_id,
        "box": json.dumps([float(number) for number in corners]),
        "image_width": width,
        "image_height": height,
        "box_share": round(wide * high / (width * height), 6),
        "box_aspect": round(wide / high, 4),
        "box_x": round((left + wide / 2) / width, 4),
        "box_y": round((top + high / 2) / height, 4),
        "n_boxes": image.n_boxes,
        "at_border": bool(
            min(left, top) <= BORDER_PIXELS
            or right >= width - BORDER_PIXELS
            or bottom >= height - BORDER_PIXELS
        ),
        **box.attributes,
    }
