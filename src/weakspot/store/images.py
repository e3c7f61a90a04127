"""Encoded images in packs, for sources that hold them only in memory, and what earlier readings found out about images."""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import AnyArray
from weakspot.core.dataset import ExaminedSample, RawSample

FULL_PACK_BYTES = 1 << 30
PACK_NAME = re.compile(r"images-(\d{4})\.bin")
PACK_SCHEME = "weakspot-pack:"


PackPosition = tuple[int, int]
"""How far a pack is filled: so many full files, and so many bytes of the next."""

PACK_START: PackPosition = (0, 0)


class ImagePack:
    """Encoded images, one after the other.

    An image is addressed by `weakspot-pack:<folder>/images-0000.bin#bytes=<offset>-<length>`, which stays true when the project
    folder is moved; the data set that is read from the store has real paths.

    Args:
        folder: where the files are.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.position = PACK_START
        self._stream: BinaryIO | None = None

    def append(self, data: bytes) -> str:
        """Add an image and return its address; it is on disk after the next `flush`."""
        shard, length = self.position
        if length and length + len(data) > FULL_PACK_BYTES:
            self.close()
            shard, length = shard + 1, 0
        path = self._path(shard)
        if self._stream is None:
            self._stream = path.open("ab")
        self._stream.write(data)
        self.position = shard, length + len(data)
        return f"{PACK_SCHEME}{self.folder.name}/{path.name}#bytes={length}-{len(data)}"

    def flush(self) -> None:
        if self._stream is not None:
            self._stream.flush()
            os.fsync(self._stream.fileno())

    def close(self) -> None:
        if self._stream is not None:
            self.flush()
            self._stream.close()
            self._stream = None

    def cut_back(self, position: PackPosition) -> None:
        """Forget everything after a position: images whose samples were never recorded."""
        self.close()
        self.position = position
        shard, length = position
        for path in self.folder.glob("*.bin"):
            found = PACK_NAME.fullmatch(path.name)
            if found is None or int(found[1]) > shard:
                path.unlink()
        last = self._path(shard)
        if last.exists():
            os.truncate(last, length)

    def is_whole(self, position: PackPosition) -> bool:
        """Return whether the pack reaches at least to a position."""
        shard, length = position
        path = self._path(shard)
        return length == 0 or (path.exists() and path.stat().st_size >= length)

    def _path(self, shard: int) -> Path:
        return self.folder / f"images-{shard:04d}.bin"


KNOWN_COLUMNS = (
    "location",
    "content_hash",
    "width",
    "height",
    "notes",
    "stamp",
    "reason",
    "moment",
)

BUCKET_ROWS = 1 << 18
MAX_BUCKETS = 256
_RECORD = np.dtype(
    [
        ("high", "<u8"),
        ("low", "<u8"),
        ("stamp", "<u8"),
        ("content", "V16"),
        ("width", "<i4"),
        ("height", "<i4"),
        ("notes", "<u2"),
        ("moment", "<i8"),
    ]
)
_UNKNOWN_STAMP = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class KnownImage:
    """What was found out about an image.

    Args:
        record: as it lies in its bucket.
        notes: what had to be handled.
    """

    record: np.void
    notes: tuple[str, ...]

    def has_stamp(self, stamp: str | None) -> bool:
        return stamp is not None and int(self.record["stamp"]) == _number(stamp)

    def examined(self, raw: RawSample) -> ExaminedSample:
        """Return what examining a sample with this image gives."""
        return ExaminedSample(
            raw=raw,
            content_hash=self.record["content"].tobytes().hex(),
            width=int(self.record["width"]),
            height=int(self.record["height"]),
            notes=self.notes,
            moment=int(self.record["moment"]),
        )


class KnownImages:
    """Looks up what was found out about locations.

    Args:
        folder: where the buckets are; empty when made by `write_known`, and the caller's to delete.
        n_buckets: how many, a power of two.
        notes: every combination of notes that occurs.
    """

    def __init__(self, folder: Path, n_buckets: int, notes: Sequence[tuple[str, ...]]) -> None:
        self._folder = folder
        self._shift = 64 - (n_buckets.bit_length() - 1)
        self._notes = notes
        self._buckets: dict[int, tuple[AnyArray, AnyArray]] = {}

    def at(self, location: str) -> list[KnownImage]:
        high, low = _key(location)
        hashes, records = self._drawer(high >> self._shift)
        start = int(np.searchsorted(hashes, np.uint64(high), side="left"))
        found = []
        while start < len(hashes) and int(hashes[start]) == high:
            if int(records[start]["low"]) == low:
                found.append(
                    KnownImage(
                        record=records[start], notes=self._notes[int(records[start]["notes"])]
                    )
                )
            start += 1
        return found

    def with_content(self, content_hash: str) -> list[KnownImage]:
        return self.at(f"{PACK_SCHEME}{content_hash}")

    def _drawer(self, number: int) -> tuple[AnyArray, AnyArray]:
        if number not in self._buckets:
            records = self._folder / f"{number}.records"
            if not records.exists() or not records.stat().st_size:
                self._buckets[number] = (np.empty(0, dtype=np.uint64), np.empty(0, dtype=_RECORD))
            else:
                hashes = np.memmap(self._folder / f"{number}.hashes", dtype="<u8", mode="r")
                self._buckets[number] = (hashes, np.memmap(records, dtype=_RECORD, mode="r"))
        return self._buckets[number]


def write_known(tables: Iterable[pa.Table], folder: Path, *, n_rows: int) -> KnownImages:
    """Write what examined samples tell into buckets.

    Args:
        tables: with the `KNOWN_COLUMNS`.
        folder: an empty folder.
        n_rows: about how many rows there are.
    """
    n_buckets = 1
    while n_buckets < MAX_BUCKETS and n_buckets * BUCKET_ROWS < n_rows:
        n_buckets *= 2
    notes: dict[tuple[str, ...], int] = {}
    shift = np.uint64(64 - (n_buckets.bit_length() - 1))
    with ExitStack() as stack:
        files = [
            stack.enter_context((folder / f"{number}.records").open("wb"))
            for number in range(n_buckets)
        ]
        for table in tables:
            records = np.array(list(_records(table, notes)), dtype=_RECORD)
            buckets = (
                records["high"] >> shift
                if n_buckets > 1
                else np.zeros(len(records), dtype=np.uint64)
            )
            for number in np.unique(buckets):
                files[int(number)].write(records[buckets == number].tobytes())
    for number in range(n_buckets):
        _sort(folder, number)
    return KnownImages(folder, n_buckets, list(notes))


def _records(table: pa.Table, notes: dict[tuple[str, ...], int]) -> Iterator[tuple[object, ...]]:
    columns = [table.column(name).to_pylist() for name in KNOWN_COLUMNS]
    for location, content, width, height, noted, stamp, reason, moment in zip(
        *columns, strict=True
    ):
        if reason is not None or location is None:
            continue
        number = notes.setdefault(tuple(noted or ()), len(notes))
        if number > np.iinfo(np.uint16).max:
            continue
        known = f"{PACK_SCHEME}{content}" if location.startswith(PACK_SCHEME) else location
        marked = _UNKNOWN_STAMP if stamp is None else _number(stamp)
        content_bytes = np.void(bytes.fromhex(content))
        yield (*_key(known), marked, content_bytes, width, height, number, moment or 0)


def _sort(folder: Path, number: int) -> None:
    path = folder / f"{number}.records"
    records = np.fromfile(path, dtype=_RECORD)
    ordered = records[np.argsort(records["high"], kind="stable")]
    # Not `tofile`: on a full disk it says how many were written, and not why.
    path.write_bytes(ordered.tobytes())
    (folder / f"{number}.hashes").write_bytes(ordered["high"].tobytes())


def _key(location: str) -> tuple[int, int]:
    digest = hashlib.blake2b(location.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:], "big")


def _number(stamp: str) -> int:
    return (
        int.from_bytes(
            hashlib.blake2b(stamp.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big"
        )
        or 1
    )
