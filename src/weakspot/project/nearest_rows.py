"""Embeddings in one or several arrays, read as rows of one space, never loaded whole, and the rows nearest to one of them.

Exactly, in threads; or after smaller copies that are read first: one byte a number, or an index (usearch, extra `ann`).
"""

import json
import mmap
import os
import secrets
import threading
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray, FloatArray, IntArray
from weakspot.core.errors import ConfigError, DataError, MissingExtraError, StoreError

N_PROBES = 16
PROBE_BYTES = 4096


def file_of(array: AnyArray) -> Path:
    """Return the file that an array is the memory map of.

    Raises:
        DataError: if it is none, or the file is gone.
    """
    name = getattr(array, "filename", None)
    if name is None or not Path(name).exists():
        raise DataError(
            "The embeddings are not in a file of the project, so nothing that is made from them can stand beside it.",
            fix="Use --index exact.",
        )
    return Path(name)


def mark_of(path: Path) -> str:
    """Return what tells one state of a file from another without reading all of it: size, time, and a few places of its content."""
    facts = path.stat()
    value = 0
    with path.open("rb") as stream:
        for probe in range(N_PROBES):
            stream.seek(probe * max(facts.st_size - PROBE_BYTES, 0) // (N_PROBES - 1))
            value = zlib.crc32(stream.read(PROBE_BYTES), value)
    return f"{facts.st_size}-{facts.st_mtime_ns}-{value:08x}"


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; when the block ends without an error it becomes `path`, on disk.

    Raises:
        StoreError: if the folder cannot be written.
    """
    temporary = path.with_name(f"{path.name}.tmp-{secrets.token_hex(4)}")
    try:
        yield temporary
        with temporary.open("rb") as stream:
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise StoreError(
            f"A smaller copy of the embeddings cannot be written: {error.strerror or error}.",
            where=str(path),
            fix="Make room or the folder writable, or look with --index exact, which needs no copy.",
        ) from error
    finally:
        temporary.unlink(missing_ok=True)


PIECE_BYTES = 1 << 23
KEPT_MAPPED_BYTES = 1 << 32


@dataclass(frozen=True, kw_only=True)
class Piece:
    """Neighbouring rows of one array.

    Args:
        shard: which array.
        start: its first row there.
        stop: behind its last row there.
        offset: row number, over all arrays, of the first row.
    """

    shard: int
    start: int
    stop: int
    offset: int

    def __len__(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True, kw_only=True, eq=False)
class Queries:
    """Embeddings whose nearest rows are looked for.

    Args:
        given: as they were given [m, d].
        lengths: of them [m].
        unit: scaled to length one [m, d].
    """

    given: FloatArray
    lengths: DoubleArray
    unit: FloatArray

    @classmethod
    def of(cls, embeddings: AnyArray, *, dimension: int) -> "Queries":
        """Return one embedding [d] or several [m, d] as queries.

        Raises:
            DataError: if they do not fit the rows, or one of them has no direction.
        """
        given = np.ascontiguousarray(np.atleast_2d(embeddings), dtype=np.float32)
        if given.ndim != 2 or given.shape[1] != dimension:  # noqa: PLR2004 - rows and columns
            raise DataError(
                "The embedding to look for has another length than the stored ones.",
                given=(given.shape[-1], dimension),
            )
        exact = given.astype(np.float64)
        lengths = np.sqrt((exact * exact).sum(axis=1))
        if not (np.isfinite(lengths) & (lengths > 0)).all():
            raise DataError("The embedding to look for has no direction: it is zero or not finite.")
        return cls(given=given, lengths=lengths, unit=(exact / lengths[:, None]).astype(np.float32))

    def __len__(self) -> int:
        return len(self.given)


class EmbeddingShards:
    """Rows of several arrays, numbered through; a smaller copy of them gives other `pieces` and `rough` scores.

    Args:
        arrays: float32 [n, w] each, rows in one piece of memory; the n may differ.
        first: column where embeddings begin; what stands before is passed over.
    """

    def __init__(self, arrays: Sequence[AnyArray], *, first: int = 0) -> None:
        self.arrays = tuple(_readable(array) for array in arrays)
        self.first = first
        widths = {array.shape[1] - first for array in self.arrays}
        if len(widths) > 1:
            raise DataError(
                "The files of one space hold embeddings of different lengths.", given=sorted(widths)
            )
        self.dimension = widths.pop() if widths else 0
        self.starts: IntArray = np.cumsum([0, *(len(array) for array in self.arrays)]).astype(
            np.int64
        )

    def __len__(self) -> int:
        return int(self.starts[-1])

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """Return all rows in pieces of a few megabytes, in order."""
        return self._pieces_of(max(1, PIECE_BYTES // max(4 * (self.dimension + self.first), 1)))

    def _pieces_of(self, step: int) -> tuple[Piece, ...]:
        return tuple(
            Piece(
                shard=shard,
                start=start,
                stop=min(start + step, len(array)),
                offset=int(self.starts[shard]) + start,
            )
            for shard, array in enumerate(self.arrays)
            for start in range(0, len(array), step)
        )

    def rough(
        self, piece: Piece, queries: Queries, allowed: BoolArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return scores [m, n] of the rows of a piece that are off by at most so much [n].

        A score is NaN for rows that are not allowed [n] or have no embedding; where nothing can be said it is off by infinity.
        """
        from weakspot.project.nearest_kernels import rough_scores

        scores, slack = (
            np.empty((len(queries), len(piece)), np.float32),
            np.empty(len(piece), np.float32),
        )
        values = self.arrays[piece.shard][piece.start : piece.stop]
        rough_scores(
            values, self.first, queries.unit, allowed, rounding_slack(self.dimension), scores, slack
        )
        self.release(piece)
        return scores, slack

    def exact_scores(self, rows: IntArray, queries: Queries, query: int = 0) -> DoubleArray:
        """Return the cosine of rows [n] with one query, in double precision and a fixed order; NaN without an embedding."""
        from weakspot.project.nearest_kernels import exact_scores

        found = np.empty(len(rows), dtype=np.float64)
        of_shard = np.searchsorted(self.starts, rows, side="right") - 1
        for shard in np.unique(of_shard):
            places = np.flatnonzero(of_shard == shard)
            local, scores = (
                rows[places] - self.starts[shard],
                np.empty(len(places), dtype=np.float64),
            )
            exact_scores(
                self.arrays[shard],
                self.first,
                local,
                queries.given[query],
                queries.lengths[query],
                scores,
            )
            found[places] = scores
        return found

    def release(self, piece: Piece) -> None:
        """Let go of the memory pages of a piece if all rows together are too many to keep them; they stay on disk."""
        array = self.arrays[piece.shard]
        if self._is_large:
            let_go(array, piece.start, piece.stop)

    @cached_property
    def _is_large(self) -> bool:
        return sum(array.nbytes for array in self.arrays) > KEPT_MAPPED_BYTES

    def blocks(self) -> Iterator[tuple[int, FloatArray]]:
        """Yield all rows [n, d], piece by piece, with the number of the first."""
        for piece in self.pieces:
            yield piece.offset, self.arrays[piece.shard][piece.start : piece.stop, self.first :]
            self.release(piece)


def rounding_slack(dimension: int) -> float:
    """Return how far a cosine in single precision can be from the exact one, whatever the order of its sums.

    A sum of d products is off by at most d roundings of its terms' sizes, whose sum is at most the product of the lengths; the
    squared length by as many of its own, of which the root keeps half; a few more come from the query and the division.
    """
    return 2.0 * (dimension + 16) * 2.0**-24 + 1e-6


def _readable(array: AnyArray) -> AnyArray:
    if array.dtype != np.float32 or not array.flags.c_contiguous:
        return np.ascontiguousarray(array, dtype=np.float32)
    return array


def let_go(array: AnyArray, start: int, stop: int) -> None:
    """Give pages of a read-only memory map back; of any other array nothing."""
    file = getattr(array, "_mmap", None)
    if (
        not isinstance(array, np.memmap)
        or array.mode != "r"
        or file is None
        or not hasattr(file, "madvise")
    ):
        return
    page, row_bytes = mmap.PAGESIZE, array.strides[0]
    begin = (int(array.offset) % mmap.ALLOCATIONGRANULARITY + start * row_bytes) // page * page
    length = min((stop - start) * row_bytes + page, len(file) - begin)
    if length > 0:
        file.madvise(mmap.MADV_DONTNEED, begin, length)


MAX_CANDIDATES = 65_536
FEW_NEW = 1024

Exact = Callable[[IntArray], DoubleArray]


class BestRows:
    """Takes rows in any order and from any thread; which are the best does not depend on either.

    Args:
        n_wanted: how many rows are looked for.
        exact: rows to their exact scores; NaN for those that must not be found.
    """

    def __init__(self, n_wanted: int, exact: Exact) -> None:
        self.floor = -np.inf
        self._n_wanted = n_wanted
        self._most = max(MAX_CANDIDATES, 4 * n_wanted)
        self._exact = exact
        self._lock = threading.Lock()
        self._rows: IntArray = np.empty(0, dtype=np.int64)
        self._low: DoubleArray = np.empty(0)
        self._high: DoubleArray = np.empty(0)
        self._new: list[tuple[IntArray, DoubleArray, DoubleArray]] = []
        self._n_new = 0

    def offer(self, scores: FloatArray, slack: FloatArray, offset: int) -> None:
        """Take rows with rough scores [n], off by at most so much [n]; their numbers begin at `offset`. NaN is no row."""
        places = np.flatnonzero(scores + slack >= self.floor)
        if not len(places):
            return
        middle, wide = scores[places].astype(np.float64), slack[places].astype(np.float64)
        with self._lock:
            self._new.append((places.astype(np.int64) + offset, middle - wide, middle + wide))
            self._n_new += len(places)
            if self._n_new >= FEW_NEW or not np.isfinite(self.floor):
                self._tighten()

    def found(self) -> tuple[IntArray, DoubleArray]:
        """Return the best rows and their exact scores, best first; among equals the lower row number comes first."""
        with self._lock:
            self._tighten()
            self._settle()
            return self._rows.copy(), self._low.copy()

    def _tighten(self) -> None:
        self._rows = np.concatenate([self._rows, *(rows for rows, _, _ in self._new)])
        self._low = np.concatenate([self._low, *(low for _, low, _ in self._new)])
        self._high = np.concatenate([self._high, *(high for _, _, high in self._new)])
        self._new, self._n_new = [], 0
        if len(self._rows) > self._n_wanted:
            self.floor = float(np.partition(self._low, -self._n_wanted)[-self._n_wanted])
            self._keep(self._high >= self.floor)
        if len(self._rows) > self._most:
            self._settle()

    def _settle(self) -> None:
        """Replace bounds by exact scores and keep only the best; a score that was settled before is what it was."""
        open_ones = np.flatnonzero(self._low != self._high)
        self._low[open_ones] = self._high[open_ones] = self._exact(self._rows[open_ones])
        self._keep(~np.isnan(self._low))
        self._keep(np.lexsort((self._rows, -self._low))[: self._n_wanted])
        if len(self._rows) == self._n_wanted:
            self.floor = max(self.floor, float(self._low[-1]))

    def _keep(self, which: AnyArray) -> None:
        self._rows, self._low, self._high = self._rows[which], self._low[which], self._high[which]


Given = TypeVar("Given")
Made = TypeVar("Made")


@dataclass(frozen=True, kw_only=True, eq=False)
class Nearest:
    """The rows nearest to one query.

    Args:
        rows: row numbers, nearest first; among equals the lower number first.
        scores: cosine of the angle to the query.
    """

    rows: IntArray
    scores: DoubleArray


def nearest_rows(
    shards: EmbeddingShards,
    queries: AnyArray,
    n_wanted: int,
    *,
    within: BoolArray | None = None,
    threads: int | None = None,
) -> list[Nearest]:
    """Return for every query the rows with the largest cosine, fewer if there are no more; all queries in one reading.

    Args:
        shards: the rows, or a smaller copy that is read first; those with a number that is not finite are never found.
        queries: one embedding [d] or several [m, d].
        n_wanted: how many rows a query.
        within: which rows are meant [n]; all by default.
        threads: how many; all cores by default.

    Raises:
        DataError: if a query does not fit or has no direction.
    """
    if n_wanted < 1:
        raise ConfigError("At least one row must be asked for.", given=n_wanted)
    allowed, asked = _checked_mask(shards, within), Queries.of(queries, dimension=shards.dimension)
    best = [
        BestRows(n_wanted, partial(shards.exact_scores, queries=asked, query=number))
        for number in range(len(asked))
    ]

    def look(piece: Piece) -> None:
        part = allowed[piece.offset : piece.offset + len(piece)]
        if part.any():
            scores, slack = shards.rough(piece, asked, part)
            for number, one in enumerate(best):
                one.offer(scores[number], slack, piece.offset)

    for _ in in_order(look, shards.pieces, threads):
        pass
    return [Nearest(rows=rows, scores=scores) for rows, scores in (one.found() for one in best)]


def rows_above(
    shards: EmbeddingShards,
    query: AnyArray,
    threshold: float,
    *,
    within: BoolArray | None = None,
    threads: int | None = None,
) -> Iterator[IntArray]:
    """Yield the rows whose cosine with a query [d] is at least a threshold, ascending, piece by piece.

    Args:
        shards: the rows, or a smaller copy that is read first; those with a number that is not finite are never found.
        query: one embedding [d].
        threshold: the least cosine.
        within: which rows are meant [n]; all by default.
        threads: how many; all cores by default.

    Raises:
        DataError: if the query does not fit or has no direction.
    """
    if np.isnan(threshold):
        raise ConfigError("The threshold is not a number.", given=threshold)
    allowed, asked = _checked_mask(shards, within), Queries.of(query, dimension=shards.dimension)

    def look(piece: Piece) -> IntArray:
        part = allowed[piece.offset : piece.offset + len(piece)]
        if not part.any():
            return np.empty(0, dtype=np.int64)
        scores, slack = shards.rough(piece, asked, part)
        places = np.flatnonzero(scores[0] + slack >= threshold)
        is_sure = scores[0][places] - slack[places] >= threshold
        rows: IntArray = places.astype(np.int64) + piece.offset
        is_sure[~is_sure] = shards.exact_scores(rows[~is_sure], asked) >= threshold
        found: IntArray = rows[is_sure]
        return found

    return in_order(look, shards.pieces, threads)


def in_order(
    function: Callable[[Given], Made], items: tuple[Given, ...], threads: int | None
) -> Iterator[Made]:
    """Yield what a function makes of items, in their order, a few at a time in threads."""
    n_threads = min(threads or os.cpu_count() or 1, max(len(items), 1))
    if n_threads == 1:
        yield from map(function, items)
        return
    waiting: deque[Future[Made]] = deque()
    with ThreadPoolExecutor(n_threads, thread_name_prefix="nearest") as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > 4 * n_threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _checked_mask(shards: EmbeddingShards, within: BoolArray | None) -> BoolArray:
    if within is None:
        return np.ones(len(shards), dtype=np.bool_)
    if within.shape != (len(shards),) or within.dtype != np.bool_:
        raise DataError(
            "Rows to look within must be one truth value a row.",
            given=(within.shape, str(within.dtype)),
        )
    return within


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
        tail = np.concatenate([factors, np.nextafter(slack, np.float32(np.inf))]).tobytes()
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
