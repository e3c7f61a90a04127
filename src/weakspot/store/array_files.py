"""Arrays on disk by fixed-width keys: .npy files written block by block or whole, with length and checksum.

And shards known to be sound.
"""

import hashlib
import io
import json
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weakspot.core.arrays import AnyArray, ByteArray, FloatArray, IntArray
from weakspot.core.errors import StoreError
from weakspot.store import atomic

HASH_BYTES = 16
HASH_DIGITS = 2 * HASH_BYTES
KEY_TYPE = f"S{HASH_BYTES}"
_NO_DIGIT = 255
_VALUE_OF_DIGIT = np.full(256, _NO_DIGIT, dtype=np.uint8)
_VALUE_OF_DIGIT[[ord(digit) for digit in "0123456789abcdef"]] = np.arange(16, dtype=np.uint8)


def folder_name(identity: str) -> str:
    """Return a readable folder name for an id of any length and characters; different ids give different names.

    >>> folder_name("embedded/vit-b-32@1")
    'embedded-vit-b-32-1-f450d3ff20'
    """
    readable = re.sub(r"[^A-Za-z0-9_.]+", "-", identity).strip("-.")[:40]
    return f"{readable}-{hashlib.sha256(identity.encode()).hexdigest()[:10]}"


def sign_folder(folder: Path, identity: str) -> None:
    """Make the folder of a model, with a file that says whose it is, if it is not there yet."""
    marker = folder / "model.json"
    if not marker.exists():
        folder.mkdir(parents=True, exist_ok=True)
        atomic.write_json(marker, {"id": identity})


def packed_hashes(hashes: pa.Array | pa.ChunkedArray) -> AnyArray:
    """Return hashes as an array [n] of 16 bytes each, which sorts and searches without Python objects.

    Strings that are not 32 hexadecimal digits are hashed first, so every string has a key.
    """
    chunks = hashes.chunks if isinstance(hashes, pa.ChunkedArray) else [hashes]
    packed = [_packed_chunk(chunk) for chunk in chunks if len(chunk)]
    return np.concatenate(packed) if packed else np.empty(0, dtype=KEY_TYPE)


def _packed_chunk(chunk: pa.Array) -> AnyArray:
    lengths = np.asarray(pc.fill_null(pc.binary_length(chunk), 0))
    if bool((lengths == HASH_DIGITS).all()):
        values = _VALUE_OF_DIGIT[_characters(chunk).reshape(len(chunk), HASH_DIGITS)]
        if values.max() != _NO_DIGIT:
            pairs = np.ascontiguousarray(values[:, ::2] << 4 | values[:, 1::2])
            return pairs.view(KEY_TYPE)[:, 0]
    return np.array(
        [
            hashlib.blake2b(str(text).encode(), digest_size=HASH_BYTES).digest()
            for text in chunk.to_pylist()
        ],
        KEY_TYPE,
    )


def _characters(chunk: pa.Array) -> ByteArray:
    _, offsets, characters = chunk.cast(pa.string()).buffers()
    bounds = np.frombuffer(offsets, dtype=np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
    return np.frombuffer(characters, dtype=np.uint8)[bounds[0] : bounds[-1]]


BLOCK_BYTES = 1 << 24
KEY_COLUMNS = np.dtype(KEY_TYPE).itemsize // np.dtype(np.float32).itemsize


@contextmanager
def writing_array(
    path: Path, shape: tuple[int, ...], kind: Any
) -> Iterator[Callable[[AnyArray], None]]:
    """Yield what adds rows to a new .npy file of known shape, block after block, with little memory.

    Args:
        path: where to write; wrap it in `replacing` to make it atomic.
        shape: the final shape; exactly so many rows must be written.
        kind: type of the numbers.
    """
    n_written = 0
    with path.open("wb") as stream:
        _write_head(stream, np.dtype(kind), shape)

        def write(rows: AnyArray) -> None:
            nonlocal n_written
            stream.write(np.ascontiguousarray(rows, dtype=kind).tobytes())
            n_written += len(rows)

        yield write
    if n_written != shape[0]:
        raise ValueError(f"{n_written} rows were written, {shape[0]} were announced")


def mapped(path: Path, *, n_rows: int | None = None) -> AnyArray:
    """Return an array file as a read-only memory map.

    Raises:
        StoreError: if the file is cut short, is no array, or has another number of rows than expected.
    """
    try:
        array: AnyArray = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise atomic.damaged(path, str(error)) from error
    if n_rows is not None and len(array) != n_rows:
        raise atomic.damaged(path, f"it has {len(array)} rows instead of {n_rows}")
    return array


def grow(path: Path, target: Path, blocks: Iterable[AnyArray], *, n_rows: int) -> bool:
    """Append rows to an array file and give it another name; what it held is not written again.

    Killed at any instant, the file has its old name and rows, or its old name and more rows than expected, or the new name and all
    rows. Whoever has mapped it keeps seeing the old rows.

    Args:
        path: the file.
        target: its new name, in the same folder.
        blocks: the new rows, a few at a time.
        n_rows: how many rows it has in the end.

    Returns:
        Whether it could be done: not every file leaves room in its head for a larger number.
    """
    array = mapped(path)
    if not isinstance(array, np.memmap):
        return False
    kind, shape, begin, end = (
        array.dtype,
        array.shape,
        int(array.offset),
        int(array.offset) + array.nbytes,
    )
    head = io.BytesIO()
    _write_head(head, kind, (n_rows, *shape[1:]))
    if head.tell() != begin or not array.flags.c_contiguous:
        return False
    del array
    with path.open("r+b") as stream:
        try:
            stream.truncate(end)
            stream.seek(end)
            for block in blocks:
                stream.write(np.ascontiguousarray(block, dtype=kind).data)
            stream.flush()
            os.fsync(stream.fileno())
        except BaseException:
            stream.truncate(end)
            raise
        stream.seek(0)
        stream.write(head.getvalue())
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(path, target)
    atomic.flush_folder(path.parent)
    return True


def _write_head(stream: BinaryIO, kind: np.dtype[Any], shape: tuple[int, ...]) -> None:
    head = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, head)


def write_records(folder: Path, stem: str, keys: AnyArray, rows: FloatArray) -> Path:
    """Write (key, row) records to one array file in one step; its checksum becomes part of its name."""
    records = np.empty(len(keys), dtype=[("key", KEY_TYPE), ("row", np.float32, (rows.shape[1],))])
    records["key"], records["row"] = keys, rows
    path = folder / f"{stem}-{zlib.crc32(records.view(np.uint8).data):08x}.npy"
    with atomic.replacing(path) as temporary, temporary.open("wb") as stream:
        np.save(stream, records)
    return path


def checked_records(path: Path, checksum: int) -> tuple[AnyArray, int] | None:
    """Return the keys [n] and the width of a file of records, or None if it does not hold what was written."""
    try:
        described = mapped(path)
        with path.open("rb") as stream:
            stream.seek(os.path.getsize(path) - described.nbytes)
            return _read_keys(stream, described, checksum)
    except (StoreError, OSError):
        return None


def _read_keys(stream: BinaryIO, described: AnyArray, checksum: int) -> tuple[AnyArray, int] | None:
    if described.dtype.names != ("key", "row"):
        return None
    keys = np.empty(len(described), dtype=KEY_TYPE)
    step = max(1, BLOCK_BYTES // described.dtype.itemsize)
    value = 0
    for start in range(0, len(keys), step):
        block = np.fromfile(stream, dtype=described.dtype, count=min(step, len(keys) - start))
        value = zlib.crc32(block.view(np.uint8).data, value)
        keys[start : start + len(block)] = block["key"]
    return (keys, int(described.dtype["row"].shape[0])) if value == checksum else None


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
class Shard:
    """One file of records, read and found sound.

    Args:
        path: where it is; its name has its number, in the order they were written.
        keys: packed content hashes of its rows [n].
        width: numbers in a row.
        mark: its size and time of change when it was read.
    """

    path: Path
    keys: AnyArray
    width: int
    mark: tuple[int, int]

    @property
    def number(self) -> int:
        return int(self.path.name.split("-")[1])

    def rows(self) -> FloatArray:
        """Return the rows [n, width] as a memory map."""
        return np.asarray(mapped(self.path)["row"])

    def numbers(self) -> FloatArray:
        """Return the records as numbers [n, 4 + width], memory-mapped; the first four are the key."""
        records = mapped(self.path)
        return records.view(np.float32).reshape(len(records), -1)


def mark_of(path: Path) -> tuple[int, int]:
    """Return the size of a file and when it was changed; (-1, -1) if it is not there."""
    try:
        facts = path.stat()
    except OSError:
        return -1, -1
    return facts.st_size, facts.st_mtime_ns


def read_checked(folder: Path) -> dict[str, Shard]:
    """Return the shards that were noted by name; nothing if that was never written or is damaged."""
    try:
        with (folder / CHECKED_FILE).open("rb") as stream:
            checksum, line = int(stream.readline(), 16), stream.readline()
            keys = np.fromfile(stream, dtype=KEY_TYPE)
        if zlib.crc32(_bytes(keys), zlib.crc32(line)) != checksum:
            return {}
        head = json.loads(line)
        stops = np.cumsum([int(entry["rows"]) for entry in head["files"]]).tolist()
        return {
            str(entry["name"]): Shard(
                path=folder / str(entry["name"]),
                mark=(int(entry["size"]), int(entry["changed"])),
                width=int(entry["width"]),
                keys=keys[stop - int(entry["rows"]) : stop],
            )
            for entry, stop in zip(head["files"], stops, strict=True)
        }
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def write_checked(folder: Path, shards: Sequence[Shard]) -> None:
    """Note shards that were found sound."""
    listed: list[dict[str, str | int]] = [
        {
            "name": shard.path.name,
            "size": shard.mark[0],
            "changed": shard.mark[1],
            "width": shard.width,
            "rows": len(shard.keys),
        }
        for shard in shards
    ]
    line = json.dumps({"files": listed}).encode() + b"\n"
    keys = _bytes(together([shard.keys for shard in shards]))
    with atomic.replacing(folder / CHECKED_FILE) as temporary, temporary.open("wb") as stream:
        stream.write(f"{zlib.crc32(keys, zlib.crc32(line)):08x}\n".encode() + line)
        stream.write(keys)


def together(parts: Sequence[AnyArray]) -> AnyArray:
    return np.concatenate(parts) if parts else np.empty(0, dtype=KEY_TYPE)


def _bytes(keys: AnyArray) -> memoryview:
    return np.ascontiguousarray(keys).view(np.uint8).data
