"""YAML heads of cards, of strings in quotes only, so that any name of a class or slice is one."""

import json
from collections.abc import Iterator, Mapping


def front_matter(content: Mapping[str, object]) -> str:
    """Return the head of a card.

    >>> print(front_matter({"tags": ["weakspot"], "configs": [{"name": "a: b", "files": [{"split": "test"}]}]}))
    ---
    "tags":
      - "weakspot"
    "configs":
      - "name": "a: b"
        "files":
          - "split": "test"
    ---
    <BLANKLINE>
    """
    return "\n".join(["---", *_lines(content), "---", ""])


def _lines(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from _entry(f"{json.dumps(str(name))}:", part)
    elif isinstance(value, list | tuple):
        for part in value:
            first, *more = list(_lines(part))
            yield f"  - {first}"
            yield from (f"    {line}" for line in more)
    else:
        yield json.dumps(value, ensure_ascii=False)


def _entry(head: str, value: object) -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        yield head
        yield from (f"  {line}" for line in _lines(value))
    elif isinstance(value, list | tuple) and value:
        yield head
        yield from _lines(value)
    else:
        yield f"{head} {json.dumps(value, ensure_ascii=False)}"
