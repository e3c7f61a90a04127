"""Which files of rows were read in full and found sound, with their keys: so that opening a cache need not read them all again.

Finding content hashes among very many: linear in memory, with a small number of bytes a key and no Python objects.
"""

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weakspot.core.arrays import AnyArray, IntArray
from weakspot.store import atomic
from weakspot.store.names import KEY_TYPE

SEARCHED_AT_ONCE = 1 << 20
ODD = np.uint64(0x9E3779B97F4A7C15)


class KeyIndex:
    """Known keys in an order in which others can be looked up; 12 to 16 bytes a key beside the keys themselves.

    Args:
        known: packed content hashes [n]; of a key that occurs twice the first place is found.
    """

    def __init__(self, known: AnyArray) -> None:
        self._known = _halves(known)
        mixed = _mixed(self._known)
        order = np.argsort(mixed, kind="stable")
        self._order = order.astype(np.int32) if len(order) < np.iinfo(np.int32).max else order
        self._mixed = mixed[order]

    def positions(self, keys: AnyArray) -> IntArray:
        """Return for every key [m] its place among the known ones, or -1."""
        found = np.full(len(keys), -1, dtype=np.int64)
        for start in range(0, len(keys) if len(self._known) else 0, SEARCHED_AT_ONCE):
            part = slice(start, start + SEARCHED_AT_ONCE)
            found[part] = self._positions(_halves(keys[part]))
        return found

    def _positions(self, keys: AnyArray) -> IntArray:
        mixed, last = _mixed(keys), len(self._mixed) - 1
        slots = np.empty(len(keys), dtype=np.int64)
        # Looked up in ascending order, neighbours are found in memory that was just read.
        ascending = np.argsort(mixed)
        slots[ascending] = np.searchsorted(self._mixed, mixed[ascending])
        found = np.full(len(keys), -1, dtype=np.int64)
        open_ones = np.flatnonzero(slots <= last)
        # Different keys hardly ever mix to the same number; those that do stand next to each other.
        while len(open_ones):
            open_ones = open_ones[self._mixed[slots[open_ones]] == mixed[open_ones]]
            places = self._order[slots[open_ones]]
            is_same = (self._known[places] == keys[open_ones]).all(axis=1)
            found[open_ones[is_same]] = places[is_same]
            open_ones = open_ones[~is_same]
            slots[open_ones] += 1
            open_ones = open_ones[slots[open_ones] <= last]
        return found


def _halves(keys: AnyArray) -> AnyArray:
    return np.ascontiguousarray(keys).view(np.uint64).reshape(-1, 2)


def _mixed(halves: AnyArray) -> AnyArray:
    with np.errstate(over="ignore"):
        return np.asarray(halves[:, 0] ^ (halves[:, 1] * ODD))


CHECKED_FILE = "checked.keys"


@dataclass(frozen=True, kw_only=True, eq=False)
class CheckedFile:
    """What is known of a file of rows.

    Args:
        mark: its size and time of change when it was read.
        width: numbers in a row.
        keys: packed content hashes of its rows [n].
    """

    mark: tuple[int, int]
    width: int
    keys: AnyArray


def mark_of(path: Path) -> tuple[int, int]:
    """Return the size of a file and when it was changed; (-1, -1) if it is not there."""
    try:
        facts = path.stat()
    except OSError:
        return -1, -1
    return facts.st_size, facts.st_mtime_ns


def read_checked(folder: Path) -> dict[str, CheckedFile]:
    """Return what is known of files by name; nothing if that was never written or is damaged."""
    try:
        with (folder / CHECKED_FILE).open("rb") as stream:
            checksum, line = int(stream.readline(), 16), stream.readline()
            keys = np.fromfile(stream, dtype=KEY_TYPE)
        if zlib.crc32(_bytes(keys), zlib.crc32(line)) != checksum:
            return {}
        head = json.loads(line)
        stops = np.cumsum([int(entry["rows"]) for entry in head["files"]]).tolist()
        return {
            str(entry["name"]): CheckedFile(
                mark=(int(entry["size"]), int(entry["changed"])),
                width=int(entry["width"]),
                keys=keys[stop - int(entry["rows"]) : stop],
            )
            for entry, stop in zip(head["files"], stops, strict=True)
        }
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def write_checked(folder: Path, files: Mapping[str, CheckedFile]) -> None:
    listed: list[dict[str, str | int]] = [
        {
            "name": name,
            "size": one.mark[0],
            "changed": one.mark[1],
            "width": one.width,
            "rows": len(one.keys),
        }
        for name, one in files.items()
    ]
    line = json.dumps({"files": listed}).encode() + b"\n"
    checksum = zlib.crc32(line)
    for one in files.values():
        checksum = zlib.crc32(_bytes(one.keys), checksum)
    with atomic.replacing(folder / CHECKED_FILE) as temporary, temporary.open("wb") as stream:
        stream.write(f"{checksum:08x}\n".encode() + line)
        for one in files.values():
            stream.write(_bytes(one.keys))


def together(parts: Sequence[AnyArray]) -> AnyArray:
    return np.concatenate(parts) if parts else np.empty(0, dtype=KEY_TYPE)


def _bytes(keys: AnyArray) -> memoryview:
    return np.ascontiguousarray(keys).view(np.uint8).data
