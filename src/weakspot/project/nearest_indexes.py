"""Smaller copies of embeddings that are read first: one byte a number, or an index that finds most of the nearest rows (usearch.

Extra `ann`).
"""

import json
import zlib
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, FloatArray, IntArray
from weakspot.core.errors import ConfigError, MissingExtraError
from weakspot.project.nearest_rows import (
    KEPT_MAPPED_BYTES,
    PIECE_BYTES,
    EmbeddingShards,
    Nearest,
    Piece,
    Queries,
    file_of,
    let_go,
    mark_of,
    replacing,
    rounding_slack,
)

INT8_SUFFIX = ".int8"
FORMAT = 1
HEAD_BYTES = 4096
CHECK_BYTES = 1 << 20

Progress = Callable[[int, int], None]


QuantisedRows = tuple[AnyArray, FloatArray, FloatArray]
"""The rows of one file with one byte a number: codes [n, d], memory-mapped, what sums of codes are multiplied by [n] (NaN for a row
without an embedding), and by how much scores can be off [n]."""


class QuantisedShards(EmbeddingShards):
    """The rows of a space, of which smaller copies are read first.

    Args:
        shards: the rows.
        parts: one copy an array, in their order.
    """

    def __init__(self, shards: EmbeddingShards, parts: Sequence[QuantisedRows]) -> None:
        super().__init__(shards.arrays, first=shards.first)
        self._parts = tuple(parts)
        self._are_copies_large = sum(codes.nbytes for codes, _, _ in parts) > KEPT_MAPPED_BYTES

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """Return all rows in pieces of a few megabytes, in order."""
        return self._pieces_of(max(1, PIECE_BYTES // max(self.dimension, 1)))

    def rough(
        self, piece: Piece, queries: Queries, allowed: BoolArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return scores [m, n] of the rows of a piece, NaN for rows that are not meant, and by how much they can be off [n]."""
        from weakspot.project.nearest_kernels import rough_code_scores

        (codes, factors, slack), rows = self._parts[piece.shard], slice(piece.start, piece.stop)
        scores = np.empty((len(queries), len(piece)), dtype=np.float32)
        rough_code_scores(codes[rows], factors[rows], queries.unit, allowed, scores)
        if self._are_copies_large:
            let_go(codes, piece.start, piece.stop)
        return scores, slack[rows] + np.float32(rounding_slack(codes.shape[1]))


def quantise_shards(
    shards: EmbeddingShards, *, progress: Progress = lambda _done, _total: None
) -> QuantisedShards:
    """Return smaller copies of all arrays, from the files beside them; those that are missing, damaged or old are made first.

    Args:
        shards: every array must be the memory map of a file.
        progress: told how many rows of how many have been copied.

    Raises:
        DataError: if an array is no file.
        StoreError: if a copy cannot be written.
    """
    sources = [file_of(array) for array in shards.arrays]
    found = [_open(source, _shape(shards, number)) for number, source in enumerate(sources)]
    for number, source in enumerate(sources):
        if found[number] is None:
            start = int(shards.starts[number])
            _make(
                source,
                shards,
                number,
                lambda done, start=start: progress(start + done, len(shards)),  # type: ignore[misc]
            )
            found[number] = _open(source, _shape(shards, number))
    return QuantisedShards(shards, [part for part in found if part is not None])


def _shape(shards: EmbeddingShards, number: int) -> tuple[int, int]:
    return len(shards.arrays[number]), shards.dimension


def _open(source: Path, shape: tuple[int, int]) -> QuantisedRows | None:
    """Return the copy of a file, None if there is none that is whole and of the file as it is now."""
    path = _beside(source)
    try:
        with path.open("rb") as stream:
            head = json.loads(stream.read(HEAD_BYTES).rstrip(b"\0"))
        if (
            head.get("source") != mark_of(source)
            or head.get("format") != FORMAT
            or tuple(head.get("shape", ())) != shape
        ):
            return None
        n_rows, dimension = shape
        codes = np.memmap(
            path, dtype=np.int8, mode="r", offset=HEAD_BYTES, shape=(n_rows, dimension)
        )
        behind = HEAD_BYTES + n_rows * dimension
        tail = np.fromfile(path, dtype=np.float32, offset=behind, count=2 * n_rows)
    except (OSError, ValueError, AttributeError, TypeError):
        return None
    if (
        len(tail) != 2 * n_rows
        or head.get("tail") != zlib.crc32(tail.tobytes())
        or head.get("codes") != _check(codes)
    ):
        return None
    return codes, tail[:n_rows], tail[n_rows:]


def _make(
    source: Path, shards: EmbeddingShards, number: int, progress: Callable[[int], None]
) -> None:
    from weakspot.project.nearest_kernels import quantise

    n_rows, dimension = _shape(shards, number)
    factors, slack = np.empty(n_rows, dtype=np.float32), np.empty(n_rows, dtype=np.float32)
    mark = mark_of(source)
    with replacing(_beside(source)) as temporary, temporary.open("wb") as stream:
        stream.write(b"\0" * HEAD_BYTES)
        for piece in (piece for piece in shards.pieces if piece.shard == number):
            rows, codes = (
                slice(piece.start, piece.stop),
                np.empty((len(piece), dimension), dtype=np.int8),
            )
            quantise(shards.arrays[number][rows], shards.first, codes, factors[rows], slack[rows])
            stream.write(codes.data)
            shards.release(piece)
            progress(piece.stop)
        tail = np.concatenate([factors, _rounded_up(slack)]).tobytes()
        stream.write(tail)
        stream.flush()
        codes = np.memmap(
            temporary, dtype=np.int8, mode="r", offset=HEAD_BYTES, shape=(n_rows, dimension)
        )
        _write_head(
            stream,
            {"format": FORMAT, "shape": [n_rows, dimension], "source": mark},
            _check(codes),
            zlib.crc32(tail),
        )


def _write_head(stream: BinaryIO, facts: dict[str, object], codes: list[int], tail: int) -> None:
    stream.seek(0)
    stream.write(
        json.dumps({**facts, "codes": codes, "tail": tail}).encode().ljust(HEAD_BYTES, b"\0")
    )


def _rounded_up(slack: FloatArray) -> FloatArray:
    return np.nextafter(slack, np.float32(np.inf))


def _check(codes: AnyArray) -> list[int]:
    """Return two sums over all bytes, the second of which depends on their order; at the speed of memory."""
    flat = codes.reshape(-1)
    plain, ordered = 0, 0
    for number, start in enumerate(range(0, len(flat), CHECK_BYTES), start=1):
        block = flat[start : start + CHECK_BYTES]
        whole = len(block) // 8 * 8
        value = int(block[:whole].view(np.uint64).sum(dtype=np.uint64)) + int(
            block[whole:].astype(np.int64).sum()
        )
        plain, ordered = (plain + value) % (1 << 61), (ordered + number * value) % (1 << 61)
    return [plain, ordered]


def _beside(source: Path) -> Path:
    return source.with_name(source.name + INT8_SUFFIX)


USEARCH_SUFFIX = ".usearch"

MORE_THAN_WANTED = 4
MIN_LOOKED_AT = 128


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
        self._index.expansion_search = max(MIN_LOOKED_AT, count)
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
    path = files[0].with_name(files[0].name + USEARCH_SUFFIX)
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
