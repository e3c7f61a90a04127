"""Class names as model files carry them: as text in many forms."""

import ast
import json
from collections.abc import Mapping
from typing import Any


def labels_in(text: str) -> tuple[str, ...] | None:
    """Return class names from a JSON or Python list or mapping, or one a line; None if there are none."""
    parsed: object = None
    for parse in (json.loads, ast.literal_eval):
        try:
            parsed = parse(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        break
    if isinstance(parsed, Mapping):
        return labels_in_order(parsed)
    if isinstance(parsed, list | tuple):
        return tuple(str(name) for name in parsed)
    lines = tuple(line.strip() for line in text.splitlines() if line.strip())
    return lines if len(lines) > 1 else None


def labels_in_order(numbered: Mapping[Any, Any]) -> tuple[str, ...] | None:
    """Return names from a mapping of number to name, if the numbers are 0, 1, 2 and so on.

    >>> labels_in_order({"1": "dog", "0": "cat"})
    ('cat', 'dog')
    """
    try:
        by_number = {int(number): str(name) for number, name in numbered.items()}
    except (TypeError, ValueError):
        return None
    return tuple(by_number[number] for number in range(len(by_number))) if set(by_number) == set(range(len(by_number))) else None
