"""Samples with the same content, and near-identical images found by their embeddings.

Distances are told in units of the median distance between two images of the same class. An image that was compressed anew lies at
about 0.06, the nearest pairs of different photographs at 0.3 and more.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weakspot.core.arrays import AnyArray, BoolArray, FloatArray, IntArray, generator
from weakspot.core.dataset import GROUP, SPLIT_ORDER, Dataset, Split, Task, as_given
from weakspot.core.samples import SampleSet
from weakspot.data.groups import MIN_IMAGES, NamedFiles, components, n_across_splits

_BLOCK_ROWS = 1 << 20

DUPLICATES_SCHEMA = pa.schema(
    [
        ("content_hash", pa.string()),
        ("n_samples", pa.int64()),
        ("keys", pa.list_(pa.string())),
        ("splits", pa.list_(pa.string())),
        ("labels", pa.list_(pa.string())),
        ("crosses_splits", pa.bool_()),
        ("has_conflicting_labels", pa.bool_()),
    ]
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Copies:
    """Which samples have the same content; nine bytes a sample.

    Args:
        first_rows: the first row with the same content, itself if it is the first [n].
        ranks: 1 for the first row with a content, 2 for the second, and so on [n].
        is_repeated: whether the content occurs more than once [n].
    """

    first_rows: AnyArray
    ranks: AnyArray
    is_repeated: BoolArray

    def sample_ids(self, hashes: pa.Array, rows: IntArray) -> pa.Array:
        """Return a unique id for each of the rows: the content hash, and `-2`, `-3` for its repetitions."""
        ranks = self.ranks[rows]
        if bool((ranks == 1).all()):
            return hashes
        suffixes = pa.array(
            [f"-{rank}" if rank > 1 else "" for rank in ranks.tolist()], pa.string()
        )
        return pc.binary_join_element_wise(hashes, suffixes, "")


def packed_hashes(hashes: pa.Array) -> AnyArray:
    """Return content hashes, given in hexadecimal digits, as pairs of numbers [n, 2]: half of the bytes."""
    digits = "".join(hashes.to_pylist())
    return np.frombuffer(bytes.fromhex(digits), dtype=">u8").reshape(len(hashes), 2)


def find_copies(hashes: list[AnyArray]) -> Copies:
    """Find the samples with the same content hash, given part by part; the list is emptied, because memory counts here."""
    n_rows = sum(len(part) for part in hashes)
    halves = np.empty((2, n_rows), dtype=np.uint64)
    stop = n_rows
    while hashes:
        part = hashes.pop()
        halves[:, stop - len(part) : stop] = part.T
        stop -= len(part)
    order = _sorted_rows(halves)
    small = np.int32 if n_rows <= np.iinfo(np.int32).max else np.int64
    is_first = _begins(halves[0], order) | _begins(halves[1], order)
    del halves
    starts = np.flatnonzero(is_first).astype(small)
    groups = np.cumsum(is_first, dtype=small) - 1
    is_repeated = np.empty(n_rows, dtype=np.bool_)
    is_repeated[order] = (np.diff(starts, append=small(n_rows)) > 1)[groups]
    starts = starts[groups]
    del groups, is_first
    ranks = np.empty(n_rows, dtype=small)
    ranks[order] = np.arange(1, n_rows + 1, dtype=small) - starts
    first_rows = np.empty(n_rows, dtype=small)
    first_rows[order] = order[starts]
    return Copies(first_rows=first_rows, ranks=ranks, is_repeated=is_repeated)


def _sorted_rows(halves: AnyArray) -> IntArray:
    """Return rows in the order of their hashes, earlier rows first among equal ones."""
    order = np.argsort(halves[0], kind="stable")
    if bool((_begins(halves[1], order) & ~_begins(halves[0], order)).any()):
        # Two hashes that share their first half: the first sort need not have put equal ones together.
        return np.lexsort((halves[1], halves[0]))
    return order


def _begins(values: AnyArray, order: IntArray) -> BoolArray:
    """Return where, in this order, a value differs from the one before."""
    found = np.ones(len(values), dtype=np.bool_)
    for start in range(1, len(values), _BLOCK_ROWS):
        block = values[order[start - 1 : start + _BLOCK_ROWS]]
        found[start : start + _BLOCK_ROWS] = block[1:] != block[:-1]
    return found


def duplicates_table(parts: Iterable[pa.Table], copies: Copies, splits: AnyArray) -> pa.Table:
    """Return one row for every content that occurs more than once.

    Columns: content hash, number of samples, their keys, splits and labels (several labels joined by `, `), whether the samples are
    in different splits, and whether their labels differ.
    """
    found = [
        _repeated_rows(part, rows, copies, splits) for part, rows in _number(parts) if len(rows)
    ]
    repeated = [table for table in found if table.num_rows]
    if not repeated:
        return DUPLICATES_SCHEMA.empty_table()
    everything = pa.concat_tables(repeated)
    grouped = everything.group_by("content_hash", use_threads=False).aggregate(
        [(name, "list") for name in ("key", "split", "labels")]
    )
    columns = {
        "content_hash": grouped.column("content_hash"),
        "n_samples": pc.cast(pc.list_value_length(grouped.column("key_list")), pa.int64()),
        "keys": grouped.column("key_list"),
        "splits": grouped.column("split_list"),
        "labels": grouped.column("labels_list"),
        "crosses_splits": _differs(grouped.column("split_list")),
        "has_conflicting_labels": _differs(grouped.column("labels_list")),
    }
    return pa.table(columns, schema=DUPLICATES_SCHEMA).sort_by("content_hash")


def _number(parts: Iterable[pa.Table]) -> Iterable[tuple[pa.Table, IntArray]]:
    start = 0
    for part in parts:
        yield part, np.arange(start, start + part.num_rows)
        start += part.num_rows


def _repeated_rows(part: pa.Table, rows: IntArray, copies: Copies, splits: AnyArray) -> pa.Table:
    names = pa.array([split.value for split in SPLIT_ORDER])
    whole = pa.table(
        {
            "content_hash": part.column("content_hash"),
            "key": part.column("key"),
            "split": names.take(pa.array(splits[rows])),
            "labels": pc.binary_join(part.column("labels"), ", "),
        }
    )
    return whole.filter(pa.array(copies.is_repeated[rows]))


def _differs(lists: pa.ChunkedArray) -> pa.Array:
    return pa.array([len(set(values)) > 1 for values in lists.to_pylist()], pa.bool_())


NEAR = (0.12, 0.08, 0.06, 0.04, 0.03, 0.02, 0.01)
"""Distances up to which images are near-identical, the largest first that stands out."""

NEAR_IN_A_BURST = 0.25
MAX_NEIGHBOURS = 3.0
"""Within twice the distance there must be at most so many times the pairs: in any cloud of independent images there are more."""

MAX_SHARE = 0.1
SMALL_GROUP = 10
MAX_IMAGES = 40_000
BLOCK = 2_048
MAX_COMPARED = 1 << 24
AXES = (8, 16, 32, 64)
MIXTURES = {64: 1.6, 128: 1.43, 256: 1.3}
"""Random projections to so many dimensions lengthen no distance by more than that, in millions of pairs (seven standard errors)."""
MAX_PASSING = 1e-3
N_AXES_ROWS = 4_000
COMPARED_WHOLE = 2_000  # so few are compared in all dimensions: finding fewer takes longer
N_SCALE_PAIRS = 4_000
SUSPECT_RATIO = 3.0


@dataclass(frozen=True, kw_only=True, eq=False)
class NearIdentical:
    """Samples with their groups, and what is to be said of them.

    Args:
        dataset: the samples; those in groups of near-identical ones name their group.
        n_images: images in such groups.
        n_groups: the groups.
        n_across_splits: groups in several splits.
        warning: what is suspected but not certain; empty if nothing is.
    """

    dataset: Dataset
    n_images: int = 0
    n_groups: int = 0
    n_across_splits: int = 0
    warning: str = ""

    @property
    def sentence(self) -> str:
        """Return both in words, empty if there is nothing to say."""
        said = []
        if self.n_groups:
            across = (
                f" ({self.n_across_splits} of them in several splits)"
                if self.n_across_splits
                else ""
            )
            said.append(
                f"{self.n_images} images form {self.n_groups} groups of near-identical images{across}, and groups are counted; "
                '[data] group = "none" keeps them apart.'
            )
        return " ".join([*said, self.warning]).strip()


def group_near_identical(samples: SampleSet, space: str) -> NearIdentical:
    """Put near-identical images of a class into groups; predictions are not looked at.

    Training samples are left out: nothing is tested on them. A data set whose groups are named stays as it is.

    Args:
        samples: all samples.
        space: whose embeddings tell.
    """
    dataset = samples.dataset
    if GROUP in dataset.table.column_names or space not in samples.spaces:
        return NearIdentical(dataset=dataset)
    found = [_ClassPairs.of(samples, space, rows) for rows in _looked_at(samples, space)]
    limit = _limit(np.concatenate([[], *(one.distances for one in found)]))
    in_bursts = [one.neighbours(dataset) for one in found]
    burst_limit = NEAR_IN_A_BURST if _stands_out(found, in_bursts, NEAR_IN_A_BURST) else 0.0
    firsts = np.arange(len(dataset))
    n_refused = 0
    for one, (pairs, distances) in zip(found, in_bursts, strict=True):
        near = one.pairs[one.distances <= limit]
        joined = np.concatenate([near, pairs[distances <= burst_limit]])
        codes = components(joined, len(one.rows))
        sizes = np.bincount(codes)
        if sizes.max(initial=0) > max(SMALL_GROUP, MAX_SHARE * len(one.rows)):
            n_refused += int(sizes[sizes > 1].sum())
            continue
        _, first = np.unique(codes, return_index=True)
        firsts[one.rows] = one.rows[first[codes]]
    return _group(dataset, firsts, _warning(n_refused))


def _looked_at(samples: SampleSet, space: str) -> Iterator[IntArray]:
    """Yield the labelled evaluation rows of every class that have an embedding."""
    # As given: what people correct must not move samples from one half to the other.
    dataset = as_given(samples.dataset)
    rows = dataset.rows_of(Split.VALIDATION, Split.TEST, Split.POOL)
    rows = rows[dataset.is_labelled[rows]]
    rows = rows[samples.has_embeddings(space, rows)] if len(rows) else rows
    has_one_label = dataset.task is Task.SINGLE_LABEL
    classes = dataset.labels[rows] if has_one_label else np.zeros(len(rows), dtype=np.int64)
    order = np.argsort(classes, kind="stable")
    starts = np.flatnonzero(np.diff(classes[order])) + 1
    for own in np.split(rows[order], starts):
        if MIN_IMAGES <= len(own) <= MAX_IMAGES:
            yield own


@dataclass(frozen=True, kw_only=True, eq=False)
class _ClassPairs:
    """The close pairs of one class.

    Args:
        rows: rows of the data set [n].
        unit: embeddings of length one [n, d].
        scale: median distance of two images.
        pairs: places in `rows` [p, 2].
        distances: in units of the scale [p].
    """

    rows: IntArray
    unit: FloatArray
    scale: float
    pairs: IntArray
    distances: AnyArray

    @classmethod
    def of(cls, samples: SampleSet, space: str, rows: IntArray) -> "_ClassPairs":
        unit = samples.embeddings(space, rows)
        unit = unit / np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1e-12)
        random = generator(0, "near-identical", str(len(rows)))
        some = random.integers(0, len(rows), (N_SCALE_PAIRS, 2))
        some = some[some[:, 0] != some[:, 1]]
        scale = float(np.median(_distances(unit, some)))
        if scale <= 0.0:
            pairs = np.zeros((0, 2), dtype=np.int64)
            return cls(rows=rows, unit=unit, scale=1.0, pairs=pairs, distances=np.zeros(0))
        reach = 2 * NEAR[0] * scale
        is_small = len(rows) <= COMPARED_WHOLE
        pairs = _close_pairs(
            *((unit, reach) if is_small else _projected(unit, some, reach, random))
        )
        distances = _distances(unit, pairs) / scale
        pairs, distances = pairs[distances <= 2 * NEAR[0]], distances[distances <= 2 * NEAR[0]]
        return cls(rows=rows, unit=unit, scale=scale, pairs=pairs, distances=distances)

    def neighbours(self, dataset: Dataset) -> tuple[IntArray, AnyArray]:
        """Return pairs of images whose file names follow each other [p, 2], and their distances [p]."""
        files = NamedFiles.of(dataset, self.rows, most=len(self.rows))
        if files is None:
            return np.zeros((0, 2), dtype=np.int64), np.zeros(0)
        follows = (np.diff(files.frames) == 0) & (np.diff(files.numbers) == 1)
        listed = np.searchsorted(self.rows, files.rows)
        pairs = np.stack([listed[:-1][follows], listed[1:][follows]], axis=1)
        return pairs, _distances(self.unit, pairs) / self.scale


def _distances(unit: FloatArray, pairs: IntArray) -> AnyArray:
    if not len(pairs):
        return np.zeros(0)
    return np.concatenate(
        [
            np.linalg.norm(unit[part[:, 0]] - unit[part[:, 1]], axis=1)
            for part in np.array_split(pairs, -(-len(pairs) // BLOCK))
        ]
    )


def _projected(
    unit: FloatArray, some: IntArray, reach: float, random: np.random.Generator
) -> tuple[FloatArray, float]:
    """Return embeddings in few dimensions [n, k], and within which distance there all pairs lie that are within reach.

    Few dimensions are cheap to compare; they must let hardly any of some random pairs [p, 2] pass that are not within reach.
    """
    best: tuple[float, FloatArray, float] = (1.0, unit, reach)
    for points, there in _projections(unit, reach, random):
        share = float(np.mean(_distances(points, some) <= there))
        if share < best[0]:
            best = share, points, there
        if share <= MAX_PASSING:
            break
    return best[1], best[2]


def _projections(
    unit: FloatArray, reach: float, random: np.random.Generator
) -> Iterator[tuple[FloatArray, float]]:
    n_rows, width = unit.shape
    rows = random.permutation(n_rows)[:N_AXES_ROWS]
    centre = unit[rows].mean(axis=0)
    axes = np.linalg.eigh(np.cov(unit[rows].T))[1][:, ::-1].astype(np.float32)
    for n_kept in AXES:
        if n_kept < width:
            # Along orthogonal axes no distance grows, whichever axes they are.
            yield (unit - centre) @ axes[:, :n_kept], reach
    for n_mixed, slack in MIXTURES.items():
        if 2 * n_mixed <= width:
            mixing = random.standard_normal((width, n_mixed)).astype(np.float32)
            yield (unit - centre) @ (mixing / np.sqrt(n_mixed, dtype=np.float32)), slack * reach
    yield unit, reach


def _close_pairs(points: FloatArray, reach: float) -> IntArray:
    """Return pairs that lie within reach [p, 2], up to rounding; sorted by the first coordinate, only neighbours are compared."""
    order = np.argsort(points[:, 0], kind="stable")
    points = points[order]
    squares = np.einsum("ij,ij->i", points, points)[:, None]
    ones = np.ones_like(squares)
    # One product gives squared distances: |a|^2 - 2 ab + |b|^2.
    left = np.concatenate([-2.0 * points, squares, ones], axis=1)
    right = np.concatenate([points, ones, squares], axis=1)
    limit = (reach * (1.0 + 1e-4)) ** 2 + 1e-6
    ends = np.searchsorted(points[:, 0], points[:, 0] + (reach * (1.0 + 1e-4) + 1e-6), side="right")
    found = [np.zeros((0, 2), dtype=np.int64)]
    n_at_once = max(1, min(BLOCK, MAX_COMPARED // max(len(points), 1)))
    for start in range(0, len(points), n_at_once):
        stop = min(start + n_at_once, len(points))
        squared = left[start:stop] @ right[start : ends[stop - 1]].T
        first, second = np.divmod(np.flatnonzero(squared <= limit), squared.shape[1])
        later = second > first
        found.append(np.stack([first[later] + start, second[later] + start], axis=1))
    return np.sort(order[np.concatenate(found)], axis=1)


def _limit(distances: AnyArray) -> float:
    """Return up to which distance images are near-identical: where close pairs are more than a continuous cloud would have."""
    ordered = np.sort(distances)
    for limit in NEAR:
        within, around = np.searchsorted(ordered, [limit, 2 * limit], side="right")
        if within and around <= MAX_NEIGHBOURS * within:
            return limit
    return 0.0


def _group(dataset: Dataset, firsts: IntArray, warning: str) -> NearIdentical:
    sizes = np.bincount(firsts, minlength=len(firsts))[firsts]
    rows = np.flatnonzero(sizes > 1)
    if not len(rows):
        return NearIdentical(dataset=dataset, warning=warning)
    ids = dataset.table.column("sample_id").take(pa.array(firsts, mask=sizes <= 1))
    units, inverse = np.unique(firsts[rows], return_inverse=True)
    return NearIdentical(
        dataset=dataset.with_groups(ids.combine_chunks()),
        n_images=len(rows),
        n_groups=len(units),
        n_across_splits=n_across_splits(inverse, dataset.splits[rows]),
        warning=warning,
    )


def _warning(n_refused: int) -> str:
    if not n_refused:
        return ""
    return f"{n_refused} images lie close together in groups too large for near-identical images; they were left as they are."


def _stands_out(
    found: list[_ClassPairs], in_bursts: list[tuple[IntArray, AnyArray]], limit: float
) -> bool:
    """Return whether images whose names follow each other are close much more often than others."""
    n_close = sum(int(np.sum(distances <= limit)) for _, distances in in_bursts)
    return n_close > SUSPECT_RATIO * _expected(found, in_bursts, limit)


def _expected(
    found: list[_ClassPairs], in_bursts: list[tuple[IntArray, AnyArray]], limit: float
) -> float:
    return sum(
        len(pairs) * _share_within(one, limit)
        for one, (pairs, _) in zip(found, in_bursts, strict=True)
        if len(pairs)
    )


def _share_within(one: _ClassPairs, limit: float) -> float:
    """Return the share of random pairs that lie within a distance."""
    random = generator(0, "near-identical", "chance", str(len(one.rows)))
    some = random.integers(0, len(one.rows), (N_SCALE_PAIRS, 2))
    some = some[some[:, 0] != some[:, 1]]
    return float(np.mean(_distances(one.unit, some) / one.scale <= limit))
