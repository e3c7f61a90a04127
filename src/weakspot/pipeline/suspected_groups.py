"""Images that may show the same object, where nobody says so and they are not near-identical: a warning with a number.

Files are often numbered, and that alone says nothing. It is suspicious if images whose names follow each other are more alike than
images that are further apart by name; a data set that is merely sorted by kind does not show that.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import FloatArray, IntArray, unit_rows
from weakspot.core.dataset import Dataset, Split, Task
from weakspot.core.failures import predicted_classes
from weakspot.core.samples import SampleSet
from weakspot.ingest.group_names import FILE_NAME

FURTHER = 10
"""So many places on by name lies the image that the next one is compared with."""

CLEAR_RATIO, CLEAR_EXCESS = 2.0, 6.0
"""So many times as many neighbours as by chance must be linked, and by so many standard deviations more."""

CLEAR_SHARE, CLEAR_Z = 0.65, 4.0
"""The same where only outcomes tell: share of the comparisons, and standard deviations above a half."""

CLOSEST = 0.05
"""Two neighbours are linked if they are closer than this share of the pairs that lie further apart by name."""

LEAST_IMAGES = 10
LEAST_FRAMES = 10
MOST_IMAGES = 20_000
"""Of larger classes the first files by name are looked at."""

LARGEST_SHARE = 0.1
SMALL_FRAME = 10
_LAST_NUMBER = re.compile(r"^(.*?)(\d{1,15})(\D*)$", re.DOTALL)
NO_LINE = (
    'add a column that says which object an image shows, and write its name: [data] group = "..."'
)


@dataclass(frozen=True, kw_only=True, eq=False)
class NamedFiles:
    """The files of one class, in the order of their names.

    Args:
        rows: rows of the data set [n].
        frames: number of what stands around the last number of the name [n].
        numbers: that number [n].
        prefixes: what stands before it, by frame.
    """

    rows: IntArray
    frames: IntArray
    numbers: IntArray
    prefixes: tuple[str, ...]

    @classmethod
    def of(cls, dataset: Dataset, rows: IntArray) -> "NamedFiles | None":
        """Return the files among the rows whose name has a number, None if they are few."""
        found = [
            (row, name)
            for row, file in zip(rows.tolist(), _files(dataset, rows), strict=True)
            if (name := _LAST_NUMBER.match(file)) is not None
        ]
        if len(found) < LEAST_IMAGES:
            return None
        around = [f"{name.group(1)}\0{name.group(3)}" for _, name in found]
        names, frames = np.unique(np.array(around), return_inverse=True)
        numbers = np.array([int(name.group(2)) for _, name in found])
        order = np.lexsort((numbers, frames))[:MOST_IMAGES]
        return cls(
            rows=np.array([row for row, _ in found])[order],
            frames=frames[order],
            numbers=numbers[order],
            prefixes=tuple(name.partition("\0")[0] for name in names.tolist()),
        )

    @property
    def neighbours(self) -> IntArray:
        """Return the places of images whose name another one follows closely, as names are spaced here."""
        gaps = np.diff(self.numbers)
        same = np.diff(self.frames) == 0
        usual = 2.0 * float(np.median(gaps[same])) if same.any() else 0.0
        return np.flatnonzero(same & (gaps <= usual) & (gaps > 0))

    def further(self, places: IntArray) -> IntArray:
        """Return the places of images some way on, or back where names end."""
        reach = min(FURTHER, len(self.rows) // 2)
        on = places + 1 + reach
        return np.where(on < len(self.rows), on, places - reach)


def _files(dataset: Dataset, rows: IntArray) -> list[str]:
    keys = dataset.table.column("key").take(pa.array(rows)).to_pylist()
    places = dataset.locations(rows)
    # A key without an ending is the number of a row, which says nothing about when an image was taken.
    return [place or (key if "." in key else "") for place, key in zip(places, keys, strict=True)]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Seen:
    """What the neighbours of one class show.

    Args:
        n_nearer: neighbours that are more alike than the image further on, of those that differ in that.
        n_compared: of how many.
        linked: pairs of rows that are closer than nearly all that lie further apart [p, 2].
        n_pairs: neighbours in all.
        files: the class.
    """

    n_nearer: int
    n_compared: int
    linked: IntArray
    n_pairs: int
    files: NamedFiles


def suspect_names(samples: SampleSet, space: str) -> str:
    """Return a warning that images whose names follow each other may show the same object, empty if nothing hints at it.

    Without embeddings, whether neighbours fail together tells. Images that are in one group already do not count.

    Args:
        samples: all samples, with the groups that are known.
        space: whose embeddings tell.
    """
    dataset = samples.dataset
    has_space = space in samples.spaces
    if not has_space and (not dataset.has_predictions or dataset.task is not Task.SINGLE_LABEL):
        return ""
    seen = [
        found
        for rows in _evaluated(samples, space if has_space else None)
        if (found := _look(samples, rows, space if has_space else None)) is not None
    ]
    line = (
        f'{_line([one.files for one in seen])}; group = "none" says that they do not.'
        if seen
        else ""
    )
    said = _said_by_embeddings(seen) if has_space else _said_by_outcomes(seen)
    return f"{said} If they show the same object, {line}" if said else ""


def _said_by_embeddings(seen: Sequence[_Seen]) -> str:
    n_pairs = sum(one.n_pairs for one in seen)
    n_linked = sum(len(one.linked) for one in seen)
    n_expected = CLOSEST * n_pairs
    excess = (n_linked - n_expected) / np.sqrt(max(n_expected, 1.0))
    if n_linked < CLEAR_RATIO * n_expected or excess < CLEAR_EXCESS:
        return ""
    n_images, n_runs = _count_runs(np.concatenate([one.linked for one in seen]))
    n_all = sum(len(one.files.rows) for one in seen)
    return (
        f"{n_images:,} of {n_all:,} evaluation images come in {n_runs:,} runs of consecutive file names that look more alike than "
        f"images further apart by name (about {round(2 * n_expected):,} would by chance)."
    )


def _said_by_outcomes(seen: Sequence[_Seen]) -> str:
    n_nearer, n_compared = (
        sum(one.n_nearer for one in seen),
        sum(one.n_compared for one in seen),
    )
    share = n_nearer / max(n_compared, 1)
    if share < CLEAR_SHARE or (2.0 * share - 1.0) * np.sqrt(n_compared) < CLEAR_Z:
        return ""
    return (
        f"Images are right or wrong together with the next one by file name rather than with one further on, {n_nearer:,} of "
        f"{n_compared:,} times where these differ."
    )


def _evaluated(samples: SampleSet, space: str | None) -> Iterator[IntArray]:
    """Yield the labelled evaluation rows of every class."""
    dataset = samples.dataset
    rows = dataset.rows_of(Split.VALIDATION, Split.TEST)
    rows = rows[dataset.is_labelled[rows]]
    if space is not None and len(rows):
        rows = rows[samples.has_embeddings(space, rows)]
    is_single = dataset.task is Task.SINGLE_LABEL
    classes = dataset.labels[rows] if is_single else np.zeros(len(rows), dtype=np.int64)
    for code in np.unique(classes):
        own = rows[classes == code]
        if len(own) >= LEAST_IMAGES:
            yield own


def _look(samples: SampleSet, rows: IntArray, space: str | None) -> _Seen | None:
    files = NamedFiles.of(samples.dataset, rows)
    if files is None:
        return None
    places = files.neighbours
    further = files.further(places)
    codes = samples.dataset.groups[files.rows]
    is_open = codes[places] != codes[places + 1]
    places, further = places[is_open], further[is_open]
    values = _values(samples, files.rows, space)
    near, far = (
        np.linalg.norm(values[places] - values[others], axis=1) for others in (places + 1, further)
    )
    closest = float(np.quantile(far, CLOSEST)) if len(far) else 0.0
    linked = np.flatnonzero(near < closest)
    return _Seen(
        n_nearer=int(np.sum(near < far)),
        n_compared=int(np.sum(near != far)),
        linked=np.stack([files.rows[places[linked]], files.rows[places[linked] + 1]], axis=1),
        n_pairs=len(places),
        files=files,
    )


def _values(samples: SampleSet, rows: IntArray, space: str | None) -> FloatArray:
    """Return unit embeddings [n, d], or without any whether samples failed [n, 1]."""
    if space is not None:
        return unit_rows(samples.embeddings(space, rows))
    dataset = samples.dataset
    failed = predicted_classes(dataset, rows) != dataset.labels[rows]
    return np.asarray(failed[:, None], dtype=np.float32)


def _count_runs(linked: IntArray) -> tuple[int, int]:
    """Return how many rows are linked to others, and how many runs they form."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    rows, places = np.unique(linked, return_inverse=True)
    if not len(rows):
        return 0, 0
    first, second = places.reshape(linked.shape).T
    edges = coo_array((np.ones(len(first)), (first, second)), shape=(len(rows), len(rows)))
    return len(rows), int(connected_components(edges, directed=False)[0])


def _line(seen: Sequence[NamedFiles]) -> str:
    """Return what to write where names tell objects apart: each has a folder, or a stem before the number, of its own."""
    frames = [prefix for files in seen for prefix in files.prefixes]
    sizes = np.concatenate([np.bincount(files.frames) for files in seen])
    largest = max(SMALL_FRAME, LARGEST_SHARE * int(sizes.sum()))
    if np.sum(sizes > 1) < LEAST_FRAMES or sizes.max() > largest:
        return NO_LINE
    folders = {prefix.rpartition("/")[0] for prefix in frames}
    setting = "folder:1" if len(folders) >= len(set(frames)) else FILE_NAME
    return f'write [data] group = "{setting}"'
