"""The final tables of a project: samples, quarantine and duplicates as Parquet, and a memory-mapped copy of the samples.

The Parquet files are the record: portable, readable by any tool. The Arrow file is made from them for this machine, so that a
project of a million samples opens at once and uses memory only for what is looked at.
"""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
from pydantic import JsonValue

from weakspot.core.arrays import AnyArray
from weakspot.core.dataset import Dataset, Task
from weakspot.store import atomic
from weakspot.store.array_files import ArrayWriter, mapped
from weakspot.store.places import Places

PREDICTION_FILES: dict[str, type[np.generic]] = {
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
        places: how locations are stored.
    """

    def __init__(self, folder: Path, *, n_samples: int, places: Places) -> None:
        self._folder = folder
        self._places = places
        self._n_samples = n_samples
        self._samples: Any = None
        self._waiting: list[pa.Table] = []
        self._arrays: dict[str, ArrayWriter] = {}
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None and self._samples is not None:
            self._write_waiting()
        self._open.__exit__(kind, error, trace)

    def add(self, samples: pa.Table, predictions: Mapping[str, AnyArray]) -> None:
        """Write a batch of samples; `predictions` has the same names (see `PREDICTION_FILES`) for every batch."""
        import pyarrow.parquet as pq

        column = samples.schema.get_field_index("location")
        portable = self._places.stored(samples.column(column).combine_chunks())
        samples = samples.set_column(column, samples.schema.field(column), portable)
        if self._samples is None:
            writer = pq.ParquetWriter(
                self._folder / "samples.parquet",
                samples.schema,
                compression="zstd",
                write_page_checksum=True,
            )
            self._samples = self._open.enter_context(writer)
            for name, rows in predictions.items():
                path, shape = self._folder / f"{name}.npy", (self._n_samples, *rows.shape[1:])
                self._arrays[name] = self._open.enter_context(
                    ArrayWriter(path, shape, PREDICTION_FILES[name])
                )
        self._waiting.append(samples)
        if sum(table.num_rows for table in self._waiting) >= GROUP_ROWS:
            self._write_waiting()
        for name, rows in predictions.items():
            self._arrays[name].write(rows)

    def _write_waiting(self) -> None:
        if self._waiting:
            self._samples.write_table(pa.concat_tables(self._waiting).combine_chunks())
        self._waiting = []

    def add_side_tables(self, *, quarantine: Iterator[pa.Table], duplicates: pa.Table) -> None:
        """Write what was set aside and what occurs more than once."""
        import pyarrow.parquet as pq

        first = next(quarantine)
        with pq.ParquetWriter(
            self._folder / "quarantine.parquet", first.schema, compression="zstd"
        ) as writer:
            writer.write_table(first)
            for table in quarantine:
                if table.num_rows:
                    writer.write_table(table)
        pq.write_table(duplicates, self._folder / "duplicates.parquet", compression="zstd")

    def note(self, facts: Mapping[str, JsonValue]) -> None:
        """Write the facts about the tables; needs `class_names`, `task` and `n_samples`."""
        atomic.write_json(self._folder / "dataset.json", facts)


DATASET_FILE = "dataset.json"
MAPPED_ROWS = 1 << 18


@dataclass(frozen=True, kw_only=True)
class SampleTables:
    """One set of final tables.

    Args:
        folder: where they are; its name is their key.
        packs: folder of the packs of images that locations may point into.
        root: the project folder, below which most images are; None if it has nothing to do with them.
    """

    folder: Path
    packs: Path
    root: Path | None = None

    @property
    def places(self) -> Places:
        return Places(packs=self.packs, root=self.root)

    @property
    def exists(self) -> bool:
        return (self.folder / DATASET_FILE).exists()

    @property
    def facts(self) -> dict[str, JsonValue]:
        return atomic.read_json(self.folder / DATASET_FILE)

    @contextmanager
    def writing(self, *, n_samples: int) -> Iterator[TableWriter]:
        """Yield a writer; the tables appear all at once when the block ends without an error."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        atomic.remove(self.folder)
        with atomic.replacing(self.folder) as temporary:
            temporary.mkdir()
            with TableWriter(temporary, n_samples=n_samples, places=self.places) as writer:
                yield writer

    def dataset(self) -> Dataset:
        """Return the data set with the predictions that came with it; columns are memory-mapped."""
        facts = self.facts
        class_names, task, n_samples = (
            facts.get("class_names"),
            facts.get("task"),
            facts.get("n_samples"),
        )
        if (
            not isinstance(class_names, list)
            or not isinstance(n_samples, int)
            or task not in list(Task)
        ):
            raise atomic.damaged(
                self.folder / DATASET_FILE,
                "it does not name the classes, the task and the number of samples",
            )
        table = self._mapped_samples(n_samples)
        arrays = {name: self._prediction(name, n_samples) for name in PREDICTION_FILES}
        return Dataset(
            class_names=tuple(str(name) for name in class_names),
            task=Task(str(task)),
            table=table,
            predictions=arrays["predictions"],
            predicted_matrix=arrays["predicted_matrix"],
            probabilities=arrays["probabilities"],
        )

    def quarantine(self) -> pa.Table:
        """Return the samples that were set aside: key, location, reason, detail."""
        return _read_parquet(self.folder / "quarantine.parquet")

    def duplicates(self) -> pa.Table:
        return _read_parquet(self.folder / "duplicates.parquet")

    def _prediction(self, name: str, n_samples: int) -> AnyArray | None:
        path = self.folder / f"{name}.npy"
        return mapped(path, n_rows=n_samples) if path.exists() else None

    def _mapped_samples(self, n_samples: int) -> pa.Table:
        path = (
            self.folder
            / f"samples-{hashlib.sha256(self.places.key.encode()).hexdigest()[:8]}.arrow"
        )
        table = _open_mapped(path)
        if table is None or table.num_rows != n_samples:
            table = self._map_anew(path)
        if table.num_rows != n_samples:
            raise atomic.damaged(
                self.folder / "samples.parquet",
                f"it has {table.num_rows} rows instead of {n_samples}",
            )
        return table

    def _map_anew(self, path: Path) -> pa.Table:
        """Write the memory-mapped copy from the Parquet file; where it cannot be written the rows are kept in memory."""
        try:
            with atomic.replacing(path) as temporary:
                _copy_as_arrow(self._portable_batches(), temporary)
        except OSError:
            return pa.Table.from_batches(list(self._portable_batches()))
        for other in self.folder.glob("samples-*.arrow"):
            if other != path:
                other.unlink(missing_ok=True)
        found = _open_mapped(path)
        if found is None:
            raise atomic.damaged(path, "it cannot be read back")
        return found

    def _portable_batches(self) -> Iterator[pa.RecordBatch]:
        import pyarrow.parquet as pq

        path = self.folder / "samples.parquet"
        try:
            with pq.ParquetFile(path, page_checksum_verification=True) as source:
                for batch in source.iter_batches(batch_size=MAPPED_ROWS):
                    column = batch.schema.get_field_index("location")
                    yield batch.set_column(
                        column, "location", self.places.real(batch.column(column))
                    )
        except (OSError, pa.ArrowException) as error:
            raise atomic.damaged(path, str(error)) from error


def _copy_as_arrow(batches: Iterator[pa.RecordBatch], path: Path) -> None:
    first = next(batches)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, first.schema) as writer:
        writer.write_batch(first)
        for batch in batches:
            writer.write_batch(batch)


def _open_mapped(path: Path) -> pa.Table | None:
    try:
        return pa.ipc.open_file(pa.memory_map(str(path))).read_all()
    except (OSError, pa.ArrowException):
        return None


def _read_parquet(path: Path) -> pa.Table:
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            return file.read()
    except (OSError, pa.ArrowException) as error:
        raise atomic.damaged(path, str(error)) from error
