"""Reading embeddings and the names of their samples from `.npy`, `.npz` and Parquet files."""

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
NPZ_EMBEDDINGS = ("embeddings", "vectors")
NPZ_NAMES = ("ids", "names", "keys", "paths")
_RANK = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class EmbeddingFile:
    """What a file of embeddings holds.

    Args:
        embeddings: [n, d]; may be memory-mapped.
        names: one a row, or None when the file does not say.
    """

    embeddings: AnyArray
    names: tuple[str, ...] | None


def read_embedding_file(
    path: Path, *, ids: Path | None = None, embedding_column: str = "", id_column: str = ""
) -> EmbeddingFile:
    """Read a file of embeddings; nothing in it is ever run.

    Args:
        path: `.npy`, `.npz` or `.parquet`.
        ids: text file with one name a line; takes the place of names in the file.
        embedding_column: Parquet column of embeddings, or the `.npz` array.
        id_column: Parquet column of names, or the `.npz` array.

    Raises:
        DataError: if it cannot be read, or embeddings and names do not fit together.
    """
    readers = {
        ".npy": _read_npy,
        ".npz": _read_npz,
        ".parquet": _read_parquet,
        ".pq": _read_parquet,
    }
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise DataError(
            "Embeddings are read from .npy, .npz or .parquet files.",
            where=str(path),
            given=path.suffix,
        )
    try:
        found = reader(path, embedding_column, id_column)
        names = found.names if ids is None else tuple(ids.read_text(encoding="utf-8").splitlines())
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise DataError(
            f"The file of embeddings cannot be read: {error}.",
            where=str(path),
            fix="Write it again.",
        ) from error
    return _check(EmbeddingFile(embeddings=found.embeddings, names=names), path)


def _check(file: EmbeddingFile, path: Path) -> EmbeddingFile:
    if (
        file.embeddings.ndim != _RANK
        or not np.issubdtype(file.embeddings.dtype, np.floating)
        or not file.embeddings.shape[1]
    ):
        given = f"{file.embeddings.dtype}, shape {file.embeddings.shape}"
        raise DataError(
            "Embeddings must be floating-point numbers of shape [n, d].",
            where=str(path),
            given=given,
        )
    if file.names is None:
        return file
    if len(file.names) != len(file.embeddings):
        raise DataError(
            f"There are {len(file.names)} names for {len(file.embeddings)} embeddings.",
            where=str(path),
        )
    doubled = [name for name, count in Counter(file.names).items() if count > 1][:3]
    if doubled:
        raise DataError(
            "Some names have more than one embedding.",
            where=str(path),
            given=doubled,
            fix="Keep one row a name.",
        )
    return file


def _read_npy(path: Path, embedding_column: str, id_column: str) -> EmbeddingFile:
    del embedding_column, id_column
    return EmbeddingFile(embeddings=np.load(path, mmap_mode="r", allow_pickle=False), names=None)


def _read_npz(path: Path, embedding_column: str, id_column: str) -> EmbeddingFile:
    with np.load(path, allow_pickle=False) as stored:
        embeddings = _one_of(
            stored.files, (embedding_column,) if embedding_column else NPZ_EMBEDDINGS
        )
        if embeddings is None:
            raise DataError(
                "The file has no array of embeddings.",
                where=str(path),
                given=stored.files,
                fix="Call it `embeddings`.",
            )
        names = _one_of(stored.files, (id_column,) if id_column else NPZ_NAMES)
        return EmbeddingFile(
            embeddings=stored[embeddings],
            names=None
            if names is None
            else tuple(str(name) for name in stored[names].ravel().tolist()),
        )


def _read_parquet(path: Path, embedding_column: str, id_column: str) -> EmbeddingFile:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pq.read_schema(path)
    lists = [
        field.name
        for field in schema
        if pa.types.is_list(field.type) or pa.types.is_fixed_size_list(field.type)
    ]
    column = embedding_column or (lists[0] if len(lists) == 1 else "")
    if column not in lists:
        raise DataError(
            "It is not clear which column holds the embeddings.",
            where=str(path),
            given=embedding_column or lists,
            fix="Set embedder.options.embedding_column to a column of lists of numbers.",
        )
    names = _one_of(schema.names, (id_column,) if id_column else NAME_COLUMNS)
    if names is None:
        raise DataError(
            "There is no column that names the samples.",
            where=str(path),
            given=schema.names,
            fix="Set embedder.options.id_column.",
        )
    table = pq.read_table(path, columns=[column, names])
    return EmbeddingFile(
        embeddings=_matrix(table.column(column), path),
        names=tuple(str(name) for name in table.column(names).to_pylist()),
    )


def _matrix(column: Any, path: Path) -> AnyArray:
    """Turn a list column into [n, d]; null rows become NaN."""
    whole = column.combine_chunks()
    valid = np.asarray(whole.is_valid())
    lengths = np.unique(np.asarray(whole.drop_null().value_lengths()))
    if len(lengths) != 1:
        raise DataError(
            "The embeddings differ in length.", where=str(path), given=lengths.tolist()[:5]
        )
    values = np.asarray(whole.drop_null().flatten())
    matrix = np.full(
        (len(whole), int(lengths[0])),
        np.nan,
        dtype=values.dtype if values.dtype.kind == "f" else np.float32,
    )
    matrix[valid] = values.reshape(-1, int(lengths[0]))
    return matrix


def _one_of(present: Sequence[str], wanted: Sequence[str]) -> str | None:
    return next((name for name in wanted if name in present), None)
