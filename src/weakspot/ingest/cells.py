"""Single table cells to labels, splits, images, probabilities and metadata values."""

import base64
import binascii
import datetime
import json
import math
import re
from collections.abc import Mapping
from decimal import Decimal

from weakspot.core.dataset import Split
from weakspot.ingest.columns import did_you_mean
from weakspot.ingest.splits import parse_split

MetadataValue = str | int | float | bool | None
_SEPARATORS = re.compile(r"[;|]")
_WHOLE_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_NUMBER = re.compile(r"-?((0|[1-9][0-9]*)(\.[0-9]*)?([eE][+-]?[0-9]+)?|\.[0-9]+([eE][+-]?[0-9]+)?)")
_YES_NO = {"true": True, "false": False}
_PROBABILITY_SLACK = 1e-4


class CellError(ValueError):
    """A cell that cannot be used; the message says why, without the row."""


def is_whole_number(text: str) -> bool:
    """Return whether text is a whole number written the usual way (no leading zeros)."""
    return _WHOLE_NUMBER.fullmatch(text) is not None


def is_empty(value: object) -> bool:
    """Return whether a cell holds nothing: null, NaN or blank text."""
    return (
        value is None
        or (isinstance(value, float) and math.isnan(value))
        or (isinstance(value, str) and not value.strip())
    )


def label_cell(value: object, *, many: bool) -> tuple[str, ...]:
    """Return the labels in a cell; none when it is empty.

    Args:
        value: the cell.
        many: whether text is several labels with `;` or `|` between them, or a JSON list.
    """
    if is_empty(value):
        return ()
    if isinstance(value, str) and many:
        value = _listed(value)
    if isinstance(value, (list, tuple)):
        return tuple(dict.fromkeys(_one_label(item) for item in value if not is_empty(item)))
    return (_one_label(value),)


def label_kind(value: object) -> str | None:
    """Return what kind of label a cell holds (`word`, `number`, `list`), or None when it holds none."""
    if is_empty(value):
        return None
    if isinstance(value, (list, tuple)):
        return "list"
    if isinstance(value, str):
        return "word"
    return "number" if isinstance(value, (int, float)) else None


def split_cell(value: object) -> Split | None:
    """Return the split that a cell names, or None when it is empty."""
    if is_empty(value):
        return None
    found = parse_split(str(value))
    if found is None:
        hint = did_you_mean(str(value), tuple(split.value for split in Split))
        raise CellError(
            f"The split {value!r} is unknown{hint or ', use train, validation, test, pool or synthetic'}."
        )
    return found


def image_cell(value: object, *, is_bytes: bool) -> tuple[str | None, bytes | None]:
    """Return location and data of the image that a cell holds or points to; one of them is None."""
    if isinstance(value, Mapping):
        inner = value.get("bytes")
        value, is_bytes = (inner, True) if inner is not None else (value.get("path"), False)
    if isinstance(value, (bytes, bytearray)):
        return None, bytes(value)
    if is_empty(value):
        raise CellError("The image is missing: the cell is empty.")
    if not isinstance(value, str):
        raise CellError(
            f"An image cannot be given as {type(value).__name__}; give a path, a URL or bytes."
        )
    if not is_bytes:
        return value.strip(), None
    try:
        return None, base64.b64decode(value, validate=True)
    except binascii.Error:
        raise CellError("The bytes of an image are not base64 text.") from None


def probability_items(value: object) -> dict[str, float] | list[float] | None:
    """Return the probabilities in a cell, by class name or in order; None when it is empty."""
    if is_empty(value):
        return None
    if isinstance(value, str):
        value = _json(value, "Probabilities in text must be a JSON list or object.")
    if (
        isinstance(value, (list, tuple))
        and value
        and all(isinstance(item, tuple) for item in value)
    ):
        value = dict(value)
    if isinstance(value, Mapping):
        return {str(name): probability(item) for name, item in value.items()} or None
    if isinstance(value, (list, tuple)):
        return [probability(item) for item in value] or None
    raise CellError(
        f"Probabilities cannot be given as {type(value).__name__}; give a list or an object."
    )


def probability(value: object) -> float:
    if value is None or (isinstance(value, str) and not value.strip()):
        raise CellError("A probability is missing where others of the row are given.")
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise CellError(f"The probability {value!r} is not a number.") from None
    if math.isnan(number) or math.isinf(number):
        raise CellError("A probability is not finite.")
    if number < 0:
        raise CellError("A probability is negative; give probabilities, not logits.")
    if number > 1 + _PROBABILITY_SLACK:
        raise CellError("A probability is above 1; give probabilities, not logits or percent.")
    return min(number, 1.0)


def metadata_kind(value: object, *, is_text: bool) -> str | None:
    """Return what a free value is: `bool`, `int`, `float`, `str`, or None when it is empty."""
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, str):
        return _text_kind(value.strip()) if is_text else "str"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int"
    return "float" if isinstance(value, (float, Decimal)) else "str"


def wider_kind(first: str | None, second: str | None) -> str | None:
    if first is None or second is None or first == second:
        return first or second
    return "float" if {first, second} == {"int", "float"} else "str"


def metadata_value(value: object, kind: str | None) -> MetadataValue:
    """Return a free value as the given kind; empty and not-a-number become None."""
    if kind is None or metadata_kind(value, is_text=False) is None:
        return None
    if kind == "bool":
        return _YES_NO[value.strip().lower()] if isinstance(value, str) else bool(value)
    if kind == "int":
        return int(str(value))
    if kind == "float":
        return float(str(value))
    return _as_text(value)


def _text_kind(text: str) -> str:
    if text.lower() in _YES_NO:
        return "bool"
    if is_whole_number(text):
        return "int"
    # Longer digit strings are identifiers that a float would round.
    return "float" if _NUMBER.fullmatch(text) and not text.lstrip("-").isdigit() else "str"


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (list, tuple, Mapping)):
        return json.dumps(value, sort_keys=True, default=str, ensure_ascii=False)
    return str(value)


def _listed(text: str) -> object:
    if text.lstrip().startswith("["):
        return _json(text, "Labels that start with [ must be a JSON list.")
    return [part for part in _SEPARATORS.split(text) if part.strip()]


def _json(text: str, message: str) -> object:
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        raise CellError(message) from None


def _one_label(value: object) -> str:
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    raise CellError(f"A label cannot be {value!r}; give a name or a whole number.")
