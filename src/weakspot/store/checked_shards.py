"""Which files of rows were read in full and found sound, with their keys: so that opening a cache need not read them all again."""

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weakspot.core.arrays import AnyArray
from weakspot.store import atomic
from weakspot.store.names import KEY_TYPE

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
    """Write down what is known of files."""
    listed: list[dict[str, str | int]] = [
        {"name": name, "size": one.mark[0], "changed": one.mark[1], "width": one.width, "rows": len(one.keys)}
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
    """Return keys of several files as one array."""
    return np.concatenate(parts) if parts else np.empty(0, dtype=KEY_TYPE)


def _bytes(keys: AnyArray) -> memoryview:
    return np.ascontiguousarray(keys).view(np.uint8).data
