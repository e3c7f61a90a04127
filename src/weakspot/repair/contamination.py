"""Refusal of data that would make a repair look better than it is."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weakspot.core.arrays import BoolArray, IntArray
from weakspot.core.dataset import SPLIT_ORDER, Dataset, Split
from weakspot.core.errors import DataError
from weakspot.core.generated import MAKER, MARK, is_generated

MOST_NAMED = 5


def refuse_contamination(
    dataset: Dataset,
    *,
    training: IntArray,
    pool: IntArray | None,
    synthetic: IntArray | None,
    verifying: IntArray,
) -> None:
    """Refuse a repair whose training material is also what slices are verified or the repair is measured on.

    Training images that are repeated under another row of the verifying samples are not refused: they are left out of what is
    measured, and counted there. Pool and generated images are added on purpose, so for them it is a mistake to be mended.

    Args:
        dataset: all samples.
        training: rows that the classifier was trained on.
        pool: rows that may be added.
        synthetic: generated rows that may be added.
        verifying: rows of the validation and test splits.

    Raises:
        DataError: if a training row is a verifying row, if a pool or generated image is also a verifying one, or if a
            generated image stands among the verifying samples. It names the samples.
    """
    nothing = np.zeros(0, dtype=np.int64)
    _refuse(
        dataset,
        training[np.isin(training, verifying)],
        "Samples that were trained on are also in the validation or test split",
        "Give every sample one split.",
    )
    _refuse(
        dataset,
        verifying[_is_generated(dataset, verifying)],
        "Generated samples are in the validation or test split",
        f"Give generated samples the split {Split.SYNTHETIC.value!r}, or leave them out; only real samples can verify.",
    )
    for rows, name in ((pool, "pool samples"), (synthetic, "generated samples")):
        added = nothing if rows is None else rows
        _refuse(
            dataset,
            added[_is_among(dataset, added, verifying)],
            f"Images of {name} are also in the validation or test split",
            "Take them out of one of the two and ingest again; a repair that saw an image cannot be measured on it.",
        )


def _refuse(dataset: Dataset, rows: IntArray, what: str, fix: str) -> None:
    if not len(rows):
        return
    named = rows[:MOST_NAMED]
    keys = dataset.table.column("key").take(pa.array(named)).to_pylist()
    splits = [SPLIT_ORDER[code].value for code in dataset.splits[named].tolist()]
    given = [f"{key} ({split})" for key, split in zip(keys, splits, strict=True)]
    more = [f"and {len(rows) - MOST_NAMED} more"] if len(rows) > MOST_NAMED else []
    raise DataError(
        f"{what}: {len(rows)} in all.", where="the data set", given=[*given, *more], fix=fix
    )


def _is_among(dataset: Dataset, rows: IntArray, others: IntArray) -> BoolArray:
    if not len(rows) or not len(others):
        return np.zeros(len(rows), dtype=np.bool_)
    column = dataset.table.column("content_hash")
    found = pc.is_in(
        column.take(pa.array(rows)).combine_chunks(),
        value_set=column.take(pa.array(others)).combine_chunks(),
    )
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.bool_) | np.isin(rows, others)


def _is_generated(dataset: Dataset, rows: IntArray) -> BoolArray:
    found = np.asarray(dataset.splits[rows] == SPLIT_ORDER.index(Split.SYNTHETIC), dtype=np.bool_)
    names = [name for name in (MARK, MAKER) if name in dataset.metadata_names]
    if not names or not len(rows):
        return found
    columns = [dataset.metadata(name).take(pa.array(rows)).combine_chunks() for name in names]
    coded = [column.dictionary_encode(null_encoding="encode") for column in columns]
    values = [column.dictionary.to_pylist() for column in coded]
    kinds, kind_of = np.unique(
        np.stack([np.asarray(column.indices) for column in coded]), axis=1, return_inverse=True
    )
    marks = [
        {name: value[place] for name, value, place in zip(names, values, kind, strict=True)}
        for kind in kinds.T.tolist()
    ]
    return (
        found | np.array([is_generated(one) for one in marks], dtype=np.bool_)[kind_of.reshape(-1)]
    )
