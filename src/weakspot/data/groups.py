"""Which samples belong together: as the user says, as one camera took them, or as alike neighbours by name suggest.

Files are often numbered, and that alone says nothing. It is suspicious if images whose names follow each other are more alike than
images that are further apart by name; a data set that is merely sorted by kind does not show that.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weakspot.core.arrays import AnyArray, BoolArray, FloatArray, IntArray, unit_rows
from weakspot.core.dataset import GROUP, Dataset, Split, Task, join_groups
from weakspot.core.errors import ConfigError
from weakspot.core.failures import predicted_classes
from weakspot.core.samples import SampleSet
from weakspot.data.columns import METADATA, values_of
from weakspot.data.images import CAMERA_BITS

AUTO, NONE, FILE_NAME = "auto", "none", "file-name"
STEM_PATTERN = "^(.*?)[-_ ]?[0-9]+[.][^./]+$"
"""What `file-name` means: what stands before the number at the end of the file's name."""
ON_ITS_OWN = -1
FEW_GROUPS = 10
MANY_SAMPLES = 100
MAX_SHARE = 0.25
_FOLDER = re.compile(r"folder:([1-9]\d*)")


@dataclass(frozen=True, kw_only=True)
class GroupChoice:
    """Where the name of a sample's group stands.

    Args:
        kind: a free column, a folder above the image, or a pattern with one capture.
        value: name of the column, number of the folder (1 holds the image), or the pattern.
        is_told: whether the user said so; a column that merely is called `group` need not be one of objects.
    """

    kind: Literal["none", "column", "folder", "pattern"]
    value: str = ""
    is_told: bool = True

    @classmethod
    def of(cls, setting: str) -> "GroupChoice":
        """Read the setting `[data] group`.

        Raises:
            ConfigError: for a pattern that is none, or that does not have exactly one capture.

        >>> GroupChoice.of("patient_id").kind, GroupChoice.of("folder:1").kind, GroupChoice.of("file-name").kind
        ('column', 'folder', 'pattern')
        """
        if setting in (AUTO, ""):
            return cls(kind="column", value=GROUP, is_told=False)
        if setting == NONE:
            return cls(kind="none")
        if setting == FILE_NAME:
            return cls(kind="pattern", value=STEM_PATTERN)
        folder = _FOLDER.fullmatch(setting)
        if folder:
            return cls(kind="folder", value=folder.group(1))
        if "(" not in setting:
            return cls(kind="column", value=setting)
        _check_pattern(setting)
        return cls(kind="pattern", value=setting)

    def names(self, part: pa.Table) -> pa.Array | None:
        """Return the group of every sample of a part, null for one on its own; None if there is none at all."""
        if self.kind == "none":
            return None
        if self.kind == "column":
            return _column_values(part, self.value)
        keys, places = part.column("key").to_pylist(), part.column("location").to_pylist()
        find = (
            partial(_folder_above, int(self.value))
            if self.kind == "folder"
            else partial(_capture, re.compile(self.value))
        )
        names = [find(key) or find(place) for key, place in zip(keys, places, strict=True)]
        return pa.array(names, pa.string()) if any(names) else None


def _check_pattern(setting: str) -> None:
    try:
        n_captures = re.compile(setting).groups
    except re.error as error:
        raise ConfigError(
            f"The pattern is no regular expression: {error}.", where="[data] group", given=setting
        ) from error
    if n_captures != 1:
        raise ConfigError(
            f"The pattern must have exactly one capture, and has {n_captures}.",
            where="[data] group",
            given=setting,
            fix="Put ( ) around the part of the file's name that is the same for images that belong together, and (?: ) around others.",
        )


def _folder_above(number: int, place: str | None) -> str | None:
    """Return the path up to the folder, so that folders of the same name in different places differ."""
    parts = (place or "").partition("#")[0].replace("\\", "/").split("/")
    return "/".join(parts[: max(len(parts) - number, 0)]) or None


def _capture(pattern: re.Pattern[str], place: str | None) -> str | None:
    found = pattern.search(place or "")
    return found.group(1) if found else None


def _column_values(part: pa.Table, name: str) -> pa.Array | None:
    held = values_of(part).get(name)
    if held is not None:
        return held if pa.types.is_string(held.type) else _texts(held.to_pylist())
    metadata = part.column(METADATA)
    has_it = pc.fill_null(
        pc.match_substring(metadata, f"{json.dumps(name)}: "),
        fill_value=False,
    )
    if not pc.any(has_it).as_py():
        return None
    rows = json.loads("[" + ",".join(text or "{}" for text in metadata.to_pylist()) + "]")
    return _texts([row.get(name) for row in rows])


def _texts(values: list[object]) -> pa.Array:
    return pa.array([_text(value) for value in values], pa.string())


def _text(value: object) -> str | None:
    if value is None or value == "":
        return None
    return value if isinstance(value, str) else json.dumps(value)


@dataclass(kw_only=True)
class GroupsSeen:
    """Groups of all parts that were looked at; four bytes a sample, and nothing while there is none.

    Args:
        choice: where names stand.
        names: number of every name.
    """

    choice: GroupChoice = field(default_factory=lambda: GroupChoice(kind="none"))
    names: dict[str, int] = field(default_factory=dict)
    _parts: "SampleParts" = field(default_factory=list)

    def observe(self, part: pa.Table) -> None:
        """Look at the samples of one part."""
        found = self.choice.names(part)
        self._parts.append(part.num_rows if found is None else self._number(found))

    def _number(self, names: pa.Array) -> AnyArray:
        encoded = names.dictionary_encode()
        numbers = [
            self.names.setdefault(name, len(self.names)) for name in encoded.dictionary.to_pylist()
        ]
        by_position = np.array([*numbers, ON_ITS_OWN], dtype=np.int32)
        return np.asarray(by_position[np.asarray(pc.fill_null(encoded.indices, len(numbers)))])

    def codes(self) -> AnyArray | None:
        """Return the number of every sample's group, -1 on its own [n]; None if no sample names one. Empties the parts."""
        return _joined(self._parts, ON_ITS_OWN, np.int32) if self.names else None

    def why_not(self, codes: AnyArray) -> str:
        """Return why groups that nobody told of are not taken for objects; empty if they are."""
        sizes = np.bincount(codes[codes >= 0])
        if self.choice.is_told or len(codes) < MANY_SAMPLES:
            return ""
        if len(sizes) >= FEW_GROUPS and sizes.max() <= MAX_SHARE * len(codes):
            return ""
        return (
            f"The column {GROUP!r} has {len(sizes)} values for {len(codes)} images, so it was not taken for groups of images that "
            f'belong together; [data] group = "{GROUP}" takes it.'
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class NamedGroups:
    """Groups of the samples of a source.

    Args:
        codes: number of every sample's group, -1 on its own [n].
        names: the names behind the numbers.
        first_rows: the first row of the same group or content [n].
    """

    codes: AnyArray
    names: pa.Array
    first_rows: IntArray

    def column(self, rows: IntArray) -> pa.Array:
        """Return the names of the groups of some rows, null for a sample on its own."""
        codes = self.codes[rows]
        return self.names.take(pa.array(codes, mask=codes < 0))

    def counts(self, splits: AnyArray) -> Iterator[int]:
        """Yield groups of several samples, samples in them, and groups that are in several splits."""
        _, inverse, sizes = np.unique(self.first_rows, return_inverse=True, return_counts=True)
        yield int(np.sum(sizes > 1))
        yield int(sizes[sizes > 1].sum())
        yield n_across_splits(inverse, splits)


def n_across_splits(groups: IntArray, splits: AnyArray) -> int:
    """Return how many groups, numbered from 0, are in several splits."""
    n_groups = int(groups.max(initial=-1)) + 1
    lowest, highest = np.full(n_groups, 127), np.full(n_groups, -1)
    np.minimum.at(lowest, groups, splits)
    np.maximum.at(highest, groups, splits)
    return int(np.sum(lowest < highest))


def named_groups(codes: AnyArray, names: dict[str, int], contents: AnyArray) -> NamedGroups:
    """Put groups and copies of the same image together.

    Args:
        codes: number of every sample's group, -1 on its own [n].
        names: number of every name.
        contents: the first row with the same content [n].
    """
    units = join_groups(codes.astype(np.int64), np.asarray(contents, dtype=np.int64))
    _, first, inverse = np.unique(units, return_index=True, return_inverse=True)
    return NamedGroups(
        codes=codes, names=pa.array(list(names), pa.string()), first_rows=first[inverse]
    )


MAX_PAUSE = 3
SMALL_BURST = 10
MAX_BURST_SHARE = 0.1


SampleParts = list[AnyArray | int]
"""What was seen of the samples, part by part; of a part that tells nothing, how many samples it has."""


def moments_in(part: pa.Table) -> AnyArray | int:
    """Return the moments of the samples of one part, 0 where it is not known; parts of earlier versions do not say."""
    column = part.column("moment") if "moment" in part.column_names else None
    is_empty = column is None or column.null_count == len(column)
    return part.num_rows if is_empty else np.asarray(pc.fill_null(column, 0))


def all_moments(parts: SampleParts) -> AnyArray | None:
    """Return the moment of every sample, 0 where it is not known [n]; None if it never is. Empties the parts."""
    return None if all(isinstance(part, int) for part in parts) else _joined(parts, 0, np.int64)


def _joined(parts: SampleParts, fill: int, kind: type[np.generic]) -> AnyArray:
    whole = np.concatenate(
        [np.full(part, fill, dtype=kind) if isinstance(part, int) else part for part in parts]
    )
    parts.clear()
    return whole


def count_bursts(
    moments: AnyArray | None, strata: IntArray, is_evaluated: BoolArray
) -> tuple[int, int, int]:
    """Count bursts among the samples that failures are looked for on.

    A burst is several images of a label that one camera took one shortly after the other.
    A moment that very many share is that of a clock that was never set.

    Args:
        moments: when samples were taken and by which camera, 0 where it is not known [n]; None if it never is.
        strata: number of every sample's labels [n].
        is_evaluated: which samples count [n].

    Returns:
        images in bursts, bursts, and images whose moment is known.
    """
    rows = np.flatnonzero(is_evaluated & (moments > 0)) if moments is not None else ()
    if moments is None or not len(rows):
        return 0, 0, 0
    cameras, seconds = moments[rows] & ((1 << CAMERA_BITS) - 1), moments[rows] >> CAMERA_BITS
    order = np.lexsort((seconds, cameras, strata[rows]))
    _, kinds = np.unique(strata[rows], return_inverse=True)
    ordered = [values[order] for values in (kinds, cameras, seconds)]
    begins = np.ones(len(rows), dtype=np.bool_)
    begins[1:] = (
        (np.diff(ordered[0]) != 0) | (np.diff(ordered[1]) != 0) | (np.diff(ordered[2]) > MAX_PAUSE)
    )
    sizes = np.diff(np.append(np.flatnonzero(begins), len(rows)))
    own = np.bincount(ordered[0])[ordered[0][begins]]
    is_burst = (sizes > 1) & (sizes <= np.maximum(SMALL_BURST, MAX_BURST_SHARE * own))
    return int(sizes[is_burst].sum()), int(is_burst.sum()), len(rows)


def burst_sentence(n_images: int, n_bursts: int, n_dated: int) -> str:
    """Return what is to be said of bursts, empty if there are hardly any."""
    if n_images < SMALL_BURST:
        return ""
    return (
        f"{n_images:,} of {n_dated:,} evaluation images with a capture time come in {n_bursts:,} bursts that one camera took of one "
        f"class with at most {MAX_PAUSE} seconds in between. If a burst shows the same object, add a column that says which object "
        'an image shows, and write its name: [data] group = "..."; group = "none" says that it does not.'
    )


FURTHER = 10
"""So many places on by name lies the image that the next one is compared with."""

CLEAR_RATIO, CLEAR_EXCESS = 2.0, 6.0
"""So many times as many neighbours as by chance must be linked, and by so many standard deviations more."""

CLEAR_SHARE, CLEAR_Z = 0.65, 4.0
"""The same where only outcomes tell: share of the comparisons, and standard deviations above a half."""

CLOSEST = 0.05
"""Two neighbours are linked if they are closer than this share of the pairs that lie further apart by name."""

MIN_IMAGES = 10
MIN_FRAMES = 10
MAX_IMAGES = 20_000
"""Of larger classes the first files by name are looked at."""

MAX_FRAME_SHARE = 0.1
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
    def of(cls, dataset: Dataset, rows: IntArray, *, most: int) -> "NamedFiles | None":
        """Return the first files among the rows whose name has a number, None if they are few."""
        found = [
            (row, name)
            for row, file in zip(rows.tolist(), _files(dataset, rows), strict=True)
            if (name := _LAST_NUMBER.match(file)) is not None
        ]
        if len(found) < MIN_IMAGES:
            return None
        around = [f"{name.group(1)}\0{name.group(3)}" for _, name in found]
        names, frames = np.unique(np.array(around), return_inverse=True)
        numbers = np.array([int(name.group(2)) for _, name in found])
        order = np.lexsort((numbers, frames))[:most]
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
        if len(own) >= MIN_IMAGES:
            yield own


def _look(samples: SampleSet, rows: IntArray, space: str | None) -> _Seen | None:
    files = NamedFiles.of(samples.dataset, rows, most=MAX_IMAGES)
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
    rows, places = np.unique(linked, return_inverse=True)
    if not len(rows):
        return 0, 0
    return len(rows), int(components(places.reshape(linked.shape), len(rows)).max()) + 1


def components(pairs: IntArray, n_rows: int) -> IntArray:
    """Return the number of the component that each of some places [n] belongs to, given the pairs that are linked [p, 2]."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    edges = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n_rows, n_rows))
    return np.asarray(connected_components(edges, directed=False)[1], dtype=np.int64)


def _line(seen: Sequence[NamedFiles]) -> str:
    """Return what to write where names tell objects apart: each has a folder, or a stem before the number, of its own."""
    frames = [prefix for files in seen for prefix in files.prefixes]
    sizes = np.concatenate([np.bincount(files.frames) for files in seen])
    largest = max(SMALL_FRAME, MAX_FRAME_SHARE * int(sizes.sum()))
    if np.sum(sizes > 1) < MIN_FRAMES or sizes.max() > largest:
        return NO_LINE
    folders = {prefix.rpartition("/")[0] for prefix in frames}
    setting = "folder:1" if len(folders) >= len(set(frames)) else FILE_NAME
    return f'write [data] group = "{setting}"'
