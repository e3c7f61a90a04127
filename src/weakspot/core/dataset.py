"""What the classifier saw and said: samples with labels, predictions, probabilities, splits, groups and free metadata."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import AnyArray, BoolArray, FloatArray, IntArray
from weakspot.core.errors import DataError


def group_codes(content_hashes: pa.ChunkedArray, groups: pa.ChunkedArray | None) -> IntArray:
    """Return one number a group [n]; samples of the same content are always in one group.

    Args:
        content_hashes: [n].
        groups: name of the group of every sample, null for a sample on its own [n]; None: nobody named any.

    >>> hashes = pa.chunked_array([["a", "b", "c", "b"]])
    >>> group_codes(hashes, None).tolist(), group_codes(hashes, pa.chunked_array([["x", "x", None, None]])).tolist()
    ([0, 1, 2, 1], [0, 0, 1, 0])
    """
    contents = _codes(content_hashes)
    if groups is None or groups.null_count == len(groups):
        return contents
    return join_groups(_codes(groups), contents)


def join_groups(named: IntArray, contents: IntArray) -> IntArray:
    """Return one number a group [n], in order of first appearance.

    Args:
        named: number of the group that a sample names, -1 for none [n].
        contents: a number for every content [n]; samples of the same one are in one group.

    >>> join_groups(np.array([4, 4, -1, -1]), np.array([0, 1, 2, 1])).tolist()
    [0, 0, 1, 0]
    """
    # Samples that name no group stand for their content; numbers behind those of the names.
    units = np.where(named < 0, named.max(initial=-1) + 1 + contents, named)
    return _compact(_join(units, contents))


def several_to_a_group(groups: IntArray) -> IntArray | None:
    """Return the groups numbered from 0 on [n], None if every sample is a group of its own.

    >>> several_to_a_group(np.array([7, 3, 7])).tolist()
    [1, 0, 1]
    """
    names, codes = np.unique(groups, return_inverse=True)
    return None if len(names) == len(groups) else np.asarray(codes, dtype=np.int64)


def _codes(names: pa.ChunkedArray) -> IntArray:
    """Return a number for every name, -1 for null [n]."""
    encoded = names.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    return np.asarray(encoded.indices.fill_null(-1)).astype(np.int64)


def _join(units: IntArray, contents: IntArray) -> IntArray:
    """Return units where those that share a content are one."""
    lowest = np.full(contents.max(initial=-1) + 1, np.iinfo(np.int64).max)
    np.minimum.at(lowest, contents, units)
    if np.array_equal(lowest[contents], units):
        return units
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    first = _compact(units)
    n_units = int(first.max()) + 1
    size = n_units + int(contents.max()) + 1
    edges = coo_array((np.ones(len(first)), (first, n_units + contents)), shape=(size, size))
    return np.asarray(connected_components(edges, directed=False)[1][first], dtype=np.int64)


def _compact(codes: IntArray) -> IntArray:
    """Return the same groups numbered in order of first appearance."""
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    place = np.empty(len(first), dtype=np.int64)
    place[np.argsort(first, kind="stable")] = np.arange(len(first))
    return place[inverse]


def table_after(first: pa.Table, second: pa.Table) -> pa.Table:
    """Return the rows of two tables with the columns of both, in the types of the first."""
    for place, name in enumerate(second.column_names):
        wanted = first.schema.field(name).type if name in first.column_names else pa.null()
        if not pa.types.is_null(wanted):
            second = second.set_column(place, name, _cast(second.column(name), wanted))
    return pa.concat_tables([first, second], promote_options="default")


def _cast(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray | pa.Array:
    try:
        is_coded = pa.types.is_dictionary(column.type)
        return (column.cast(column.type.value_type) if is_coded else column).cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.nulls(len(column), wanted)


NO_LABEL = -1
METADATA_PREFIX = "meta."
GROUP = "group"


class Split(StrEnum):
    """What a sample is for."""

    TRAIN = "train"
    VALIDATION = "validation"
    TEST = "test"
    POOL = "pool"
    SYNTHETIC = "synthetic"


SPLIT_ORDER: tuple[Split, ...] = tuple(Split)


class Task(StrEnum):
    """How many labels a sample can have."""

    SINGLE_LABEL = "single-label"
    MULTI_LABEL = "multi-label"


@dataclass(frozen=True, kw_only=True)
class RawSample:
    """One sample as its source tells it, before anything was checked.

    Args:
        key: where it stands in the source (row number, file name); shown to people, unique in the source.
        location: where its image is (path, URL, or either with `#bytes=offset-length`); None without an image.
        data: the encoded image when the source holds it itself and no location can point to it.
        labels: true labels as given; empty for an unlabelled sample.
        split: the split as given, or None.
        predictions: predicted labels as given, or None.
        probabilities: probability by class name, or None.
        metadata: free columns.
        stamp: as long as it stays the same, the image at the location does; None where nothing says so.
        reason: why the sample is set aside, by its source or because its image is of no use; empty if it is not.
        detail: more on that, for people.
    """

    key: str
    location: str | None = None
    data: bytes | None = field(default=None, repr=False)
    labels: tuple[str, ...] = ()
    split: str | None = None
    predictions: tuple[str, ...] | None = None
    probabilities: Mapping[str, float] | None = None
    metadata: Mapping[str, str | int | float | bool | None] = field(default_factory=dict)
    stamp: str | None = None
    reason: str = ""
    detail: str = ""

    def set_aside(self, reason: str, detail: str) -> "RawSample":
        """Return what is kept of a sample that is of no use."""
        return RawSample(key=self.key, location=self.location, reason=reason, detail=detail)


@dataclass(frozen=True, kw_only=True)
class ExaminedSample:
    """A sample whose image was read, hashed and found usable.

    Args:
        raw: the sample as given.
        content_hash: 32 hexadecimal digits over the encoded image, or over the key when there is none.
        width: pixels after orientation, 0 without an image; so is the height.
        notes: what had to be handled, for example `exif-rotated` or `cmyk`.
        moment: when the image was taken and by which camera, 0 if it does not say.
    """

    raw: RawSample
    content_hash: str
    width: int = 0
    height: int = 0
    notes: tuple[str, ...] = ()
    moment: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Dataset:
    """Samples in a fixed order, as columns.

    Args:
        class_names: the classes, in the order of codes and of probability columns.
        task: single-label or multi-label.
        table: one row a sample. Columns: `sample_id`, `content_hash`, `location` (string or null), `key`, `split` (int8, position
            in `SPLIT_ORDER`), `label` (int32, -1 unlabelled; multi-label: list<int32> column `labels` instead, null unlabelled),
            `width`, `height`, and metadata columns whose names start with `meta.`. Where groups are known, `group` (string, null
            for a sample on its own).
        predictions: predicted class [n] (single-label; -1 where unknown), or None. Multi-label predictions follow from
            probabilities and thresholds, or from `predicted_matrix`.
        predicted_matrix: predicted labels [n, c] of a multi-label task that has no probabilities.
        probabilities: probability [n, c], or None; may be memory-mapped.
        thresholds: multi-label decision threshold of every class [c], or None.
        given_labels: of rows whose label people corrected, the classes that the source gives.
    """

    class_names: tuple[str, ...]
    task: Task
    table: pa.Table
    predictions: IntArray | None = None
    predicted_matrix: BoolArray | None = None
    probabilities: FloatArray | None = None
    thresholds: FloatArray | None = None
    given_labels: Mapping[int, tuple[str, ...] | None] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return the number of samples."""
        return int(self.table.num_rows)

    @property
    def n_classes(self) -> int:
        return len(self.class_names)

    @cached_property
    def splits(self) -> AnyArray:
        """Return the position of every sample's split in `SPLIT_ORDER` [n]."""
        return self._numbers("split", np.int8)

    @cached_property
    def groups(self) -> IntArray:
        """Return the group of every sample as a number [n]; samples of the same content are always in one group."""
        named = self.table.column(GROUP) if GROUP in self.table.column_names else None
        return group_codes(self.table.column("content_hash"), named)

    @cached_property
    def labels(self) -> IntArray:
        """Return the class of every sample [n], -1 where unlabelled; single-label only."""
        if self.task is not Task.SINGLE_LABEL:
            raise DataError(
                "A multi-label data set has no single label per sample.",
                fix="Read label_matrix instead.",
            )
        return self._numbers("label", np.int64)

    @cached_property
    def label_matrix(self) -> BoolArray:
        """Return which labels every sample has [n, c]; all False where unlabelled."""
        matrix = np.zeros((len(self), self.n_classes), dtype=np.bool_)
        if self.task is Task.SINGLE_LABEL:
            known = np.flatnonzero(self.labels >= 0)
            matrix[known, self.labels[known]] = True
            return matrix
        column = self.table.column("labels").combine_chunks()
        counts = np.asarray(column.value_lengths().fill_null(0))
        matrix[np.repeat(np.arange(len(self)), counts), np.asarray(column.flatten())] = True
        return matrix

    @cached_property
    def is_labelled(self) -> BoolArray:
        """Return which samples have a true label [n]."""
        if self.task is Task.SINGLE_LABEL:
            return self.labels >= 0
        return np.asarray(self.table.column("labels").combine_chunks().is_valid())

    @property
    def has_predictions(self) -> bool:
        """Return whether anything is known of what the classifier said."""
        return (
            self.predictions is not None
            or self.predicted_matrix is not None
            or self.probabilities is not None
        )

    @property
    def has_images(self) -> bool:
        """Return whether at least one sample has an image."""
        return bool(self.table.column("location").null_count < len(self))

    def rows_of(self, *splits: Split) -> IntArray:
        """Return the rows of the given splits, in order."""
        return np.flatnonzero(np.isin(self.splits, [SPLIT_ORDER.index(split) for split in splits]))

    def sample_ids(self, rows: IntArray | None = None) -> list[str]:
        """Return the ids of the given rows (all by default)."""
        return self._strings("sample_id", rows)

    def content_hashes(self, rows: IntArray | None = None) -> list[str]:
        """Return the content hashes of the given rows (all by default)."""
        return self._strings("content_hash", rows)

    def locations(self, rows: IntArray | None = None) -> list[str | None]:
        """Return where the images of the given rows are (all by default)."""
        column = self.table.column("location")
        return list((column if rows is None else column.take(pa.array(rows))).to_pylist())

    @cached_property
    def metadata_names(self) -> tuple[str, ...]:
        """Return the names of the free columns."""
        return tuple(
            name[len(METADATA_PREFIX) :]
            for name in self.table.column_names
            if name.startswith(METADATA_PREFIX)
        )

    def metadata(self, name: str) -> pa.ChunkedArray:
        """Return one free column."""
        if name not in self.metadata_names:
            raise DataError(
                f"There is no metadata column {name!r}.",
                given=name,
                fix=f"Choose one of {list(self.metadata_names)}.",
            )
        return self.table.column(METADATA_PREFIX + name)

    def class_code(self, name: str) -> int:
        if name not in self.class_names:
            raise DataError(
                f"There is no class {name!r}.",
                given=name,
                fix=f"Choose one of {list(self.class_names)}.",
            )
        return self.class_names.index(name)

    def with_predictions(
        self,
        *,
        predictions: IntArray | None = None,
        predicted_matrix: BoolArray | None = None,
        probabilities: FloatArray | None = None,
        thresholds: FloatArray | None = None,
    ) -> "Dataset":
        """Return the same samples with other predictions; whatever is not given is forgotten."""
        return replace(
            self,
            predictions=predictions,
            predicted_matrix=predicted_matrix,
            probabilities=probabilities,
            thresholds=thresholds,
        )

    def with_groups(self, groups: Sequence[str | None] | pa.Array) -> "Dataset":
        """Return the same samples with other names of groups; null for a sample on its own."""
        names = self.table.column_names
        table = self.table.drop_columns([GROUP]) if GROUP in names else self.table
        return replace(self, table=table.append_column(GROUP, pa.array(groups, pa.string())))

    def with_metadata(
        self, columns: Mapping[str, Sequence[object] | AnyArray | pa.Array]
    ) -> "Dataset":
        """Return the same samples with further free columns; a column of the same name is replaced."""
        table = self.table
        for name, values in columns.items():
            column = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
            full = METADATA_PREFIX + name
            place = table.column_names.index(full) if full in table.column_names else None
            table = (
                table.append_column(full, column)
                if place is None
                else table.set_column(place, full, column)
            )
        return replace(self, table=table)

    def joined(self, other: "Dataset") -> "Dataset":
        """Return these samples, as they are, followed by those of another data set of the same classes.

        Free columns that only one of them has are null in the other; those of both have the types of the first, and are null where
        they do not fit. Predictions that only one has are unknown in the other: -1, NaN, no label. Thresholds are the first's.
        """
        if (self.class_names, self.task) != (other.class_names, other.task):
            classes = list(self.class_names), list(other.class_names)
            raise DataError("Only data sets of the same classes can be joined.", given=classes)
        both = set(self.sample_ids()) & set(other.sample_ids())
        if both:
            what, given = f"{len(both)} samples are in both data sets.", sorted(both)[:5]
            raise DataError(what, given=given, fix="Leave them out of one.")
        return replace(
            self,
            table=table_after(self.table, other.table),
            predictions=_rows_after(self, other, "predictions", NO_LABEL),
            predicted_matrix=_rows_after(self, other, "predicted_matrix", False),  # noqa: FBT003 - a value of the array
            probabilities=_rows_after(self, other, "probabilities", np.nan),
        )

    def with_labels(
        self, rows: IntArray, labels: IntArray | Sequence[int] | Sequence[Sequence[int] | None]
    ) -> "Dataset":
        """Return the same samples with other labels for some rows; predictions stay.

        Args:
            rows: the rows meant, no row twice.
            labels: the class code of each, -1 to take its label away; multi-label: its class codes, None to take its labels away.
        """
        if len(rows) != len(labels) or len(np.unique(rows)) != len(rows):
            counts = len(rows), len(labels)
            raise DataError("Give one label a row, and no row twice.", given=counts)
        name, lowest = ("label", NO_LABEL) if self.task is Task.SINGLE_LABEL else ("labels", 0)
        old = self.table.column(name).combine_chunks()
        new = pa.array(labels, old.type)
        codes = np.asarray(new if self.task is Task.SINGLE_LABEL else new.flatten())
        unknown = codes[(codes < lowest) | (codes >= self.n_classes)]
        if len(unknown):
            raise DataError("A label is no class code.", given=unknown[:5].tolist())
        places = np.arange(len(self))
        places[rows] = len(self) + np.arange(len(rows))
        merged = pa.concat_arrays([old, new]).take(pa.array(places))
        return replace(
            self, table=self.table.set_column(self.table.column_names.index(name), name, merged)
        )

    def _numbers(self, name: str, kind: type[np.generic]) -> AnyArray:
        return np.asarray(self.table.column(name).combine_chunks()).astype(kind, copy=False)

    def _strings(self, name: str, rows: IntArray | None) -> list[str]:
        column = self.table.column(name)
        return list((column if rows is None else column.take(pa.array(rows))).to_pylist())


def _rows_after(first: Dataset, second: Dataset, name: str, unknown: float) -> Any:
    arrays = [getattr(dataset, name) for dataset in (first, second)]
    known = next((array for array in arrays if array is not None), None)
    if known is None:
        return None
    for place, dataset in enumerate((first, second)):
        if arrays[place] is None:
            arrays[place] = np.full((len(dataset), *known.shape[1:]), unknown, dtype=known.dtype)
    return np.concatenate(arrays)


def dataset_from_columns(
    *,
    class_names: Sequence[str],
    labels: Sequence[int] | IntArray | None = None,
    label_lists: Sequence[Sequence[int] | None] | None = None,
    splits: Sequence[str] | None = None,
    sample_ids: Sequence[str] | None = None,
    locations: Sequence[str | None] | None = None,
    content_hashes: Sequence[str] | None = None,
    metadata: Mapping[str, Sequence[object] | AnyArray] | None = None,
    groups: Sequence[str | None] | None = None,
    predictions: IntArray | None = None,
    predicted_matrix: BoolArray | None = None,
    probabilities: FloatArray | None = None,
    thresholds: FloatArray | None = None,
) -> Dataset:
    """Build a data set from columns in memory; give `labels` (single-label) or `label_lists` (multi-label).

    >>> data = dataset_from_columns(class_names=["cat", "dog"], labels=[0, 1, 1], splits=["train", "test", "test"])
    >>> len(data), data.rows_of(Split.TEST).tolist()
    (3, [1, 2])
    """
    if (labels is None) == (label_lists is None):
        raise DataError("Give either labels (single-label) or label_lists (multi-label).")
    if labels is not None:
        target = {"label": pa.array(np.asarray(labels), pa.int32())}
    else:
        listed = [None if item is None else list(item) for item in label_lists or []]
        target = {"labels": pa.array(listed, pa.list_(pa.int32()))}
    n_samples = len(next(iter(target.values())))
    numbered = [f"{number:032x}" for number in range(n_samples)]
    ids = numbered if sample_ids is None else list(sample_ids)
    hashes = ids if content_hashes is None else list(content_hashes)
    places = [None] * n_samples if locations is None else list(locations)
    split_names = [Split.TEST.value] * n_samples if splits is None else list(splits)
    sizes = pa.array(np.zeros(n_samples), pa.int32())
    columns: dict[str, pa.Array] = {
        "sample_id": pa.array(ids, pa.string()),
        "content_hash": pa.array(hashes, pa.string()),
        "location": pa.array(places, pa.string()),
        "key": pa.array(ids, pa.string()),
        "split": pa.array([SPLIT_ORDER.index(Split(name)) for name in split_names], pa.int8()),
        **target,
        "width": sizes,
        "height": sizes,
        **({} if groups is None else {GROUP: pa.array(groups, pa.string())}),
        **{METADATA_PREFIX + name: pa.array(values) for name, values in (metadata or {}).items()},
    }
    return Dataset(
        class_names=tuple(class_names),
        task=Task.SINGLE_LABEL if labels is not None else Task.MULTI_LABEL,
        table=pa.table(columns),
        predictions=predictions,
        predicted_matrix=predicted_matrix,
        probabilities=probabilities,
        thresholds=thresholds,
    )


Names = tuple[str, ...] | None
"""Names of classes; None for a sample without a label, which is not the same as one that has none of several labels."""


def corrected(dataset: Dataset, labels: Mapping[int, Names]) -> Dataset:
    """Return the same samples with labels that people corrected; what the source gives is remembered.

    Args:
        dataset: the samples.
        labels: the right classes of some rows; None for a sample that is of no use.
    """
    before = {row: names_at(dataset, row) for row in labels if row not in dataset.given_labels}
    return replace(_with_named(dataset, labels), given_labels={**before, **dataset.given_labels})


def as_given(dataset: Dataset) -> Dataset:
    """Return the same samples with the labels of their source.

    >>> from weakspot.core.dataset import dataset_from_columns
    >>> given = dataset_from_columns(class_names=["cat", "dog"], labels=[0, 1])
    >>> changed = corrected(given, {0: ("dog",), 1: None})
    >>> changed.labels.tolist(), as_given(changed).labels.tolist()
    ([1, -1], [0, 1])
    """
    return replace(_with_named(dataset, dataset.given_labels), given_labels={})


def names_at(dataset: Dataset, row: int) -> Names:
    """Return the classes of a sample by its label."""
    if not dataset.is_labelled[row]:
        return None
    if dataset.task is Task.SINGLE_LABEL:
        return (dataset.class_names[int(dataset.labels[row])],)
    return tuple(dataset.class_names[code] for code in np.flatnonzero(dataset.label_matrix[row]))


def _with_named(dataset: Dataset, labels: Mapping[int, Names]) -> Dataset:
    if not labels:
        return dataset
    rows = np.fromiter(labels, dtype=np.int64)
    codes = [
        None if names is None else [dataset.class_code(name) for name in names]
        for names in labels.values()
    ]
    if dataset.task is Task.MULTI_LABEL:
        return dataset.with_labels(rows, codes)
    return dataset.with_labels(rows, [one[0] if one else NO_LABEL for one in codes])


def identities(dataset: Dataset, rows: IntArray) -> list[str]:
    """Return by what samples are known again: their images or, where there is none, their keys.

    The content hash of a sample without an image covers its prediction: another classifier would make another sample of it.
    """
    hashes = dataset.content_hashes(rows)
    if not dataset.table.column("location").null_count:
        return hashes
    places = dataset.locations(rows)
    keys = dataset.table.column("key").take(pa.array(rows)).to_pylist()
    return [
        hashed if place is not None else hashlib.sha256(str(key).encode()).hexdigest()
        for hashed, place, key in zip(hashes, places, keys, strict=True)
    ]
