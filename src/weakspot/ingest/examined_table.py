"""Examined and quarantined samples as table rows, in the order of their source."""

import json
from collections.abc import Sequence

import pyarrow as pa

from weakspot.core.dataset import ExaminedSample, QuarantinedSample

Examined = ExaminedSample | QuarantinedSample

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
    ]
)
"""One row a sample; `reason` is null for examined samples, `content_hash` is null for quarantined ones; `metadata` is JSON."""

EXAMINATION = "1"
"""Which way of examining made a row; it is part of the stamp, so that another way takes nothing over from this one."""


def examined_table(samples: Sequence[Examined]) -> pa.Table:
    """Return samples as rows; a row does not depend on the others, so parts of any size hold the same."""
    return pa.Table.from_pylist([_row(sample) for sample in samples], schema=EXAMINED_SCHEMA)


def _row(sample: Examined) -> dict[str, object]:
    if isinstance(sample, QuarantinedSample):
        return {"key": sample.key, "location": sample.location, "reason": sample.reason, "detail": sample.detail}
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
    }


def kept_stamp(stamp: str | None) -> str | None:
    """Return the stamp of a location as it is written beside what was found out about its picture."""
    return None if stamp is None else f"{EXAMINATION} {stamp}"


def _plain(value: object) -> object:
    item = getattr(value, "item", None)
    return item() if callable(item) else str(value)
