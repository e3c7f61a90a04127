"""One sample: read its picture, hash it, decode it once, and say what is wrong with it."""

import json
from dataclasses import replace

from weakspot.core.dataset import ExaminedSample, QuarantinedSample, RawSample
from weakspot.ingest.boxes import BOX_REASONS
from weakspot.media.listing import stamp_of
from weakspot.media.locations import UNREACHABLE_REASONS, UnreadableLocationError, read_anew
from weakspot.media.pictures import UNREADABLE_REASONS, UnreadablePictureError, content_hash, decode_picture
from weakspot.media.web import is_web

QUARANTINE_REASONS: dict[str, str] = {**UNREACHABLE_REASONS, **UNREADABLE_REASONS, **BOX_REASONS}
# JPEGs are decoded at 1/8: every byte of them is still read, so truncation is found, at a fraction of the time.
_EXAMINED_SIDE = 1


def examine(sample: RawSample | ExaminedSample) -> ExaminedSample | QuarantinedSample:
    """Read and decode the picture of a sample; never raises for a bad one. Can run in many threads.

    A sample without a picture is hashed over its key, labels and predictions. One that was examined before stays as it is.
    """
    return sample if isinstance(sample, ExaminedSample) else _examined(sample)


def _examined(raw: RawSample) -> ExaminedSample | QuarantinedSample:
    if raw.reason:
        return QuarantinedSample(key=raw.key, location=raw.location, reason=raw.reason, detail=raw.detail)
    if raw.location is None and raw.data is None:
        return ExaminedSample(raw=raw, content_hash=_hash_without_picture(raw))
    try:
        data, stamp = (raw.data, None) if raw.data is not None else _read(raw.location or "", raw.stamp)
        decoded = decode_picture(data, picture_side=_EXAMINED_SIDE)
    except (UnreadableLocationError, UnreadablePictureError) as error:
        return QuarantinedSample(key=raw.key, location=raw.location, reason=error.reason, detail=error.detail)
    except MemoryError:
        return QuarantinedSample(key=raw.key, location=raw.location, reason="too-large", detail="Memory did not suffice.")
    return ExaminedSample(
        raw=raw if stamp == raw.stamp else replace(raw, stamp=stamp),
        content_hash=content_hash(data),
        width=decoded.width,
        height=decoded.height,
        notes=decoded.notes,
    )


def _read(location: str, stamp: str | None) -> tuple[bytes, str | None]:
    """Return the bytes and their stamp, which is always that of before: what changes meanwhile will be found out next time."""
    told = stamp if stamp is not None or is_web(location) else stamp_of(location)
    content = read_anew(location)
    return content.data, told or content.stamp


def _hash_without_picture(raw: RawSample) -> str:
    probabilities = None if raw.probabilities is None else sorted(raw.probabilities.items())
    said = [raw.key, raw.labels, raw.predictions, probabilities]
    return content_hash(json.dumps(said, ensure_ascii=False).encode("utf-8", "surrogatepass"))
