"""Boxes cut out of their pictures: every picture is decoded once, several at a time, and the order never changes."""

import hashlib
import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from io import BytesIO
from itertools import islice

from PIL import Image

from weakspot.core.dataset import RawSample, Split
from weakspot.ingest.boxes import BOX_REASONS, Box, BoxedPicture, BoxOptions, box_columns, fault_of, shown_rectangle
from weakspot.media.locations import UnreadableLocationError, read_anew
from weakspot.media.pictures import UnreadablePictureError, decode_picture

# Lossless; level 3 takes a third longer and saves 3 %, level 6 takes three times as long and saves 14 %.
_PNG_LEVEL = 1
_MOST_THREADS = 4


def cut_out(pictures: Iterable[BoxedPicture], options: BoxOptions) -> Iterator[RawSample]:
    """Yield one sample a box, its picture cut out as PNG; the same box always gives the same bytes.

    A box that cannot be used has a reason, and so have all boxes of a picture that cannot be read.
    """
    n_threads = min(_MOST_THREADS, os.cpu_count() or 1)
    remaining = iter(pictures)
    with ThreadPoolExecutor(n_threads, thread_name_prefix="weakspot-crops") as threads:
        waiting: deque[Future[list[RawSample]]] = deque(
            threads.submit(_samples, picture, options) for picture in islice(remaining, 2 * n_threads)
        )
        try:
            while waiting:
                done = waiting.popleft().result()
                waiting.extend(threads.submit(_samples, picture, options) for picture in islice(remaining, 1))
                yield from done
        finally:
            for future in waiting:
                future.cancel()


def split_by_name(name: str, options: BoxOptions) -> str:
    """Return the split of a picture that names none: by a hash of its name, so that all its boxes stay together."""
    share = int.from_bytes(hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big") / 2**64
    if share < options.validation_fraction:
        return Split.VALIDATION.value
    return Split.TEST.value if share < options.validation_fraction + options.test_fraction else Split.TRAIN.value


def _samples(picture: BoxedPicture, options: BoxOptions) -> list[RawSample]:
    if all(box.reason for box in picture.boxes) or picture.location is None:
        return [_set_aside(picture, box, box.reason or "unknown-picture", box.detail) for box in picture.boxes]
    try:
        decoded = decode_picture(read_anew(picture.location).data).picture
    except (UnreadableLocationError, UnreadablePictureError) as error:
        return [_set_aside(picture, box, error.reason, error.detail) for box in picture.boxes]
    except MemoryError:
        return [_set_aside(picture, box, "too-large", "Memory did not suffice.") for box in picture.boxes]
    if picture.size is not None and picture.size != decoded.size:
        detail = f"{picture.size[0]} x {picture.size[1]} announced, {decoded.size[0]} x {decoded.size[1]} found"
        return [_set_aside(picture, box, "other-size", detail) for box in picture.boxes]
    return [_sample(picture, box, decoded, options) for box in picture.boxes]


def _sample(picture: BoxedPicture, box: Box, decoded: Image.Image, options: BoxOptions) -> RawSample:
    width, height = decoded.size
    corners = box.in_pixels(width, height)
    reason, detail = (box.reason, box.detail) if box.reason else fault_of(corners, width, height, options.least_side)
    if reason:
        return _set_aside(picture, box, reason, detail)
    shown = shown_rectangle(corners, width, height, options.margin)
    stream = BytesIO()
    cut = decoded.crop((shown.left, shown.top, shown.right, shown.bottom))
    cut.info.clear()
    cut.save(stream, format="PNG", compress_level=_PNG_LEVEL)
    return RawSample(
        key=box.key,
        data=stream.getvalue(),
        labels=() if box.label is None else (box.label,),
        split=picture.split or split_by_name(picture.name, options),
        predictions=None if box.prediction is None else (box.prediction,),
        metadata=box_columns(picture, box, width, height),
    )


def _set_aside(picture: BoxedPicture, box: Box, reason: str, detail: str) -> RawSample:
    said = detail or BOX_REASONS.get(reason, "")
    return RawSample(key=box.key, location=picture.location, reason=reason, detail=said)
