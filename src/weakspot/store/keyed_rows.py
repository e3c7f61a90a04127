"""Rows of numbers that are asked for a few at a time, in no order that is known beforehand."""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import AnyArray, FloatArray
from weakspot.store.embeddings import EmbeddingCache
from weakspot.store.names import KEY_TYPE, packed_hashes

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
