"""The data set of a planted world, built column by column."""

import hashlib

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import AnyArray
from weakspot.core.dataset import METADATA_PREFIX, Dataset, Task
from weakspot.testing.planted_factors import DrawnRows
from weakspot.testing.scenes import FACTOR_NAMES, FACTORS, KINDS


def world_table(rows: DrawnRows, *, classes: tuple[str, ...], is_multi_label: bool, seed: int) -> Dataset:
    """Return drawn rows as a data set without outcomes."""
    n_rows = len(rows.codes)
    prefix = hashlib.sha256(f"planted {seed} {classes} {is_multi_label}".encode()).hexdigest()[:16]
    ids = pa.array([f"{prefix}{row:016x}" for row in range(n_rows)], pa.string())
    columns: dict[str, pa.Array] = {
        "sample_id": ids,
        "content_hash": ids,
        "location": pa.nulls(n_rows, pa.string()),
        "key": ids,
        "split": pa.array(rows.splits, pa.int8()),
    }
    if is_multi_label:
        ends = np.concatenate([[0], np.cumsum(rows.labels.sum(axis=1))])
        columns["labels"] = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array(np.nonzero(rows.labels)[1], pa.int32()))
    else:
        columns["label"] = pa.array(rows.labels.argmax(axis=1), pa.int32())
    columns["width"] = columns["height"] = pa.array(np.zeros(n_rows, dtype=np.int32))
    columns[METADATA_PREFIX + "kind"] = _words(rows.codes[:, 0], _mask_names())
    for place, name in enumerate(FACTOR_NAMES[1:], start=1):
        columns[METADATA_PREFIX + name] = _words(rows.codes[:, place], FACTORS[name])
    columns[METADATA_PREFIX + "label_is_wrong"] = pa.array((rows.labels != rows.truth).any(axis=1))
    task = Task.MULTI_LABEL if is_multi_label else Task.SINGLE_LABEL
    return Dataset(class_names=classes, task=task, table=pa.table(columns))


def _words(codes: AnyArray, names: tuple[str, ...]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(names)).cast(pa.string())


def _mask_names() -> tuple[str, ...]:
    return tuple("+".join(kind for place, kind in enumerate(KINDS) if mask >> place & 1) for mask in range(1 << len(KINDS)))
