"""By what a sample is known again: in another table, another project, or with another classifier."""

import hashlib

import pyarrow as pa

from weakspot.core.arrays import IntArray
from weakspot.core.dataset import Dataset


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
