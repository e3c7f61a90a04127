"""What to do about a field that was refused, for people who never heard of patterns."""

from collections.abc import Mapping
from typing import Any

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
