"""Boxes of detection data: what can be said of their place, and how they are cut out of their images.

Every image is decoded once, several at a time, and the order never changes.
"""

import hashlib
import json
import math
import os
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from io import BytesIO
from itertools import islice
from typing import ClassVar

from PIL import Image

from weakspot.core.dataset import RawSample, Split
from weakspot.data.images import UnreadableImageError, decode_image
from weakspot.data.locations import UnreadableLocationError, read_anew
from weakspot.data.settings import BoxSettings

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
        split: its split, or None if no name tells it.
        size: width and height as the source says, or None.
        boxes: in the order of the source.
        n_boxes: how many boxes it has in all, wanted or not.
    """

    location: str | None
    name: str
    image_id: str
    split: Split | None
    size: tuple[int, int] | None
    boxes: tuple[Box, ...]
    n_boxes: int


def fault_of(corners: Corners, width: int, height: int, least_side: float) -> tuple[str, str]:
    """Return why a box in pixels is no sample of its image, as (reason, detail); both empty if it is one."""
    left, top, wide, high = corners
    if not all(math.isfinite(number) for number in corners) or wide <= 0 or high <= 0:
        return "bad-box", f"{corners}"
    inside_wide = min(left + wide, width) - max(left, 0.0)
    inside_high = min(top + high, height) - max(top, 0.0)
    if inside_wide <= 0 or inside_high <= 0:
        return "outside", f"{corners} in an image of {width} x {height}"
    if min(inside_wide, inside_high) < least_side:
        return (
            "tiny-box",
            f"{inside_wide:.4g} x {inside_high:.4g} pixels; at least {least_side:g} are needed",
        )
    return "", ""


def shown_rectangle(
    corners: Corners, width: int, height: int, margin: float
) -> tuple[int, int, int, int]:
    """Return left, top, right and bottom of the pixels that show a box with a margin of its surroundings, inside the image.

    >>> shown_rectangle((10.0, 10.0, 20.0, 10.0), 100, 18, 0.1)
    (8, 9, 32, 18)
    """
    left, top, wide, high = corners
    return (
        max(0, math.floor(left - margin * wide)),
        max(0, math.floor(top - margin * high)),
        min(width, math.ceil(left + wide + margin * wide)),
        min(height, math.ceil(top + high + margin * high)),
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


# Lossless; level 3 takes a third longer and saves 3 %, level 6 takes three times as long and saves 14 %.
_PNG_LEVEL = 1
_MAX_THREADS = 4


@dataclass(frozen=True, kw_only=True)
class BoxSource:
    """Boxes of detection data, each cut out of its image.

    Args:
        location: a file, or the folder that holds it.
        boxes: how boxes become samples.
        default_split: split of boxes when no name tells one; None: that of a hash of the image's name.
        fractions: shares of images without a split put in validation and in test, with all their boxes.
    """

    kind: ClassVar[str]
    location: str
    boxes: BoxSettings = field(default_factory=BoxSettings)
    default_split: Split | None = None
    fractions: tuple[float, float] = (0.25, 0.25)

    def boxed_images(self, start: int) -> Iterator[BoxedImage]:
        """Yield the images with the boxes from position `start` on."""
        raise NotImplementedError

    def read(self, start: int = 0) -> Iterator[RawSample]:
        """Yield one sample a box, its image cut out as PNG; the same box always gives the same bytes.

        A box that cannot be used has a reason, and so have all boxes of an image that cannot be read.
        """
        n_threads = min(_MAX_THREADS, os.cpu_count() or 1)
        remaining = self.boxed_images(start)
        with ThreadPoolExecutor(n_threads, thread_name_prefix="weakspot-crops") as threads:
            waiting: deque[Future[list[RawSample]]] = deque(
                threads.submit(self._samples, image) for image in islice(remaining, 2 * n_threads)
            )
            try:
                while waiting:
                    done = waiting.popleft().result()
                    waiting.extend(
                        threads.submit(self._samples, image) for image in islice(remaining, 1)
                    )
                    yield from done
            finally:
                for future in waiting:
                    future.cancel()

    def _samples(self, image: BoxedImage) -> list[RawSample]:
        if all(box.reason for box in image.boxes) or image.location is None:
            return [
                _set_aside(image, box, box.reason or "unknown-image", box.detail)
                for box in image.boxes
            ]
        try:
            decoded = decode_image(read_anew(image.location)).image
        except (UnreadableLocationError, UnreadableImageError) as error:
            return [_set_aside(image, box, error.reason, error.detail) for box in image.boxes]
        except MemoryError:
            return [
                _set_aside(image, box, "too-large", "Memory did not suffice.")
                for box in image.boxes
            ]
        if image.size is not None and image.size != decoded.size:
            detail = f"{image.size[0]} x {image.size[1]} announced, {decoded.size[0]} x {decoded.size[1]} found"
            return [_set_aside(image, box, "other-size", detail) for box in image.boxes]
        split = image.split or self.default_split or split_by_name(image.name, self.fractions)
        return [self._sample(image, box, decoded, split) for box in image.boxes]

    def _sample(self, image: BoxedImage, box: Box, decoded: Image.Image, split: Split) -> RawSample:
        width, height = decoded.size
        corners = box.in_pixels(width, height)
        reason, detail = box.reason, box.detail
        if not reason:
            reason, detail = fault_of(corners, width, height, self.boxes.least_side)
        if reason:
            return _set_aside(image, box, reason, detail)
        stream = BytesIO()
        cut = decoded.crop(shown_rectangle(corners, width, height, self.boxes.margin))
        cut.info.clear()
        cut.save(stream, format="PNG", compress_level=_PNG_LEVEL)
        return RawSample(
            key=box.key,
            data=stream.getvalue(),
            labels=() if box.label is None else (box.label,),
            split=split.value,
            predictions=None if box.prediction is None else (box.prediction,),
            metadata=box_columns(image, box, width, height),
        )


def split_by_name(name: str, fractions: tuple[float, float]) -> Split:
    """Return the split of an image that names none: by a hash of its name, so that all its boxes stay together."""
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    share = int.from_bytes(digest, "big") / 2**64
    if share < fractions[0]:
        return Split.VALIDATION
    return Split.TEST if share < sum(fractions) else Split.TRAIN


def _set_aside(image: BoxedImage, box: Box, reason: str, detail: str) -> RawSample:
    said = detail or BOX_REASONS.get(reason, "")
    return RawSample(key=box.key, location=image.location, reason=reason, detail=said)
