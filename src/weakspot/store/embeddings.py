"""Rows of numbers by content hash: what was computed once is never computed again.

A cache is a folder of shards, each one array file of (hash, row) records written in one step, with its checksum in its name. From
the shards, matrices aligned with the rows of a data set are made, which are read through memory maps. When a data set grows at its
end, its matrix grows in place.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, FloatArray, IntArray
from weakspot.core.errors import StoreError
from weakspot.store import atomic
from weakspot.store.array_files import (
    BLOCK_BYTES,
    ArrayWriter,
    checked_records,
    grow,
    mapped,
    record_numbers,
    write_records,
)
from weakspot.store.checked_shards import (
    CheckedFile,
    KeyIndex,
    mark_of,
    read_checked,
    together,
    write_checked,
)
from weakspot.store.names import KEY_TYPE

SHARD_NAME = re.compile(r"shard-(\d{6})-([0-9a-f]{8})\.npy")
MATRIX_NAME = re.compile(
    r"(?P<name>[a-z]+)-(?P<digest>[0-9a-f]{16})-without-(?P<n_missing>\d+)\.npy"
)
FULL_SHARD_ROWS = 65_536
MANY_SHARDS = 16
MOST_OPEN = 16


@dataclass(frozen=True, kw_only=True, eq=False)
class Shard:
    """One file of rows, read and found sound.

    Args:
        path: where it is.
        number: shards are numbered in the order they were written.
        keys: packed content hashes of its rows [n].
        width: numbers in a row.
        mark: its size and time of change.
    """

    path: Path
    number: int
    keys: AnyArray
    width: int
    mark: tuple[int, int]

    def rows(self) -> FloatArray:
        """Return the rows [n, width] as a memory map."""
        return np.asarray(mapped(self.path)["row"])

    def numbers(self) -> FloatArray:
        """Return the records as numbers [n, 4 + width], memory-mapped; the first four are the key."""
        return record_numbers(self.path)


@dataclass(frozen=True, kw_only=True, eq=False)
class AlignedMatrix:
    """Rows in the order of a data set.

    Args:
        values: [n, d], memory-mapped; a row of NaN where there is none.
        n_missing: how many rows there are none for.
    """

    values: FloatArray
    n_missing: int


class EmbeddingCache:
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
        return KeyIndex(self.keys()).positions(keys) < 0

    def append(self, keys: AnyArray, rows: FloatArray) -> None:
        """Store rows [n, width]; they are on disk when this returns."""
        if not len(keys):
            return
        shards = self._sound_shards()
        self._check_width(rows.shape[1])
        self._sign()
        number = shards[-1].number + 1 if shards else 0
        path = write_records(self.folder, f"shard-{number:06d}", keys, rows)
        own = np.array(keys, dtype=KEY_TYPE)
        shards.append(
            Shard(path=path, number=number, keys=own, width=rows.shape[1], mark=mark_of(path))
        )

    def note_checked(self) -> None:
        """Note which files were found sound, so that they need not be read in full when the cache is opened again."""
        self._write_checked()

    def shards(self) -> tuple[Shard, ...]:
        """Return the files of the cache, in the order they were written; a key may be in two of them."""
        return tuple(self._sound_shards())

    def everything(self) -> tuple[AnyArray, FloatArray]:
        """Return all keys [n] and their rows [n, width], in the order they were stored; a key may occur twice."""
        shards = self._sound_shards()
        if not shards:
            return np.empty(0, dtype=KEY_TYPE), np.empty((0, 0), dtype=np.float32)
        return self.keys(), np.concatenate([shard.rows() for shard in shards])

    def matrix(
        self, keys: AnyArray, *, name: str = "matrix", columns: IntArray | None = None
    ) -> AlignedMatrix | None:
        """Return the matrix for these keys if it was made before and is whole; nothing else is read."""
        wanted = _digest(keys, columns)
        for path, digest, n_missing in self._matrices(name):
            if digest == wanted:
                try:
                    return AlignedMatrix(values=mapped(path, n_rows=len(keys)), n_missing=n_missing)
                except StoreError:
                    _remove_with_copies(path)
        return None

    def materialise(
        self, keys: AnyArray, *, width: int, name: str = "matrix", columns: IntArray | None = None
    ) -> AlignedMatrix:
        """Write and return the matrix [n, d] for these keys, in their order.

        Args:
            keys: packed content hashes of the data set, in its order.
            width: numbers in a row, needed when nothing is stored yet.
            name: which matrix of the cache is meant; the one of that name made before is replaced.
            columns: which numbers of a row to take, in which order; all by default.
        """
        self._check_width(width)
        self._sign()
        # Before the matrix: whoever finds that writes nothing more, and so would not clean up after an interrupted note.
        self._write_checked()
        chosen = np.arange(width) if columns is None else columns
        found = KeyIndex(self.keys()).positions(keys)
        n_missing = int((found < 0).sum())
        path = self.folder / f"{name}-{_digest(keys, columns)}-without-{n_missing}.npy"
        if not self._grown(path, name, keys, found, columns):
            with (
                atomic.replacing(path) as temporary,
                ArrayWriter(temporary, (len(found), len(chosen)), np.float32) as writer,
            ):
                for block in self._blocks(found, chosen):
                    writer.write(block)
        for other, _, _ in self._matrices(name):
            if other != path:
                _remove_with_copies(other)
        return AlignedMatrix(values=mapped(path, n_rows=len(keys)), n_missing=n_missing)

    def compact(self) -> None:
        """Merge many small shards into few large ones; killed half-way, some rows are stored twice until the next time."""
        small = [shard for shard in self._sound_shards() if len(shard.keys) < FULL_SHARD_ROWS // 2]
        if len(small) < MANY_SHARDS:
            return
        numbers = {shard.number for shard in small}
        known = KeyIndex(
            together([shard.keys for shard in self._sound_shards() if shard.number not in numbers])
        )
        for group in _groups(small):
            keys = together([shard.keys for shard in group])
            is_first = KeyIndex(keys).positions(keys) == np.arange(len(keys))
            kept = np.flatnonzero(is_first & (known.positions(keys) < 0))
            self.append(keys[kept], np.concatenate([shard.rows() for shard in group])[kept])
            for shard in group:
                shard.path.unlink(missing_ok=True)
            gone = {shard.number for shard in group}
            self._shards = [shard for shard in self._sound_shards() if shard.number not in gone]

    def keys(self) -> AnyArray:
        """Return the keys for which there is a row [n]; one may occur twice."""
        return together([shard.keys for shard in self._sound_shards()])

    def _sound_shards(self) -> list[Shard]:
        if self._shards is None:
            checked = read_checked(self.folder)
            found = [
                self._read_shard(path, checked.get(path.name))
                for path in sorted(self.folder.glob("shard-*.npy"))
            ]
            self._shards = [shard for shard in found if shard is not None]
        return self._shards

    def _read_shard(self, path: Path, known: CheckedFile | None) -> Shard | None:
        """Return a shard, or None after removing it when it is not what was written: its rows are then made anew.

        Args:
            path: of the shard.
            known: what was found when it was last read in full; if it has not changed since, it is not read again.
        """
        name, mark = SHARD_NAME.fullmatch(path.name), mark_of(path)
        if name and known and known.mark == mark:
            return Shard(
                path=path, number=int(name[1]), keys=known.keys, width=known.width, mark=mark
            )
        records = checked_records(path, int(name[2], 16)) if name else None
        if name is None or records is None:
            path.unlink(missing_ok=True)
            return None
        keys, width = records
        return Shard(path=path, number=int(name[1]), keys=keys, width=width, mark=mark)

    def _write_checked(self) -> None:
        shards = self._sound_shards()
        now = {
            shard.path.name: CheckedFile(mark=shard.mark, width=shard.width, keys=shard.keys)
            for shard in shards
        }
        before = {name: one.mark for name, one in read_checked(self.folder).items()}
        if before != {name: one.mark for name, one in now.items()}:
            write_checked(self.folder, now)

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

    def _grown(
        self, path: Path, name: str, keys: AnyArray, found: IntArray, columns: IntArray | None
    ) -> bool:
        """Return whether the matrix of the first of these keys was there and now has rows for all of them, under the given name."""
        for old, digest, n_missing in self._matrices(name):
            try:
                values = mapped(old)
            except StoreError:
                continue
            n_old = len(values)
            if not 0 < n_old < len(keys) or digest != _digest(keys[:n_old], columns):
                continue
            without = np.flatnonzero(found[:n_old] < 0)
            if len(without) != n_missing or not np.isnan(values[without, 0]).all():
                continue
            chosen = np.arange(values.shape[1]) if columns is None else columns
            del values
            return grow(old, path, self._blocks(found[n_old:], chosen), n_rows=len(keys))
        return False

    def _blocks(self, found: IntArray, columns: IntArray) -> Iterator[FloatArray]:
        """Yield the rows at places in all shards laid end to end, some at a time; NaN for -1."""
        shards = self._sound_shards()
        starts = np.cumsum([0, *(len(shard.keys) for shard in shards)])
        rows = lru_cache(MOST_OPEN)(lambda number: shards[number].rows())
        step = max(1, BLOCK_BYTES // max(4 * len(columns), 1))
        for start in range(0, len(found), step):
            part = found[start : start + step]
            block = np.full((len(part), len(columns)), np.nan, dtype=np.float32)
            of_shard = np.searchsorted(starts, part, side="right") - 1
            for number in np.unique(of_shard[part >= 0]):
                places = np.flatnonzero((of_shard == number) & (part >= 0))
                block[places] = rows(int(number))[part[places] - starts[number]][:, columns]
            yield block

    def _matrices(self, name: str) -> list[tuple[Path, str, int]]:
        matched = [
            (path, MATRIX_NAME.fullmatch(path.name))
            for path in sorted(self.folder.glob(f"{name}-*.npy"))
        ]
        return [
            (path, match["digest"], int(match["n_missing"]))
            for path, match in matched
            if match and match["name"] == name
        ]


def _digest(keys: AnyArray, columns: IntArray | None) -> str:
    content = hashlib.sha256(np.ascontiguousarray(keys).view(np.uint8).data)
    content.update(
        b"" if columns is None else np.ascontiguousarray(columns, dtype=np.int64).tobytes()
    )
    return content.hexdigest()[:16]


def _remove_with_copies(path: Path) -> None:
    for beside in path.parent.glob(f"{path.name}.*"):
        beside.unlink(missing_ok=True)
    path.unlink(missing_ok=True)


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
