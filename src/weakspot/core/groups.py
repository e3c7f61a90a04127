"""Samples that belong together: images of one object, patient, video or burst, and copies of the same image.

What a classifier says of two images of one object is one observation rather than two, so halves keep groups whole and tests
count them.
"""

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import IntArray


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
