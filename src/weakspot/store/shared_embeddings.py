"""Embeddings that the projects of one user share: the same encoder and the same image content give the same embedding.

Every encoder has a folder of shards, as in a project. Shards are written in one step under names of their own and never changed, so
any number of processes may read and write at once. When all of it is larger than its bound, the shards written first are removed.
Whatever goes wrong here costs time and nothing else: an embedding that cannot be taken is computed.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, FloatArray
from weakspot.core.errors import ConfigError, StoreError
from weakspot.core.user_cache import user_cache_folder
from weakspot.store.checked_shards import KeyIndex, together
from weakspot.store.embeddings import EmbeddingCache, Shard
from weakspot.store.names import folder_name

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
                    rows = _rows_at(shard, places[places >= 0])
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


def _rows_at(shard: Shard, places: AnyArray) -> FloatArray:
    return np.array(shard.rows()[places], dtype=np.float32)


@contextmanager
def _optional(done: str) -> Iterator[None]:
    """Go on where the shared folder cannot be used: another process may have removed a file, or it may not be written to."""
    try:
        yield
    except (OSError, StoreError, ValueError) as error:
        log.info("Shared embeddings could not be %s: %s", done, error)
