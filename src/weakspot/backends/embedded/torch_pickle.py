"""The arrays of a file that torch.save wrote before version 1.6, read without torch and without running anything in it.

Such a file is four small pickles and then the raw numbers. A pickle may call what it likes when it is opened; this reader knows the
four names that a table of arrays needs, and refuses every other one.
"""

import pickle
import struct
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from weakspot.core.arrays import AnyArray
from weakspot.core.errors import ModelError

MAGIC = 0x1950A86A20F9469CFC6C
PROTOCOL = 1001
_STORAGES = {
    "FloatStorage": "<f4",
    "DoubleStorage": "<f8",
    "HalfStorage": "<f2",
    "LongStorage": "<i8",
    "IntStorage": "<i4",
}
_STATE = "state_dict"


@dataclass(frozen=True)
class _StorageKind:
    dtype: str


@dataclass(frozen=True)
class _Storage:
    key: str
    dtype: str


@dataclass(frozen=True)
class _View:
    """A part of a storage, by first number, shape and steps."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    steps: tuple[int, ...]

    def read(self, storages: Mapping[str, AnyArray]) -> AnyArray:
        numbers = storages[self.storage.key]
        last = self.offset + sum(
            (n - 1) * step for n, step in zip(self.shape, self.steps, strict=True)
        )
        if (
            self.offset < 0
            or min((*self.shape, *self.steps), default=0) < 0
            or last >= len(numbers)
        ):
            raise ValueError("an array lies outside its storage")
        size = numbers.itemsize
        return np.lib.stride_tricks.as_strided(
            numbers[self.offset :], self.shape, tuple(step * size for step in self.steps)
        ).copy()


class _Reader(pickle.Unpickler):
    """Knows ordered dictionaries, arrays and kinds of numbers."""

    def find_class(self, module: str, name: str, /) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) in {
            ("torch._utils", "_rebuild_tensor"),
            ("torch._utils", "_rebuild_tensor_v2"),
        }:
            return _view
        if module == "torch" and name in _STORAGES:
            return _StorageKind(_STORAGES[name])
        raise pickle.UnpicklingError(f"it names {module}.{name}")

    def persistent_load(self, pid: Any) -> _Storage:
        what, kind, key, *_ = pid
        if what != "storage" or not isinstance(kind, _StorageKind):
            raise pickle.UnpicklingError("it holds something else than arrays")
        return _Storage(str(key), kind.dtype)


def read_arrays_of_torch(path: Path) -> dict[str, AnyArray]:
    """Return the named arrays of a table of weights, or of the table `state_dict` in a checkpoint.

    Raises:
        ModelError: if the file holds anything else, or is cut short.
    """
    try:
        with path.open("rb") as stream:
            return _read(stream)
    except (
        pickle.UnpicklingError,
        ValueError,
        TypeError,
        EOFError,
        KeyError,
        struct.error,
    ) as error:
        raise ModelError(
            f"This is no table of weights that can be read without running it: {error}.",
            where=str(path),
            fix="Delete the file; it is fetched again when it is next needed.",
        ) from error


def _read(stream: IO[bytes]) -> dict[str, AnyArray]:
    if _next(stream) != MAGIC or _next(stream) != PROTOCOL:
        raise ValueError("it was not written by torch.save before version 1.6")
    if _next(stream).get("little_endian") is not True:
        raise ValueError("its numbers are in another byte order")
    content = _next(stream)
    table = content.get(_STATE, content) if isinstance(content, dict) else None
    if not isinstance(table, dict):
        raise TypeError("it holds no named arrays")
    views = {str(name): value for name, value in table.items() if isinstance(value, _View)}
    kinds = {view.storage.key: view.storage.dtype for view in views.values()}
    storages = {str(key): _numbers(stream, kinds.get(str(key), "<f4")) for key in _next(stream)}
    return {name: view.read(storages) for name, view in views.items()}


def _next(stream: IO[bytes]) -> Any:
    return _Reader(stream, encoding="latin1").load()


def _numbers(stream: IO[bytes], dtype: str) -> AnyArray:
    (count,) = struct.unpack("<q", stream.read(8))
    kind = np.dtype(dtype)
    content = stream.read(count * kind.itemsize)
    if count < 0 or len(content) != count * kind.itemsize:
        raise EOFError("it is cut short")
    return np.frombuffer(content, dtype=kind)


def _view(
    storage: _Storage, offset: int, shape: tuple[int, ...], steps: tuple[int, ...], *_: object
) -> _View:
    return _View(storage, int(offset), tuple(shape), tuple(steps))
