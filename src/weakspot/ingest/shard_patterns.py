"""Patterns for many files: `shards/{000..012}.tar`, `shards/{train,val}-*.tar`."""

import re
from itertools import chain

from weakspot.core.errors import DataError
from weakspot.media.listing import is_folder, list_files, match_files
from weakspot.media.locations import shown_location

TAR_EXTENSIONS = (".tar", ".tar.gz", ".tgz")
_BRACES = re.compile(r"\{([^{}]*)\}")
_NUMBERS = re.compile(r"(\d+)\.\.(\d+)")
_WILD = re.compile(r"[*?\[]")
_MAX_SHARDS = 1_000_000


def is_pattern(location: str) -> bool:
    return bool(_WILD.search(location) or _BRACES.search(location))


def expand_braces(pattern: str) -> list[str]:
    """Return every location that braces stand for, in order.

    >>> expand_braces("part-{08..10}.tar")
    ['part-08.tar', 'part-09.tar', 'part-10.tar']
    """
    found = _BRACES.search(pattern)
    if found is None:
        return [pattern]
    head, tail = pattern[: found.start()], pattern[found.end() :]
    return list(
        chain.from_iterable(
            expand_braces(head + choice + tail) for choice in _choices(found.group(1), pattern)
        )
    )


def find_shards(location: str) -> list[str]:
    """Return the tar files that a folder, file or pattern means, in order."""
    if not is_pattern(location) and is_folder(location):
        shards = [
            file.location
            for file in list_files(location)
            if file.relative.lower().endswith(TAR_EXTENSIONS)
        ]
    else:
        shards = list(
            chain.from_iterable(
                match_files(one) if _WILD.search(one) else [one] for one in expand_braces(location)
            )
        )
    if not shards:
        raise DataError(
            "No tar file is there.",
            where=shown_location(location),
            fix="Correct the folder or the pattern.",
        )
    return shards


def _choices(inside: str, pattern: str) -> list[str]:
    numbers = _NUMBERS.fullmatch(inside)
    if numbers is None:
        return inside.split(",")
    first, last = numbers.groups()
    if not 0 <= int(last) - int(first) < _MAX_SHARDS:
        raise DataError(
            f"The range {{{inside}}} is empty or too long.",
            where=pattern,
            fix="Write the smaller number first.",
        )
    return [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]
