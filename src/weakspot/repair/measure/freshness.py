"""Samples that a repair may be measured on."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weakspot.core.arrays import BoolArray, IntArray
from weakspot.core.dataset import Dataset
from weakspot.core.errors import DataError, NotEnoughDataError
from weakspot.core.samples import SampleSet
from weakspot.repair.measure.predictions import is_measurable


def untouched(samples: SampleSet, used: Sequence[IntArray]) -> SampleSet:
    """Return the labelled samples with a known result whose image is not among the used rows, each image once.

    Images that belong to a group of a used row are left out too, unless that would leave none.

    Args:
        samples: what to measure on.
        used: rows that were trained on, or that slices were found, confirmed or thresholded on.

    Raises:
        DataError: if a used row is itself to be measured on.
        NotEnoughDataError: if nothing is left.
    """
    dataset, rows = samples.dataset, samples.rows
    taken = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *used]))
    is_taken = np.isin(rows, taken)
    if is_taken.any():
        raise DataError(
            "A repair cannot be measured on samples that were used to make it.",
            where=samples.name,
            given=f"{int(is_taken.sum())} of {len(rows)} samples",
            fix="Measure on the test split.",
        )
    is_fresh = ~_has_content_of(dataset, rows, taken)
    left_out = "repeated images"
    is_apart = is_fresh & ~np.isin(dataset.groups[rows], dataset.groups[taken])
    if (is_apart & is_measurable(samples)).any() and not np.array_equal(is_apart, is_fresh):
        is_fresh, left_out = is_apart, "images of groups that were used"
    kept = _each_once(dataset, rows[is_fresh & is_measurable(samples)])
    if not len(kept):
        raise NotEnoughDataError(
            "No labelled sample is left to measure the repair on.", where=samples.name
        )
    n_repeated = len(rows) - int(is_fresh.sum())
    return samples.only(
        kept,
        name=f"{samples.name} ({left_out} left out: {n_repeated})" if n_repeated else samples.name,
    )


def _has_content_of(dataset: Dataset, rows: IntArray, others: IntArray) -> BoolArray:
    column = dataset.table.column("content_hash").combine_chunks()
    found = pc.is_in(column.take(pa.array(rows)), value_set=column.take(pa.array(others)))
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.bool_)


def _each_once(dataset: Dataset, rows: IntArray) -> IntArray:
    """Return the rows without those whose image an earlier one shows."""
    coded = (
        dataset.table.column("content_hash")
        .take(pa.array(rows))
        .combine_chunks()
        .dictionary_encode()
    )
    first = np.unique(np.asarray(coded.indices), return_index=True)[1]
    return np.asarray(np.sort(rows[first]), dtype=np.int64)
