"""Rows of a data set as requests to a model: each different picture once, only those that can be read."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import AnyArray, BoolArray, IntArray
from weakspot.core.dataset import Dataset
from weakspot.embed.encode import PictureRequest

CHUNK_ROWS = 4096


def rows_to_compute(dataset: Dataset, keys: AnyArray, is_missing: BoolArray) -> IntArray:
    """Return the rows [m] whose pictures have to go through the model: missing, with a picture, one row for each content."""
    has_picture = np.asarray(dataset.table.column("location").is_valid().combine_chunks())
    rows = np.flatnonzero(is_missing & has_picture)
    _, first = np.unique(keys[rows], return_index=True)
    return rows[np.sort(first)]


def requests_for(dataset: Dataset, rows: IntArray) -> Iterator[PictureRequest]:
    """Yield requests whose positions are the rows, reading the data set chunk by chunk."""
    for start in range(0, len(rows), CHUNK_ROWS):
        chunk = rows[start : start + CHUNK_ROWS]
        picked = dataset.table.select(["location", "content_hash"]).take(pa.array(chunk))
        columns = (chunk.tolist(), picked.column("location").to_pylist(), picked.column("content_hash").to_pylist())
        for row, location, content_hash in zip(*columns, strict=True):
            yield PictureRequest(position=row, location=location, content_hash=content_hash)
