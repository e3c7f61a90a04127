"""Texts by key: what a model said once is never asked again."""

import io
import re
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weakspot.core.arrays import AnyArray, BoolArray, IntArray
from weakspot.store import atomic
from weakspot.store.array_files import (
    HASH_BYTES,
    KEY_TYPE,
    folder_name,
    packed_hashes,
    sign_folder,
)

TEXTS_FOLDER = "texts"
SHARD_NAME = re.compile(r"shard-(\d{6})-([0-9a-f]{8})\.arrow")
MANY_SHARDS = 16
_SCHEMA = pa.schema([("key", pa.binary(HASH_BYTES)), ("text", pa.string())])


class TextCache:
    """Texts of one model, by key.

    Args:
        folder: where the shards are; made on first write.
        identity: id of the model, and of what it was asked, for people who look into the folder.
    """

    def __init__(self, folder: Path, *, identity: str) -> None:
        self.folder = folder
        self.identity = identity
        self._table: pa.Table | None = None
        self._keys: AnyArray = np.empty(0, dtype=KEY_TYPE)
        self._n_shards = 0
        self._last_number = -1

    def keys(self) -> AnyArray:
        """Return the keys for which there is a text [n]."""
        self._read()
        return self._keys

    def missing(self, keys: AnyArray) -> BoolArray:
        """Return for which keys [n] there is no text yet."""
        self._read()
        return np.isin(keys, self._keys, invert=True)

    def texts(self, keys: AnyArray) -> list[str | None]:
        table = self._read()
        places = self._places(keys)
        found = (
            table.column("text").take(pa.array(np.maximum(places, 0))).to_pylist()
            if len(self._keys)
            else []
        )
        return [found[row] if place >= 0 else None for row, place in enumerate(places)]

    def append(self, keys: AnyArray, texts: Sequence[str]) -> None:
        """Store texts; they are on disk when this returns. Of a key that has a text already the first one stays."""
        if not len(keys):
            return
        rows = _rows(keys, texts)
        table = pa.concat_tables([self._read(), rows])
        sign_folder(self.folder, self.identity)
        self._write(rows)
        self._keep(table)
        if self._n_shards >= MANY_SHARDS:
            self._compact()

    def _compact(self) -> None:
        """Write all texts to one file; killed half-way, some are stored twice until the next time."""
        old = list(self.folder.glob("shard-*.arrow"))
        self._write(self._read())
        for path in old:
            path.unlink(missing_ok=True)
        self._n_shards = 1

    def _write(self, rows: pa.Table) -> None:
        stream = io.BytesIO()
        with pa.ipc.new_stream(stream, _SCHEMA) as writer:
            writer.write_table(rows)
        content = stream.getvalue()
        self._last_number += 1
        self._n_shards += 1
        atomic.write_bytes(
            self.folder / f"shard-{self._last_number:06d}-{zlib.crc32(content):08x}.arrow", content
        )

    def _read(self) -> pa.Table:
        if self._table is None:
            paths = sorted(self.folder.glob("shard-*.arrow"))
            found = [(path, _sound_rows(path)) for path in paths]
            for path, rows in found:
                if rows is None:
                    path.unlink(missing_ok=True)
            sound = [rows for _, rows in found if rows is not None]
            self._n_shards = len(sound)
            numbers = [
                int(match[1]) for path in paths if (match := SHARD_NAME.fullmatch(path.name))
            ]
            self._last_number = max(numbers, default=-1)
            self._keep(pa.concat_tables([_SCHEMA.empty_table(), *sound]))
        return self._table

    def _keep(self, table: pa.Table) -> None:
        """Hold the first text of every key, in the order of keys."""
        keys = _unpack(table.column("key"))
        self._keys, first = np.unique(keys, return_index=True)
        self._table = table.take(pa.array(first)).combine_chunks()

    def _places(self, keys: AnyArray) -> IntArray:
        if not len(self._keys):
            return np.full(len(keys), -1, dtype=np.int64)
        slots = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.where(self._keys[slots] == keys, slots, -1).astype(np.int64)


def text_cache(data: Path, identity: str) -> TextCache:
    """Return the texts of a model.

    Args:
        data: the data folder of a project.
        identity: id of the model, and of what it was asked.
    """
    return TextCache(data / TEXTS_FOLDER / folder_name(identity), identity=identity)


def text_keys(texts: Sequence[str]) -> AnyArray:
    return packed_hashes(pa.array(list(texts), pa.string()))


def _rows(keys: AnyArray, texts: Sequence[str]) -> pa.Table:
    packed = np.ascontiguousarray(keys, dtype=KEY_TYPE)
    column = pa.Array.from_buffers(
        pa.binary(HASH_BYTES), len(packed), [None, pa.py_buffer(packed.tobytes())]
    )
    return pa.table([column, pa.array(list(texts), pa.string())], schema=_SCHEMA)


def _unpack(column: pa.ChunkedArray) -> AnyArray:
    content = b"".join(pc.cast(column, pa.binary()).to_pylist())
    return np.frombuffer(content, dtype=KEY_TYPE)


def _sound_rows(path: Path) -> pa.Table | None:
    """Return the rows of a shard, or None if it does not hold what was written."""
    name = SHARD_NAME.fullmatch(path.name)
    try:
        content = path.read_bytes()
        if name is None or zlib.crc32(content) != int(name[2], 16):
            return None
        return pa.ipc.open_stream(content).read_all().cast(_SCHEMA)
    except (OSError, ValueError, pa.ArrowException):
        return None
