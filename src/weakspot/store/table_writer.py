"""Writes the final tables of a project batch by batch, with little memory."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
from pydantic import JsonValue

from weakspot.core.arrays import AnyArray
from weakspot.store import atomic
from weakspot.store.array_files import ArrayWriter

OUTCOME_FILES: dict[str, type[np.generic]] = {
    "predictions": np.int64,
    "predicted_matrix": np.bool_,
    "probabilities": np.float32,
}


GROUP_ROWS = 1 << 16


class TableWriter:
    """Takes batches of samples and what came with them, then the tables about them.

    Args:
        folder: an empty folder.
        n_samples: how many samples will come.
    """

    def __init__(self, folder: Path, *, n_samples: int) -> None:
        self._folder = folder
        self._n_samples = n_samples
        self._samples: Any = None
        self._waiting: list[pa.Table] = []
        self._arrays: dict[str, ArrayWriter] = {}
        self._open = ExitStack()

    def __enter__(self) -> Self:
        """Start writing."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Write what is left and close every file."""
        if error is None and self._samples is not None:
            self._write_waiting()
        self._open.__exit__(kind, error, trace)

    def add(self, samples: pa.Table, outcomes: Mapping[str, AnyArray]) -> None:
        """Write a batch of samples; `outcomes` has the same names (see `OUTCOME_FILES`) for every batch."""
        import pyarrow.parquet as pq

        if self._samples is None:
            writer = pq.ParquetWriter(
                self._folder / "samples.parquet", samples.schema, compression="zstd", write_page_checksum=True
            )
            self._samples = self._open.enter_context(writer)
            for name, rows in outcomes.items():
                path, shape = self._folder / f"{name}.npy", (self._n_samples, *rows.shape[1:])
                self._arrays[name] = self._open.enter_context(ArrayWriter(path, shape, OUTCOME_FILES[name]))
        self._waiting.append(samples)
        if sum(table.num_rows for table in self._waiting) >= GROUP_ROWS:
            self._write_waiting()
        for name, rows in outcomes.items():
            self._arrays[name].write(rows)

    def _write_waiting(self) -> None:
        if self._waiting:
            self._samples.write_table(pa.concat_tables(self._waiting).combine_chunks())
        self._waiting = []

    def add_side_tables(self, *, quarantine: Iterator[pa.Table], duplicates: pa.Table) -> None:
        """Write what was set aside and what occurs more than once."""
        import pyarrow.parquet as pq

        first = next(quarantine)
        with pq.ParquetWriter(self._folder / "quarantine.parquet", first.schema, compression="zstd") as writer:
            writer.write_table(first)
            for table in quarantine:
                if table.num_rows:
                    writer.write_table(table)
        pq.write_table(duplicates, self._folder / "duplicates.parquet", compression="zstd")

    def note(self, facts: Mapping[str, JsonValue]) -> None:
        """Write the facts about the tables; needs `class_names`, `task` and `n_samples`."""
        atomic.write_json(self._folder / "dataset.json", facts)
