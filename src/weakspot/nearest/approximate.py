"""An index that finds most of the nearest rows without reading them all: usearch (extra `ann`). What it finds is scored exactly.

It may miss rows; how many is measured by `recall`. Built in one thread, the same embeddings give the same index.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, IntArray
from weakspot.core.errors import ConfigError, MissingExtraError
from weakspot.nearest.scan import Nearest
from weakspot.nearest.shards import EmbeddingShards, Queries, file_of, mark_of, replacing

SUFFIX = ".usearch"
FORMAT = 1
MORE_THAN_WANTED = 4
FEWEST_LOOKED_AT = 128

Progress = Callable[[int, int], None]


class ApproximateIndex:
    """Finds rows that are near an embedding; a few of the nearest may be missing.

    Args:
        shards: the rows it was built from.
        index: the opened usearch index, row numbers as keys.
    """

    def __init__(self, shards: EmbeddingShards, index: Any) -> None:
        self._shards = shards
        self._index = index

    def nearest_rows(
        self, queries: AnyArray, n_wanted: int, *, within: BoolArray | None = None
    ) -> list[Nearest]:
        """Return for every query rows with a large cosine, exact scores, best first.

        Args:
            queries: one embedding [d] or several [m, d].
            n_wanted: how many rows a query.
            within: which rows are meant [n]; the fewer they are, the longer it takes to come upon them.
        """
        if n_wanted < 1:
            raise ConfigError("At least one row must be asked for.", given=n_wanted)
        asked = Queries.of(queries, dimension=self._shards.dimension)
        return [self._one(asked, number, n_wanted, within) for number in range(len(asked))]

    def _one(
        self, queries: Queries, number: int, n_wanted: int, within: BoolArray | None
    ) -> Nearest:
        count = MORE_THAN_WANTED * n_wanted
        rows = self._near(queries, number, count, within)
        while len(rows) < n_wanted and count < len(self._index):
            count *= MORE_THAN_WANTED
            rows = self._near(queries, number, count, within)
        scores = self._shards.exact_scores(rows, queries, number)
        order = np.lexsort((rows, -scores))[:n_wanted]
        return Nearest(rows=rows[order], scores=scores[order])

    def _near(
        self, queries: Queries, number: int, count: int, within: BoolArray | None
    ) -> IntArray:
        self._index.expansion_search = max(FEWEST_LOOKED_AT, count)
        found = self._index.search(
            queries.unit[number], min(count, max(len(self._index), 1)), threads=1
        )
        rows = np.sort(np.asarray(found.keys, dtype=np.int64))
        return rows if within is None else rows[within[rows]]


def approximate(
    shards: EmbeddingShards, *, threads: int = 1, progress: Progress = lambda _done, _total: None
) -> ApproximateIndex:
    """Return the index beside the first file of a space, opened as a memory map; built first if it is missing or old.

    Args:
        shards: every array must be the memory map of a file.
        threads: for building; with more than one the index, and which rows it misses, differ from build to build.
        progress: told how many rows of how many have been added.

    Raises:
        MissingExtraError: without usearch.
        DataError: if an array is no file.
        StoreError: if the index cannot be written.
    """
    library = _library()
    files = [file_of(array) for array in shards.arrays]
    path = files[0].with_name(files[0].name + SUFFIX)
    mark: list[str | int] = [FORMAT, *map(mark_of, files)]
    facts = path.with_name(path.name + ".json")
    if not _is_of(path, facts, mark):
        facts.unlink(missing_ok=True)
        with replacing(path) as temporary:
            _built(library, shards, threads, progress).save(str(temporary))
        with replacing(facts) as temporary:
            temporary.write_text(
                json.dumps({"mark": mark, "built": mark_of(path)}), encoding="utf-8"
            )
    return ApproximateIndex(shards, library.Index.restore(str(path), view=True))


def recall(found: Nearest, exact: Nearest) -> float:
    """Return what share of the exactly nearest rows was found; rows of the same score stand for each other."""
    if not len(exact.rows):
        return 1.0
    return (
        float(np.mean(found.scores >= exact.scores[-1])) * len(found.rows) / len(exact.rows)
        if len(found.rows)
        else 0.0
    )


def _is_of(path: Path, facts: Path, mark: list[str | int]) -> bool:
    try:
        return bool(
            json.loads(facts.read_text(encoding="utf-8")) == {"mark": mark, "built": mark_of(path)}
        )
    except (OSError, ValueError):
        return False


def _built(library: Any, shards: EmbeddingShards, threads: int, progress: Progress) -> Any:
    index = library.Index(ndim=shards.dimension, metric="cos", dtype="f16")
    for offset, block in shards.blocks():
        with np.errstate(over="ignore", invalid="ignore"):
            lengths = np.linalg.norm(block.astype(np.float64), axis=1)
        places = np.flatnonzero(np.isfinite(lengths) & (lengths > 0))
        unit = (block[places] / lengths[places, None]).astype(np.float32)
        if len(places):
            index.add(places + offset, unit, threads=threads)
        progress(offset + len(block), len(shards))
    return index


def _library() -> Any:
    try:
        import usearch.index
    except ImportError as error:
        raise MissingExtraError("usearch", extra="ann", purpose="Approximate searches") from error
    return usearch.index
