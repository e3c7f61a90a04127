"""What all views have in common, and what is said of a field that was refused."""

import base64
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict

from weakspot.core.arrays import AnyArray
from weakspot.core.evidence import Interval, Share
from weakspot.core.failures import ClassProblem


class View(BaseModel):
    """Base of everything that a page is sent: frozen, closed, and what is not a finite number is null.

    A view that adds something to a stored record is made of both (`class NameView(SliceName, View)`), so that no field is listed
    twice; a view of a row of the shared state is read from its attributes.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        ser_json_inf_nan="null",
        from_attributes=True,
        json_schema_serialization_defaults_required=True,
    )


class SamplePage(View):
    """Some of many samples.

    Args:
        tables: what row numbers belong to.
        total: how many samples there are in all.
        offset: place of the first one here.
    """

    tables: str
    total: int
    offset: int


def _write_time(moment: object) -> object:
    return moment.isoformat(timespec="seconds") if isinstance(moment, datetime) else moment


Moment = Annotated[str, BeforeValidator(_write_time)]
"""ISO 8601, UTC."""


def share_with(count: int, total: int, interval: Interval) -> Share:
    """Return a share whose interval was worked out by whoever measured it."""
    return Share(count=count, total=total, value=count / total if total else 0.0, interval=interval)


def share_of(problem: ClassProblem, count: int, total: int) -> Share:
    """Return a share of samples of a class, with an interval that is as wide as its groups make it."""
    return Share.of(count, total, effective=problem.worth * total)


INT32, UINT8, FLOAT32 = np.dtype("<i4"), np.dtype("<u1"), np.dtype("<f4")


def pack(values: AnyArray, kind: np.dtype[np.generic]) -> str:
    """Return numbers as base64 of little-endian bytes.

    >>> pack(np.array([1, 2]), INT32)
    'AQAAAAIAAAA='
    """
    return base64.b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode("ascii")


def unpack(text: str, kind: np.dtype[np.generic]) -> AnyArray:
    """Return what `pack` was given.

    >>> unpack("AQAAAAIAAAA=", INT32).tolist()
    [1, 2]
    """
    return np.frombuffer(base64.b64decode(text), dtype=kind)


UNLIKE_AN_ID = "This is no name or id of it. Open it from the page that lists it, or copy the whole address again."
_OWN_WORDS = "Value error, "


def field_words(item: Mapping[str, Any]) -> str:
    """Return what is wrong with a field, as one entry of a validation error says it, without the pattern that it had to match.

    >>> field_words({"type": "value_error", "msg": "Value error, Say something."})
    'Say something.'
    """
    if item["type"] == "string_pattern_mismatch":
        return UNLIKE_AN_ID
    return str(item["msg"]).removeprefix(_OWN_WORDS)
