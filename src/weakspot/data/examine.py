"""One sample: read its image, hash it, decode it once, and say what is wrong with it.

Examined and quarantined samples as table rows, in the order of their source.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa

from weakspot.core.dataset import ExaminedSample, RawSample
from weakspot.data.boxes import BOX_REASONS
from weakspot.data.images import (
    UNREADABLE_REASONS,
    DecodedImage,
    UnreadableImageError,
    content_hash,
    decode_image,
)
from weakspot.data.locations import (
    UNREACHABLE_REASONS,
    UnreadableLocationError,
    read_stamped,
    stamp_of,
)
from weakspot.data.remote import is_web

QUARANTINE_REASONS: dict[str, str] = {**UNREACHABLE_REASONS, **UNREADABLE_REASONS, **BOX_REASONS}
# JPEGs are decoded at 1/8: every byte of them is still read, so truncation is found, at a fraction of the time.
_EXAMINED_SIDE = 1


Look = Callable[[bytes, str], DecodedImage | None]
"""Takes an encoded image and its content hash; gives the image if it decoded it, whatever the scale."""


def examine(sample: RawSample | ExaminedSample, look: Look | None = None) -> "Examined":
    """Read and decode the image of a sample; never raises for a bad one, which is set aside. Can run in many threads.

    A sample without an image is hashed over its key, labels and predictions. One that was examined before stays as it is.

    Args:
        sample: what is to be examined.
        look: sees the image first; if it decodes it, that is not done again. What it cannot decode is decoded here, so that
            the reason does not depend on the scale that it asked for.
    """
    return sample if isinstance(sample, ExaminedSample) else _examine(sample, look)


def _examine(raw: RawSample, look: Look | None) -> "Examined":
    if raw.reason:
        return raw
    if raw.location is None and raw.data is None:
        return ExaminedSample(raw=raw, content_hash=_hash_without_image(raw))
    try:
        data, stamp = (
            (raw.data, None) if raw.data is not None else _read(raw.location or "", raw.stamp)
        )
        digest = content_hash(data)
        decoded = (look and look(data, digest)) or decode_image(data, image_side=_EXAMINED_SIDE)
    except (UnreadableLocationError, UnreadableImageError) as error:
        return raw.set_aside(error.reason, error.detail)
    except MemoryError:
        return raw.set_aside("too-large", "Memory did not suffice.")
    return ExaminedSample(
        raw=raw if stamp == raw.stamp else replace(raw, stamp=stamp),
        content_hash=digest,
        width=decoded.size[0],
        height=decoded.size[1],
        notes=decoded.notes,
        moment=decoded.moment,
    )


def _read(location: str, stamp: str | None) -> tuple[bytes, str | None]:
    """Return the bytes and their stamp, which is always that of before: what changes meanwhile will be found out next time."""
    told = stamp if stamp is not None or is_web(location) else stamp_of(location)
    data, stamp_now = read_stamped(location)
    return data, told or stamp_now


def _hash_without_image(raw: RawSample) -> str:
    probabilities = None if raw.probabilities is None else sorted(raw.probabilities.items())
    said = [raw.key, raw.labels, raw.predictions, probabilities]
    return content_hash(json.dumps(said, ensure_ascii=False).encode("utf-8", "surrogatepass"))


Examined = ExaminedSample | RawSample
"""An examined sample, or a raw one that was set aside, with the reason."""

EXAMINED_SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("location", pa.string()),
        ("content_hash", pa.string()),
        ("width", pa.int32()),
        ("height", pa.int32()),
        ("notes", pa.list_(pa.string())),
        ("labels", pa.list_(pa.string())),
        ("split", pa.string()),
        ("predictions", pa.list_(pa.string())),
        ("probabilities", pa.map_(pa.string(), pa.float64())),
        ("metadata", pa.string()),
        ("reason", pa.string()),
        ("detail", pa.string()),
        ("stamp", pa.string()),
        ("moment", pa.int64()),
    ]
)
"""One row a sample; `reason` is null for examined samples, `content_hash` is null for quarantined ones; `metadata` is JSON.

Samples without images have their free columns in one more column, `metadata_values`, instead."""

EXAMINATION = "1"
"""Which way of examining made a row; it is part of the stamp, so that another way takes nothing over from this one."""


def examined_table(samples: Sequence[Examined]) -> pa.Table:
    """Return samples as rows; a row does not depend on the others, so parts of any size hold the same."""
    return pa.Table.from_pylist([_row(sample) for sample in samples], schema=EXAMINED_SCHEMA)


def _row(sample: Examined) -> dict[str, object]:
    if isinstance(sample, RawSample):
        return {name: getattr(sample, name) for name in ("key", "location", "reason", "detail")}
    raw = sample.raw
    return {
        "key": raw.key,
        "location": raw.location,
        "content_hash": sample.content_hash,
        "width": sample.width,
        "height": sample.height,
        "notes": list(sample.notes),
        "labels": list(raw.labels),
        "split": raw.split,
        "predictions": None if raw.predictions is None else list(raw.predictions),
        "probabilities": None if raw.probabilities is None else list(raw.probabilities.items()),
        "metadata": json.dumps(dict(raw.metadata), default=_plain) if raw.metadata else None,
        "stamp": kept_stamp(raw.stamp),
        "moment": sample.moment or None,
    }


def kept_stamp(stamp: str | None) -> str | None:
    """Return the stamp of a location as it is written beside what was found out about its image."""
    return None if stamp is None else f"{EXAMINATION} {stamp}"


def _plain(value: object) -> object:
    item = getattr(value, "item", None)
    return item() if callable(item) else str(value)
