"""Reading vectors and the names of their samples from `.npy`, `.npz` and Parquet files."""

import zipfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from weakspot.core.arrays import AnyArray
from weakspot.core.errors import DataError

NAME_COLUMNS = ("sample_id", "id", "key", "path", "location", "file_name")
NPZ_VECTORS = ("vectors", "embeddings")
NPZ_NAMES = ("ids", "names", "keys", "paths")
_RANK = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class VectorFile:
    """What a file of vectors holds.

    Args:
        vectors: [n, d]; may be memory-mapped.
        names: one a row, or None when the file does not say.
    """

    vectors: AnyArray
    names: tuple[str, ...] | None


def read_vector_file(path: Path, *, ids: Path | None = None, vector_column: str = "", id_column: str = "") -> VectorFile:
    """Read a file of vectors; nothing in it is ever run.

    Args:
        path: `.npy`, `.npz` or `.parquet`.
        ids: text file with one name a line; takes the place of names in the file.
        vector_column: Parquet column of vectors, or the `.npz` array.
        id_column: Parquet column of names, or the `.npz` array.

    Raises:
        DataError: if it cannot be read, or vectors and names do not fit together.
    """
    readers = {".npy": _read_npy, ".npz": _read_npz, ".parquet": _read_parquet, ".pq": _read_parquet}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise DataError("Vectors are read from .npy, .npz or .parquet files.", where=str(path), given=path.suffix)
    try:
        found = reader(path, vector_column, id_column)
        names = found.names if ids is None else tuple(ids.read_text(encoding="utf-8").splitlines())
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise DataError(f"The file of vectors cannot be read: {error}.", where=str(path), fix="Write it again.") from error
    return _checked(VectorFile(vectors=found.vectors, names=names), path)


def _checked(file: VectorFile, path: Path) -> VectorFile:
    if file.vectors.ndim != _RANK or not np.issubdtype(file.vectors.dtype, np.floating) or not file.vectors.shape[1]:
        given = f"{file.vectors.dtype}, shape {file.vectors.shape}"
        raise DataError("Vectors must be floating-point numbers of shape [n, d].", where=str(path), given=given)
    if file.names is None:
        return file
    if len(file.names) != len(file.vectors):
        raise DataError(f"There are {len(file.names)} names for {len(file.vectors)} vectors.", where=str(path))
    doubled = [name for name, count in Counter(file.names).items() if count > 1][:3]
    if doubled:
        raise DataError("Some names have more than one vector.", where=str(path), given=doubled, fix="Keep one row a name.")
    return file


def _read_npy(path: Path, vector_column: str, id_column: str) -> VectorFile:
    del vector_column, id_column
    return VectorFile(vectors=np.load(path, mmap_mode="r", allow_pickle=False), names=None)


def _read_npz(path: Path, vector_column: str, id_column: str) -> VectorFile:
    with np.load(path, allow_pickle=False) as stored:
        vectors = _one_of(stored.files, (vector_column,) if vector_column else NPZ_VECTORS)
        if vectors is None:
            raise DataError("The file has no array of vectors.", where=str(path), given=stored.files, fix="Call it `vectors`.")
        names = _one_of(stored.files, (id_column,) if id_column else NPZ_NAMES)
        return VectorFile(
            vectors=stored[vectors], names=None if names is None else tuple(str(name) for name in stored[names].ravel().tolist())
        )


def _read_parquet(path: Path, vector_column: str, id_column: str) -> VectorFile:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pq.read_schema(path)
    lists = [field.name for field in schema if pa.types.is_list(field.type) or pa.types.is_fixed_size_list(field.type)]
    column = vector_column or (lists[0] if len(lists) == 1 else "")
    if column not in lists:
        raise DataError(
            "It is not clear which column holds the vectors.",
            where=str(path),
            given=vector_column or lists,
            fix="Set embedder.options.vector_column to a column of lists of numbers.",
        )
    names = _one_of(schema.names, (id_column,) if id_column else NAME_COLUMNS)
    if names is None:
        raise DataError(
            "There is no column that names the samples.", where=str(path), given=schema.names, fix="Set embedder.options.id_column."
        )
    table = pq.read_table(path, columns=[column, names])
    return VectorFile(
        vectors=_matrix(table.column(column), path), names=tuple(str(name) for name in table.column(names).to_pylist())
    )


def _matrix(column: Any, path: Path) -> AnyArray:
    """Turn a list column into [n, d]; null rows become NaN."""
    whole = column.combine_chunks()
    valid = np.asarray(whole.is_valid())
    lengths = np.unique(np.asarray(whole.drop_null().value_lengths()))
    if len(lengths) != 1:
        raise DataError("The vectors differ in length.", where=str(path), given=lengths.tolist()[:5])
    values = np.asarray(whole.drop_null().flatten())
    matrix = np.full((len(whole), int(lengths[0])), np.nan, dtype=values.dtype if values.dtype.kind == "f" else np.float32)
    matrix[valid] = values.reshape(-1, int(lengths[0]))
    return matrix


def _one_of(present: Sequence[str], wanted: Sequence[str]) -> str | None:
    return next((name for name in wanted if name in present), None)
