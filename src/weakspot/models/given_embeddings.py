"""Embeddings that the user already has, from `.npy`, `.npz` and Parquet files, aligned to samples by name.

Phrases go through another embedder's text side.
"""

import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow.compute as pc
from PIL import Image

from weakspot.core.arrays import BLOCK_ROWS, AnyArray, FloatArray, IntArray, unit_rows
from weakspot.core.dataset import Dataset
from weakspot.core.errors import DataError, ModelError
from weakspot.core.registry import Sendable, part_class
from weakspot.core.roles import Embedder
from weakspot.models.packages import file_sha256

NAME_COLUMNS = ("sample_id", "id", "key", "path", "location", "file_name")
NPZ_EMBEDDINGS = ("embeddings", "vectors")
NPZ_NAMES = ("ids", "names", "keys", "paths")
_RANK = 2


Named = tuple[AnyArray, tuple[str, ...] | None]
"""Embeddings [n, d], which may be memory-mapped, and one name a row, or None where the file does not say."""


def read_embedding_file(
    path: Path, *, ids: Path | None = None, embedding_column: str = "", id_column: str = ""
) -> Named:
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
        embeddings, names = reader(path, embedding_column, id_column)
        if ids is not None:
            names = tuple(ids.read_text(encoding="utf-8").splitlines())
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise DataError(
            f"The file of embeddings cannot be read: {error}.",
            where=str(path),
            fix="Write it again.",
        ) from error
    _check(embeddings, names, path)
    return embeddings, names


def _check(embeddings: AnyArray, names: tuple[str, ...] | None, path: Path) -> None:
    if (
        embeddings.ndim != _RANK
        or not np.issubdtype(embeddings.dtype, np.floating)
        or not embeddings.shape[1]
    ):
        given = f"{embeddings.dtype}, shape {embeddings.shape}"
        raise DataError(
            "Embeddings must be floating-point numbers of shape [n, d].",
            where=str(path),
            given=given,
        )
    if names is None:
        return
    if len(names) != len(embeddings):
        raise DataError(
            f"There are {len(names)} names for {len(embeddings)} embeddings.",
            where=str(path),
        )
    doubled = [name for name, count in Counter(names).items() if count > 1][:3]
    if doubled:
        raise DataError(
            "Some names have more than one embedding.",
            where=str(path),
            given=doubled,
            fix="Keep one row a name.",
        )


def _read_npy(path: Path, embedding_column: str, id_column: str) -> Named:
    del embedding_column, id_column
    return np.load(path, mmap_mode="r", allow_pickle=False), None


def _read_npz(path: Path, embedding_column: str, id_column: str) -> Named:
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
        listed = None if names is None else stored[names].ravel().tolist()
        return stored[embeddings], None if listed is None else tuple(map(str, listed))


def _read_parquet(path: Path, embedding_column: str, id_column: str) -> Named:
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
    return _matrix(table.column(column), path), tuple(map(str, table.column(names).to_pylist()))


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


MATCH_COLUMNS = ("sample_id", "key", "location", "content_hash")
_N_EXAMPLES = 3


@dataclass(frozen=True, kw_only=True, eq=False)
class AlignedEmbeddings:
    """Given embeddings in the order of a data set.

    Args:
        embeddings: [n, d] unit vectors; rows of NaN where none was given.
        n_missing: how many rows have none.
        matched_by: which column of the data set the names were found in.
    """

    embeddings: FloatArray
    n_missing: int
    matched_by: str


class GivenEmbeddings(Sendable):
    """Embeddings from a `.npy`, `.npz` or Parquet file.

    Args:
        path: the file. `.npz` holds `embeddings` and `ids`; Parquet has a list column of embeddings and a column of names.
        ids: text file with one name a line, for a `.npy` file; without it rows stand in the order of the data set.
        embedding_column: Parquet column of embeddings; found by itself when there is only one list column.
        id_column: Parquet column of names; by default the first of sample_id, id, key, path, location, file_name.
        text: an embedder of the same space, or its `{"name": ..., "options": ...}`, for phrases.
    """

    def __init__(
        self,
        *,
        path: str | Path,
        ids: str | Path | None = None,
        embedding_column: str = "",
        id_column: str = "",
        text: Embedder | Mapping[str, Any] | None = None,
    ) -> None:
        self._path = Path(path)
        self._ids = None if ids is None else Path(ids)
        self._embedding_column = embedding_column
        self._id_column = id_column
        self._text = text

    @cached_property
    def encoder_id(self) -> str:
        if not self._path.is_file():
            raise DataError(
                "The file of embeddings is missing.", where=str(self._path), fix="Correct the path."
            )
        text = "" if self._text_side is None else f"+{self._text_side.encoder_id}"
        return f"given/{self._path.name}@{file_sha256(self._path)[:16]}{text}"

    @property
    def dimension(self) -> int:
        return int(self._file[0].shape[1])

    @property
    def image_side(self) -> int | None:
        return None

    @property
    def has_text(self) -> bool:
        return self._text is not None

    def prepare(self, image: Image.Image) -> AnyArray:
        """Refuse: only the given samples have embeddings."""
        self._refuse(image.size)

    def embed_prepared(self, prepared: Sequence[AnyArray]) -> FloatArray:
        """Refuse: only the given samples have embeddings."""
        self._refuse(len(prepared))

    def embed_texts(self, texts: Sequence[str]) -> FloatArray:
        """Return unit vectors [m, d] of phrases, by the text side."""
        side = self._text_side
        if side is None:
            raise ModelError(
                "These embeddings have no text side.",
                where=str(self._path),
                fix="Set embedder.options.text to the embedder that made them.",
            )
        embeddings = side.embed_texts(texts)
        if embeddings.shape[1] != self.dimension:
            raise ModelError(
                f"The text side gives {embeddings.shape[1]} numbers a phrase, the given embeddings have {self.dimension}.",
                where=str(self._path),
                given=side.encoder_id,
                fix="Name the embedder that made the embeddings.",
            )
        return embeddings

    def embeddings_for(self, dataset: Dataset) -> AlignedEmbeddings:
        """Return the embeddings in the order of a data set; names are looked up in whichever column holds most of them.

        Raises:
            DataError: if no name is found, or the order has to be relied on and the numbers differ.
        """
        embeddings, names = self._file
        if names is None:
            return self._in_order(embeddings, dataset)
        found = {column: _positions(dataset, column, names) for column in MATCH_COLUMNS}
        column = max(found, key=lambda name: int((found[name] >= 0).sum()))
        rows = found[column]
        if not (rows >= 0).any():
            raise DataError(
                "None of the samples is named in the file of embeddings.",
                where=str(self._path),
                given=names[:_N_EXAMPLES],
                fix=f"Name them as the data set does, for example {_examples(dataset)}.",
            )
        return _align(embeddings, rows, column)

    @cached_property
    def _file(self) -> Named:
        return read_embedding_file(
            self._path,
            ids=self._ids,
            embedding_column=self._embedding_column,
            id_column=self._id_column,
        )

    @cached_property
    def _text_side(self) -> Embedder | None:
        if not isinstance(self._text, Mapping):
            return self._text
        embedder: Embedder = part_class("embedders", str(self._text.get("name", "")))(
            **self._text.get("options", {})
        )
        return embedder

    def _in_order(self, embeddings: AnyArray, dataset: Dataset) -> AlignedEmbeddings:
        if len(embeddings) != len(dataset):
            raise DataError(
                f"There are {len(embeddings)} embeddings without names for {len(dataset)} samples.",
                where=str(self._path),
                fix="Give a file of names, one a line, as embedder.options.ids.",
            )
        return _align(embeddings, np.arange(len(dataset)), "order")

    def _refuse(self, given: object) -> NoReturn:
        raise ModelError(
            "Given embeddings cannot be made for new images.",
            where=str(self._path),
            given=given,
            fix="Call embeddings_for with the data set, or use an embedder that reads images.",
        )


def _align(given: AnyArray, places: IntArray, matched_by: str) -> AlignedEmbeddings:
    """Return unit vectors of the given ones at places [n], -1 for none; a few at a time: there may be very many."""
    embeddings = np.empty((len(places), given.shape[1]), dtype=np.float32)
    n_missing = 0
    for start in range(0, len(places), BLOCK_ROWS):
        wanted = places[start : start + BLOCK_ROWS]
        block = np.full((len(wanted), given.shape[1]), np.nan, dtype=np.float32)
        block[wanted >= 0] = given[wanted[wanted >= 0]]
        unusable = ~np.isfinite(block).all(axis=1)
        block[unusable] = np.nan
        embeddings[start : start + BLOCK_ROWS] = unit_rows(block)
        n_missing += int(unusable.sum())
    return AlignedEmbeddings(embeddings=embeddings, n_missing=n_missing, matched_by=matched_by)


def _positions(dataset: Dataset, column: str, names: Sequence[str]) -> IntArray:
    import pyarrow as pa

    found = pc.index_in(
        dataset.table.column(column), value_set=pa.array(names, pa.string()), skip_nulls=True
    )
    return np.asarray(found.combine_chunks().fill_null(-1)).astype(np.int64)


def _examples(dataset: Dataset) -> list[str]:
    return [str(name) for name in dataset.table.column("key").slice(0, _N_EXAMPLES).to_pylist()]
