"""Remote images on this machine, least recently used first to go, never more than a bound, shared by threads and processes.

Every image is one file that begins with a hash of what follows, written beside its place and then put there in one step, so a
reader finds all of it, or nothing. A small file counts the bytes of all of them under a lock. A cache that cannot be used (a full
disk, a folder that may not be written) is no cache: images are then read from where they are.
"""

import contextlib
import fcntl
import hashlib
import os
import secrets
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

MARK = b"weakspot image 1\n"
DIGEST_BYTES = 16
HEAD_BYTES = len(MARK) + DIGEST_BYTES
ENTRY_SUFFIX = ".image"
COUNTER_NAME = "bytes"
KEPT_SHARE = 0.9
LARGEST_PART = 4
_COUNT = struct.Struct("<q")


@dataclass(frozen=True, kw_only=True)
class DiskCache:
    """Bytes by location.

    Args:
        folder: where they are.
        most_bytes: of all of them together, headers included.
    """

    folder: Path
    most_bytes: int

    def get(self, location: str) -> bytes | None:
        """Return the bytes of a location, None if they are not here or not sound; damaged ones are deleted."""
        path = self._path(location)
        try:
            stored = path.read_bytes()
        except OSError:
            return None
        data = stored[HEAD_BYTES:]
        if stored[:HEAD_BYTES] != MARK + _digest(data):
            path.unlink(missing_ok=True)
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return data

    def put(self, location: str, data: bytes) -> None:
        """Keep the bytes of a location; what was used least recently makes room. One that would take a quarter is not kept."""
        n_bytes = HEAD_BYTES + len(data)
        if n_bytes > self.most_bytes // LARGEST_PART:
            return
        path = self._path(location)
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            with self._counting() as counter:
                counted = _count(counter)
                if counted is None or counted + n_bytes > self.most_bytes:
                    counted = self._make_room(n_bytes)
                _set_count(counter, counted + n_bytes)
            _write(path, MARK + _digest(data) + data)

    @property
    def n_bytes(self) -> int:
        """Return the bytes that are kept now."""
        return sum(size for _, size, _ in self._entries())

    def _path(self, location: str) -> Path:
        name = hashlib.blake2b(
            location.encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES
        ).hexdigest()
        return self.folder / name[:2] / f"{name[2:]}{ENTRY_SUFFIX}"

    @contextmanager
    def _counting(self) -> Iterator[BinaryIO]:
        descriptor = os.open(self.folder / COUNTER_NAME, os.O_RDWR | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "r+b") as counter:
            fcntl.flock(counter, fcntl.LOCK_EX)
            yield counter

    def _make_room(self, n_bytes: int) -> int:
        """Delete the least recently used until the rest and the new one fit with something to spare; return the bytes that stay."""
        entries = sorted(self._entries())
        total = sum(size for _, size, _ in entries)
        wanted = int(self.most_bytes * KEPT_SHARE) - n_bytes
        for _, size, path in entries:
            if total <= wanted:
                break
            Path(path).unlink(missing_ok=True)
            total -= size
        return total

    def _entries(self) -> Iterator[tuple[int, int, str]]:
        """Yield time of last use, bytes and path of every file, those among them that an interrupted write left behind."""
        for shelf in self.folder.glob("??"):
            with contextlib.suppress(OSError), os.scandir(shelf) as files:
                for file in files:
                    with contextlib.suppress(OSError):
                        found = file.stat()
                        yield found.st_mtime_ns, found.st_size, file.path


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest()


def _count(counter: BinaryIO) -> int | None:
    stored = counter.read(_COUNT.size)
    value = int(_COUNT.unpack(stored)[0]) if len(stored) == _COUNT.size else -1
    return value if value >= 0 else None


def _set_count(counter: BinaryIO, value: int) -> None:
    counter.seek(0)
    counter.write(_COUNT.pack(value))
    counter.truncate()


def _write(path: Path, content: bytes) -> None:
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
