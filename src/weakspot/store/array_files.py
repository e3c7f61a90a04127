"""Arrays on disk: .npy files written block by block or whole, read through memory maps, with length and checksum."""

import io
import os
import zlib
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import numpy as np

from weakspot.core.arrays import AnyArray, FloatArray
from weakspot.core.errors import StoreError
from weakspot.store import atomic
from weakspot.store.names import KEY_TYPE

BLOCK_BYTES = 1 << 24
KEY_COLUMNS = np.dtype(KEY_TYPE).itemsize // np.dtype(np.float32).itemsize


class ArrayWriter:
    """Writes a .npy file of known shape, block after block, with little memory.

    Args:
        path: where to write; wrap it in `replacing` to make it atomic.
        shape: the final shape; exactly so many rows must be written.
        kind: type of the numbers.
    """

    def __init__(self, path: Path, shape: tuple[int, ...], kind: Any) -> None:
        self._path = path
        self._shape = shape
        self._kind = np.dtype(kind)
        self._n_written = 0

    def __enter__(self) -> Self:
        self._stream = self._path.open("wb")
        _write_head(self._stream, self._kind, self._shape)
        return self

    def write(self, rows: AnyArray) -> None:
        self._stream.write(np.ascontiguousarray(rows, dtype=self._kind).tobytes())
        self._n_written += len(rows)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stream.close()
        if error is None and self._n_written != self._shape[0]:
            raise ValueError(
                f"{self._n_written} rows were written, {self._shape[0]} were announced"
            )


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


def record_numbers(path: Path) -> FloatArray:
    """Return a file of records as one array of numbers [n, 4 + width], memory-mapped; the first four columns are the key."""
    records = mapped(path)
    return records.view(np.float32).reshape(len(records), -1)


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
