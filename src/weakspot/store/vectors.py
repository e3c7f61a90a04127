"""Rows of numbers by content hash: what was computed once is never computed again.

A cache is a folder of shards, each one array file of (hash, row) records written in one step, with its checksum in its name. From
the shards, matrices aligned with the rows of a data set are made, which are read through memory maps.
"""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, FloatArray, IntArray
from weakspot.core.errors import StoreError
from weakspot.store import atomic
from weakspot.store.array_files import checked_records, mapped, write_records
from weakspot.store.names import KEY_TYPE

SHARD_NAME = re.compile(r"shard-(\d{6})-([0-9a-f]{8})\.npy")
MATRIX_NAME = re.compile(r"(?P<name>[a-z]+)-(?P<digest>[0-9a-f]{16})-without-(?P<n_missing>\d+)\.npy")
FULL_SHARD_ROWS = 65_536
MANY_SHARDS = 16


@dataclass(frozen=True, kw_only=True, eq=False)
class Shard:
    """One file of rows, read and found sound.

    Args:
        path: where it is.
        number: shards are numbered in the order they were written.
        keys: packed content hashes of its rows [n].
        width: numbers in a row.
    """

    path: Path
    number: int
    keys: AnyArray
    width: int

    def rows(self) -> FloatArray:
        """Return the rows [n, width] as a memory map."""
        return np.asarray(mapped(self.path)["row"])


@dataclass(frozen=True, kw_only=True, eq=False)
class AlignedMatrix:
    """Rows in the order of a data set.

    Args:
        values: [n, d], memory-mapped; a row of NaN where there is none.
        n_missing: how many rows there are none for.
    """

    values: FloatArray
    n_missing: int


class VectorCache:
    """Rows by content hash, of one encoder or classifier.

    Args:
        folder: where the shards are; made on first write.
        identity: id of the model that makes the rows, for messages and for people who look into the folder.
    """

    def __init__(self, folder: Path, *, identity: str) -> None:
        self.folder = folder
        self.identity = identity
        self._shards: list[Shard] | None = None

    def missing(self, keys: AnyArray) -> BoolArray:
        """Return for which keys [n] there is no row yet."""
        return np.isin(keys, self._known_keys(), invert=True)

    def append(self, keys: AnyArray, rows: FloatArray) -> None:
        """Store rows [n, width]; they are on disk when this returns."""
        if not len(keys):
            return
        shards = self._sound_shards()
        self._check_width(rows.shape[1])
        self._sign()
        number = shards[-1].number + 1 if shards else 0
        path = write_records(self.folder, f"shard-{number:06d}", keys, rows)
        shards.append(Shard(path=path, number=number, keys=np.array(keys, dtype=KEY_TYPE), width=rows.shape[1]))

    def everything(self) -> tuple[AnyArray, FloatArray]:
        """Return all keys [n] and their rows [n, width], in the order they were stored; a key may occur twice."""
        shards = self._sound_shards()
        if not shards:
            return np.empty(0, dtype=KEY_TYPE), np.empty((0, 0), dtype=np.float32)
        return self._known_keys(), np.concatenate([shard.rows() for shard in shards])

    def matrix(self, keys: AnyArray, *, name: str = "matrix", columns: IntArray | None = None) -> AlignedMatrix | None:
        """Return the matrix for these keys if it was made before and is whole; nothing else is read."""
        for path, digest, n_missing in self._matrices(name):
            if digest == _digest(keys, columns):
                try:
                    return AlignedMatrix(values=mapped(path, n_rows=len(keys)), n_missing=n_missing)
                except StoreError:
                    path.unlink(missing_ok=True)
        return None

    def materialise(self, keys: AnyArray, *, width: int, name: str = "matrix", columns: IntArray | None = None) -> AlignedMatrix:
        """Write and return the matrix [n, d] for these keys, in their order.

        Args:
            keys: packed content hashes of the data set, in its order.
            width: numbers in a row, needed when nothing is stored yet.
            name: which matrix of the cache is meant; the one of that name made before is replaced.
            columns: which numbers of a row to take, in which order; all by default.
        """
        self._check_width(width)
        self._sign()
        chosen = np.arange(width) if columns is None else columns
        found = self._positions(keys)
        n_missing = int((found < 0).sum())
        path = self.folder / f"{name}-{_digest(keys, columns)}-without-{n_missing}.npy"
        with atomic.replacing(path) as temporary:
            self._fill(temporary, found, chosen)
        for other, _, _ in self._matrices(name):
            if other != path:
                other.unlink(missing_ok=True)
        return AlignedMatrix(values=mapped(path, n_rows=len(keys)), n_missing=n_missing)

    def compact(self) -> None:
        """Merge many small shards into few large ones; killed half-way, some rows are stored twice until the next time."""
        small = [shard for shard in self._sound_shards() if len(shard.keys) < FULL_SHARD_ROWS // 2]
        if len(small) < MANY_SHARDS:
            return
        large_keys = [shard.keys for shard in self._sound_shards() if shard not in small]
        known = np.concatenate(large_keys) if large_keys else np.empty(0, dtype=KEY_TYPE)
        for group in _groups(small):
            keys, first = np.unique(np.concatenate([shard.keys for shard in group]), return_index=True)
            new = np.isin(keys, known, invert=True)
            rows = np.concatenate([shard.rows() for shard in group])[np.sort(first[new])]
            self.append(np.concatenate([shard.keys for shard in group])[np.sort(first[new])], rows)
            for shard in group:
                shard.path.unlink(missing_ok=True)
        self._shards = None

    def _known_keys(self) -> AnyArray:
        keys = [shard.keys for shard in self._sound_shards()]
        return np.concatenate(keys) if keys else np.empty(0, dtype=KEY_TYPE)

    def _sound_shards(self) -> list[Shard]:
        if self._shards is None:
            found = [self._read_shard(path) for path in sorted(self.folder.glob("shard-*.npy"))]
            self._shards = [shard for shard in found if shard is not None]
        return self._shards

    def _read_shard(self, path: Path) -> Shard | None:
        """Return a shard, or None after removing it when it is not what was written: its rows are then made anew."""
        name = SHARD_NAME.fullmatch(path.name)
        records = checked_records(path, int(name[2], 16)) if name else None
        if name is None or records is None:
            path.unlink(missing_ok=True)
            return None
        keys, width = records
        return Shard(path=path, number=int(name[1]), keys=keys, width=width)

    def _check_width(self, width: int) -> None:
        others = {shard.width for shard in self._sound_shards()} - {width}
        if others:
            raise StoreError(
                f"{self.identity!r} now gives {width} numbers a sample, but gave {sorted(others)} before under the same id.",
                where=str(self.folder),
                fix="Give the changed model another id, or delete this folder.",
            )

    def _sign(self) -> None:
        marker = self.folder / "model.json"
        if not marker.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            atomic.write_json(marker, {"id": self.identity})

    def _positions(self, keys: AnyArray) -> IntArray:
        """Return for every key [n] its position in all shards laid end to end, or -1."""
        known = self._known_keys()
        if not len(known):
            return np.full(len(keys), -1, dtype=np.int64)
        order = np.argsort(known, kind="stable")
        slots = np.minimum(np.searchsorted(known, keys, sorter=order), len(known) - 1)
        return np.where(known[order[slots]] == keys, order[slots], -1).astype(np.int64)

    def _fill(self, path: Path, found: IntArray, columns: IntArray) -> None:
        shape = (len(found), len(columns))
        target = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
        target[found < 0] = np.nan
        start = 0
        for shard in self._sound_shards():
            stop = start + len(shard.keys)
            rows = np.flatnonzero((found >= start) & (found < stop))
            target[rows] = shard.rows()[found[rows] - start][:, columns]
            start = stop
        target.flush()

    def _matrices(self, name: str) -> list[tuple[Path, str, int]]:
        matched = [(path, MATRIX_NAME.fullmatch(path.name)) for path in sorted(self.folder.glob(f"{name}-*.npy"))]
        return [(path, match["digest"], int(match["n_missing"])) for path, match in matched if match and match["name"] == name]


def _digest(keys: AnyArray, columns: IntArray | None) -> str:
    content = hashlib.sha256(np.ascontiguousarray(keys).view(np.uint8).data)
    content.update(b"" if columns is None else np.ascontiguousarray(columns, dtype=np.int64).tobytes())
    return content.hexdigest()[:16]


def _groups(shards: list[Shard]) -> list[list[Shard]]:
    groups: list[list[Shard]] = [[]]
    n_rows = 0
    for shard in shards:
        if n_rows + len(shard.keys) > FULL_SHARD_ROWS:
            groups.append([])
            n_rows = 0
        groups[-1].append(shard)
        n_rows += len(shard.keys)
    return [group for group in groups if len(group) > 1]
