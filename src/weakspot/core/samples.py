"""Rows of a data set together with the embeddings that methods read."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from weakspot.core.arrays import BLOCK_ROWS, AnyArray, BoolArray, FloatArray, IntArray
from weakspot.core.dataset import Dataset
from weakspot.core.errors import DataError


@dataclass(frozen=True, kw_only=True, eq=False)
class EmbeddingSpace:
    """Embeddings of one encoder for every row of a data set.

    Args:
        encoder_id: which encoder made them, with version or hash.
        embeddings: [n, d], aligned with the rows of the data set; may be memory-mapped. A row of NaN means: no embedding.
        has_text: whether phrases can be embedded into the same space.
        text_id: which text side embeds them; empty if the encoder's id says so.
    """

    encoder_id: str
    embeddings: FloatArray
    has_text: bool = False
    text_id: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class SampleSet:
    """The rows that a method may look at.

    Args:
        dataset: all samples of the project.
        rows: the rows meant, ascending.
        spaces: embeddings by space name; `joint` is shared with text, `own` is the classifier's last layer input.
        name: how the set is called in reports, for example `validation, discovery half`.
        reference_rows: rows whose embeddings (never labels) may be used for means and deviations; training rows.
    """

    dataset: Dataset
    rows: IntArray
    spaces: Mapping[str, EmbeddingSpace] = field(default_factory=dict)
    name: str = "samples"
    reference_rows: IntArray | None = None

    def __len__(self) -> int:
        """Return the number of rows meant."""
        return len(self.rows)

    def space(self, name: str) -> EmbeddingSpace:
        if name not in self.spaces:
            raise DataError(
                f"There are no embeddings called {name!r}.",
                given=name,
                fix=f"Choose one of {sorted(self.spaces)}, or run weakspot embed.",
            )
        return self.spaces[name]

    def embeddings(self, space: str, rows: IntArray | None = None) -> FloatArray:
        """Return embeddings [n, d] of the given rows (its own by default) as float32."""
        wanted = self.rows if rows is None else rows
        return np.asarray(self.space(space).embeddings[wanted], dtype=np.float32)

    def by_blocks(
        self, space: str, rows: IntArray, measure: Callable[[FloatArray], AnyArray]
    ) -> AnyArray:
        """Return what is measured of the embeddings of rows, with a few of them in memory at a time.

        Args:
            space: whose embeddings.
            rows: any rows of the data set.
            measure: gives an array of m rows for embeddings [m, d]; what it gives for a row must not depend on the others.
        """
        if len(rows) <= BLOCK_ROWS:
            return measure(self.embeddings(space, rows))
        starts = range(0, len(rows), BLOCK_ROWS)
        return np.concatenate(
            [measure(self.embeddings(space, rows[start : start + BLOCK_ROWS])) for start in starts]
        )

    def has_embeddings(self, space: str, rows: IntArray) -> BoolArray:
        """Return which rows have an embedding [n]."""
        return self.by_blocks(
            space,
            rows,
            lambda embeddings: np.asarray(np.isfinite(embeddings).all(axis=1), dtype=np.bool_),
        )

    def only(self, rows: IntArray, *, name: str | None = None) -> "SampleSet":
        return replace(self, rows=rows, name=self.name if name is None else name)

    def digest(self) -> str:
        """Return a hash over the ids of the rows: which data was looked at."""
        ids = "\n".join(self.dataset.sample_ids(self.rows))
        return hashlib.sha256(ids.encode()).hexdigest()[:32]
