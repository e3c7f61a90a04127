"""One sample: read its picture, hash it, decode it once, and say what is wrong with it."""

import json

from weakspot.core.dataset import ExaminedSample, QuarantinedSample, RawSample
from weakspot.media.locations import UNREACHABLE_REASONS, UnreadableLocationError, read_location
from weakspot.media.pictures import UNREADABLE_REASONS, UnreadablePictureError, content_hash, decode_picture

QUARANTINE_REASONS: dict[str, str] = {**UNREACHABLE_REASONS, **UNREADABLE_REASONS}
# JPEGs are decoded at 1/8: every byte of them is still read, so truncation is found, at a fraction of the time.
_EXAMINED_SIDE = 1


def examine(raw: RawSample) -> ExaminedSample | QuarantinedSample:
    """Read and decode the picture of a sample; never raises for a bad one. Can run in many threads.

    A sample without a picture is hashed over its key, labels and predictions.
    """
    if raw.location is None and raw.data is None:
        return ExaminedSample(raw=raw, content_hash=_hash_without_picture(raw))
    try:
        data = raw.data if raw.data is not None else read_location(raw.location or "")
        decoded = decode_picture(data, picture_side=_EXAMINED_SIDE)
    except (UnreadableLocationError, UnreadablePictureError) as error:
        return QuarantinedSample(key=raw.key, location=raw.location, reason=error.reason, detail=error.detail)
    except MemoryError:
        return QuarantinedSample(key=raw.key, location=raw.location, reason="too-large", detail="Memory did not suffice.")
    return ExaminedSample(raw=raw, content_hash=content_hash(data), width=decoded.width, height=decoded.height, notes=decoded.notes)


def _hash_without_picture(raw: RawSample) -> str:
    probabilities = None if raw.probabilities is None else sorted(raw.probabilities.items())
    said = [raw.key, raw.labels, raw.predictions, probabilities]
    return content_hash(json.dumps(said, ensure_ascii=False).encode("utf-8", "surrogatepass"))
