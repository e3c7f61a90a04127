"""Boxes cut out of their images: every image is decoded once, several at a time, and the order never changes."""

import hashlib
import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from io import BytesIO
from itertools import islice

from PIL import Image

from weakspot.core.dataset import RawSample, Split
from weakspot.ingest.boxes import (
    BOX_REASONS,
    Box,
    BoxedImage,
    BoxOptions,
    box_columns,
    fault_of,
    shown_rectangle,
)
from weakspot.media.images import UnreadableImageError, decode_image
from weakspot.media.locations import UnreadableLocationError, read_anew

# Lossless; level 3 takes a third longer and saves 3 %, level 6 takes three times as long and saves 14 %.
_PNG_LEVEL = 1
_MOST_THREADS = 4


def cut_out(images: Iterable[BoxedImage], options: BoxOptions) -> Iterator[RawSample]:
    """Yield one sample a box, its image cut out as PNG; the same box always gives the same bytes.

    A box that cannot be used has a reason, and so have all boxes of an image that cannot be read.
    """
    n_threads = min(_MOST_THREADS, os.cpu_count() or 1)
    remaining = iter(images)
    with ThreadPoolExecutor(n_threads, thread_name_prefix="weakspot-crops") as threads:
        waiting: deque[Future[list[RawSample]]] = deque(
            threads.submit(_samples, image, options) for image in islice(remaining, 2 * n_threads)
        )
        try:
            while waiting:
                done = waiting.popleft().result()
                waiting.extend(
                    threads.submit(_samples, image, options) for image in islice(remaining, 1)
                )
                yield from done
        finally:
            for future in waiting:
                future.cancel()


def split_by_name(name: str, options: BoxOptions) -> str:
    """Return the split of an image that names none: by a hash of its name, so that all its boxes stay together."""
    share = (
        int.from_bytes(
            hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big"
        )
        / 2**64
    )
    if share < options.validation_fraction:
        return Split.VALIDATION.value
    return (
        Split.TEST.value
        if share < options.validation_fraction + options.test_fraction
        else Split.TRAIN.value
    )


def _samples(image: BoxedImage, options: BoxOptions) -> list[RawSample]:
    if all(box.reason for box in image.boxes) or image.location is None:
        return [
            _set_aside(image, box, box.reason or "unknown-image", box.detail) for box in image.boxes
        ]
    try:
        decoded = decode_image(read_anew(image.location).data).image
    except (UnreadableLocationError, UnreadableImageError) as error:
        return [_set_aside(image, box, error.reason, error.detail) for box in image.boxes]
    except MemoryError:
        return [
            _set_aside(image, box, "too-large", "Memory did not suffice.") for box in image.boxes
        ]
    if image.size is not None and image.size != decoded.size:
        detail = f"{image.size[0]} x {image.size[1]} announced, {decoded.size[0]} x {decoded.size[1]} found"
        return [_set_aside(image, box, "other-size", detail) for box in image.boxes]
    return [_sample(image, box, decoded, options) for box in image.boxes]


def _sample(image: BoxedImage, box: Box, decoded: Image.Image, options: BoxOptions) -> RawSample:
    width, height = decoded.size
    corners = box.in_pixels(width, height)
    reason, detail = (
        (box.reason, box.detail)
        if box.reason
        else fault_of(corners, width, height, options.least_side)
    )
    if reason:
        return _set_aside(image, box, reason, detail)
    shown = shown_rectangle(corners, width, height, options.margin)
    stream = BytesIO()
    cut = decoded.crop((shown.left, shown.top, shown.right, shown.bottom))
    cut.info.clear()
    cut.save(stream, format="PNG", compress_level=_PNG_LEVEL)
    return RawSample(
        key=box.key,
        data=stream.getvalue(),
        labels=() if box.label is None else (box.label,),
        split=image.split or split_by_name(image.name, options),
        predictions=None if box.prediction is None else (box.prediction,),
        metadata=box_columns(image, box, width, height),
    )


def _set_aside(image: BoxedImage, box: Box, reason: str, detail: str) -> RawSample:
    said = detail or BOX_REASONS.get(reason, "")
    return RawSample(key=box.key, location=image.location, reason=reason, detail=said)
