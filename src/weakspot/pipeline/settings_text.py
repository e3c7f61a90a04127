"""Values as they stand in weakspot.toml."""

import json
from typing import Any


def toml_value(value: Any) -> str:
    """Return a value as TOML; entries of a table that are None are left out.

    >>> toml_value({"colour": "bgr", "mean": (0.5, 0.5)})
    '{"colour" = "bgr", "mean" = [0.5, 0.5]}'
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        inner = ", ".join(
            f"{json.dumps(key)} = {toml_value(item)}"
            for key, item in value.items()
            if item is not None
        )
        return f"{{{inner}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(toml_value(item) for item in value)}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
