"""Rows of numbers by content hash: embeddings, predictions and features; what was computed once is never computed again."""

import hashlib
import logging
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import AnyArray, BoolArray, FloatArray, IntArray
from weakspot.core.errors import ConfigError, StoreError
from weakspot.core.machine import user_cache_folder
from weakspot.store import atomic
from weakspot.store.array_files import (
    BLOCK_BYTES,
    KEY_TYPE,
    KeyIndex,
    Shard,
    checked_records,
    folder_name,
    grow,
    mapped,
    mark_of,
    packed_hashes,
    read_checked,
    sign_folder,
    together,
    write_checked,
    write_records,
    writing_array,
)

SHARD_NAME = re.compile(r"shard-(\d{6})-([0-9a-f]{8})\.npy")
MATRIX_NAME = re.compile(
    r"(?P<name>[a-z]+)-(?P<digest>[0-9a-f]{16})-without-(?P<n_missing>\d+)\.npy"
)
FULL_SHARD_ROWS = 65_536
MANY_SHARDS = 16
MAX_OPEN = 16


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
        if len(keys):
            self._write_shard(keys, rows)

    def _write_shard(self, keys: AnyArray, rows: FloatArray) -> None:
        shards = self._sound_shards()
        self._check_width(rows.shape[1])
        sign_folder(self.folder, self.identity)
        number = shards[-1].number + 1 if shards else 0
        path = write_records(self.folder, f"shard-{number:06d}", keys, rows)
        own = np.array(keys, dtype=KEY_TYPE)
        shards.append(Shard(path=path, keys=own, width=rows.shape[1], mark=mark_of(path)))

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
        sign_folder(self.folder, self.identity)
        # Before the matrix: whoever finds that writes nothing more, and so would not clean up after an interrupted note.
        self.note_checked()
        chosen = np.arange(width) if columns is None else columns
        found = KeyIndex(self.keys()).positions(keys)
        n_missing = int((found < 0).sum())
        path = self.folder / f"{name}-{_digest(keys, columns)}-without-{n_missing}.npy"
        if not self._grown(path, name, keys, found, columns):
            with (
                atomic.replacing(path) as temporary,
                writing_array(temporary, (len(found), len(chosen)), np.float32) as write,
            ):
                for block in self._blocks(found, chosen):
                    write(block)
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
            if len(kept):
                self._write_shard(
                    keys[kept], np.concatenate([shard.rows() for shard in group])[kept]
                )
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

    def _read_shard(self, path: Path, known: Shard | None) -> Shard | None:
        """Return a shard, or None after removing it when it is not what was written: its rows are then computed again.

        Args:
            path: of the shard.
            known: what it was when it was last read in full; if it has not changed since, it is not read again.
        """
        name, mark = SHARD_NAME.fullmatch(path.name), mark_of(path)
        if name and known and known.mark == mark:
            return known
        records = checked_records(path, int(name[2], 16)) if name else None
        if records is None:
            path.unlink(missing_ok=True)
            return None
        return Shard(path=path, keys=records[0], width=records[1], mark=mark)

    def note_checked(self) -> None:
        """Note which files were found sound, so that they need not be read in full when the cache is opened again."""
        shards = self._sound_shards()
        before = {name: shard.mark for name, shard in read_checked(self.folder).items()}
        if before != {shard.path.name: shard.mark for shard in shards}:
            write_checked(self.folder, shards)

    def _check_width(self, width: int) -> None:
        others = {shard.width for shard in self._sound_shards()} - {width}
        if others:
            raise StoreError(
                f"{self.identity!r} now gives {width} numbers a sample, but gave {sorted(others)} before under the same id.",
                where=str(self.folder),
                fix="Give the changed model another id, or delete this folder.",
            )

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
        rows = lru_cache(MAX_OPEN)(lambda number: shards[number].rows())
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


MANY_WAITING = 512

Compute = Callable[[Sequence[str]], FloatArray]


class KeyedRows:
    """A cache of rows by content hash that is held in memory and written in larger parts.

    Args:
        cache: what is on disk; read once.
    """

    def __init__(self, cache: EmbeddingCache) -> None:
        self._cache = cache
        keys, rows = cache.everything()
        self._rows: dict[bytes, FloatArray] = dict(zip(_names(keys), rows, strict=True))
        self._waiting: dict[bytes, FloatArray] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def rows(self, keys: Sequence[str], compute: Compute) -> FloatArray:
        """Return the rows [n, d] of content hashes; those that are missing are computed, each once.

        Args:
            keys: at least one.
            compute: missing hashes to their rows.
        """
        names = _names(packed_hashes(pa.array(list(keys), pa.string())))
        missing = {
            name: key for name, key in zip(names, keys, strict=True) if name not in self._rows
        }
        if missing:
            found = np.asarray(compute(list(missing.values())), dtype=np.float32)
            new = dict(zip(missing, found, strict=True))
            self._rows |= new
            self._waiting |= new
            if len(self._waiting) >= MANY_WAITING:
                self.flush()
        return np.stack([self._rows[name] for name in names])

    def flush(self) -> None:
        if self._waiting:
            self._cache.append(
                np.array(list(self._waiting), dtype=KEY_TYPE),
                np.stack(list(self._waiting.values())),
            )
            self._cache.compact()
            self._waiting = {}


def _names(keys: AnyArray) -> list[bytes]:
    return [bytes(key) for key in keys]


LAYOUT_FILE = "layout.json"


PredictionLayout = tuple[int, int]
"""How many probabilities and features a classifier gives for a sample."""


class PredictionCache(EmbeddingCache):
    """Probabilities and features of one classifier; both of a sample are stored in one step, as one row."""

    @property
    def layout(self) -> PredictionLayout | None:
        """Return what is stored for a sample, or None when nothing is."""
        path = self.folder / LAYOUT_FILE
        if not path.exists():
            return None
        stored = atomic.read_json(path)
        n_classes, n_features = stored.get("n_classes"), stored.get("n_features")
        if not isinstance(n_classes, int) or not isinstance(n_features, int):
            raise atomic.damaged(path, "it does not say how many classes and features there are")
        return n_classes, n_features

    def append(self, keys: AnyArray, rows: FloatArray, features: FloatArray | None = None) -> None:
        """Store probabilities [n, c] and features [n, d]; they are on disk when this returns."""
        if not len(keys):
            return
        n_features = 0 if features is None else features.shape[1]
        self._settle((rows.shape[1], n_features))
        self._write_shard(
            keys, rows if features is None else np.hstack([rows, features]).astype(np.float32)
        )

    def probabilities(self, keys: AnyArray, columns: IntArray) -> AlignedMatrix | None:
        """Return probabilities [n, c] in the order of keys, their columns in the given order; None if nothing is stored."""
        return self._align(keys, "probabilities", columns)

    def features(self, keys: AnyArray) -> AlignedMatrix | None:
        """Return features [n, d] in the order of keys; None if the classifier gives none."""
        n_classes, n_features = self.layout or (0, 0)
        if not n_features:
            return None
        return self._align(keys, "features", np.arange(n_classes, n_classes + n_features))

    def is_complete(self, keys: AnyArray, columns: IntArray) -> bool:
        """Return whether the matrices for these keys are there and lack nothing; cheap."""
        matrix = self.matrix(keys, name="probabilities", columns=columns)
        return matrix is not None and matrix.n_missing == 0

    def refresh(self, keys: AnyArray, columns: IntArray) -> None:
        """Write the matrices for these keys."""
        if self.layout is None:
            return
        n_classes, n_features = self.layout
        width = n_classes + n_features
        if n_features:
            features = np.arange(n_classes, width)
            self.materialise(keys, width=width, name="features", columns=features)
        self.materialise(keys, width=width, name="probabilities", columns=columns)

    def _align(self, keys: AnyArray, name: str, columns: IntArray) -> AlignedMatrix | None:
        layout = self.layout
        if layout is None:
            return None
        return self.matrix(keys, name=name, columns=columns) or self.materialise(
            keys, width=sum(layout), name=name, columns=columns
        )

    def _settle(self, layout: PredictionLayout) -> None:
        stored = self.layout
        if stored is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            facts = dict(zip(("n_classes", "n_features"), layout, strict=True))
            atomic.write_json(self.folder / LAYOUT_FILE, facts)
        elif stored != layout:
            raise StoreError(
                f"{self.identity!r} now gives {layout[0]} probabilities and {layout[1]} features a sample, "
                f"but gave {stored[0]} and {stored[1]} before under the same id.",
                where=str(self.folder),
                fix="Give the changed classifier another id, or delete this folder.",
            )


log = logging.getLogger(__name__)
MEGABYTES_VARIABLE = "WEAKSPOT_EMBEDDINGS_MEGABYTES"
DEFAULT_MEGABYTES = 2_000
MEGABYTE = 1_000_000
PRIVATE = 0o700


@dataclass(frozen=True, kw_only=True)
class SharedEmbeddings:
    """The shared embeddings of a user.

    Args:
        folder: where they are; made on first write, for this user alone.
        most_bytes: how large it may become.
    """

    folder: Path
    most_bytes: int = DEFAULT_MEGABYTES * MEGABYTE

    @classmethod
    def from_environment(cls) -> "SharedEmbeddings | None":
        """Return them as the environment says, None if nothing is to be shared.

        Raises:
            ConfigError: if the bound is no whole number.
        """
        text = os.environ.get(MEGABYTES_VARIABLE, "")
        if text and not text.isdecimal():
            raise ConfigError(
                f"{MEGABYTES_VARIABLE} must be a whole number of megabytes.",
                given=text,
                fix="0 shares nothing between projects.",
            )
        megabytes = int(text) if text else DEFAULT_MEGABYTES
        folder = user_cache_folder() / "embeddings"
        return cls(folder=folder, most_bytes=megabytes * MEGABYTE) if megabytes else None

    def keys(self, encoder_id: str) -> AnyArray:
        """Return the contents that have an embedding here, packed [n]."""
        known = [together([])]
        with _optional("read"):
            known.append(self._cache(encoder_id).keys())
        return known[-1]

    def take(self, cache: EmbeddingCache, keys: AnyArray, *, width: int) -> int:
        """Copy the embeddings that a project lacks and that are here into its cache, and return how many.

        Args:
            cache: of a project; its identity is the encoder.
            keys: packed content hashes of its samples [n].
            width: numbers of an embedding; others under the same id are not taken.
        """
        n_taken = 0
        with _optional("read"):
            for shard in self._cache(cache.identity).shards():
                wanted = np.unique(keys[cache.missing(keys)]) if len(keys) else keys
                places = KeyIndex(shard.keys).positions(wanted)
                if shard.width != width or not (places >= 0).any():
                    continue
                with _optional("read"):
                    rows = np.array(shard.rows()[places[places >= 0]], dtype=np.float32)
                    cache.append(wanted[places >= 0], rows)
                    n_taken += len(rows)
        return n_taken

    def give(self, cache: EmbeddingCache, keys: AnyArray, rows: FloatArray) -> None:
        """Store what a project has and is not here yet; a project that would fill half of the room gives nothing.

        Args:
            cache: of the project; its identity is the encoder.
            keys: packed content hashes of its samples [n].
            rows: their embeddings [n, d], NaN where there is none.
        """
        with _optional("written"):
            shared = self._cache(cache.identity)
            new, first = np.unique(keys, return_index=True)
            chosen = first[shared.missing(new) & ~np.isnan(rows[first, 0])]
            if not len(chosen) or 2 * len(chosen) * rows.shape[1] * 4 > self.most_bytes:
                return
            self.folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
            shared.append(keys[chosen], np.asarray(rows[chosen], dtype=np.float32))
            shared.note_checked()
            self._trim()

    def _trim(self) -> None:
        """Remove the shards written first until the rest has room."""
        files = sorted(
            (path.stat().st_mtime_ns, path.stat().st_size, path)
            for path in self.folder.glob("*/shard-*.npy")
        )
        excess = sum(size for _, size, _ in files) - self.most_bytes
        for _, size, path in files:
            if excess <= 0:
                return
            path.unlink(missing_ok=True)
            excess -= size

    def _cache(self, encoder_id: str) -> EmbeddingCache:
        return EmbeddingCache(self.folder / folder_name(encoder_id), identity=encoder_id)


class WithShared:
    """A project's cache for a pass over images: what is shared counts as known, and is taken over afterwards."""

    def __init__(self, cache: EmbeddingCache, shared: SharedEmbeddings) -> None:
        self.append = cache.append
        self._cache = cache
        self._elsewhere = shared.keys(cache.identity)

    def missing(self, keys: AnyArray) -> BoolArray:
        return self._cache.missing(keys) & (KeyIndex(self._elsewhere).positions(keys) < 0)

    def keys(self) -> AnyArray:
        return together([self._cache.keys(), self._elsewhere])


@contextmanager
def _optional(done: str) -> Iterator[None]:
    """Go on where the shared folder cannot be used: another process may have removed a file, or it may not be written to."""
    try:
        yield
    except (OSError, StoreError, ValueError) as error:
        log.info("Shared embeddings could not be %s: %s", done, error)
