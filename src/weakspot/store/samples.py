"""The final tables of a project: samples, quarantine and duplicates as Parquet, and a memory-mapped copy of the samples.

The Parquet files are the record: portable, readable by any tool. The Arrow file is made from them for this machine, so that a
project of a million samples opens at once and uses memory only for what is looked at.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import JsonValue

from weakspot.core.arrays import AnyArray
from weakspot.core.dataset import Dataset, Task
from weakspot.store import atomic
from weakspot.store.array_files import mapped
from weakspot.store.pictures import PACK_SCHEME
from weakspot.store.table_writer import OUTCOME_FILES, TableWriter

DATASET_FILE = "dataset.json"
MAPPED_ROWS = 1 << 18


@dataclass(frozen=True, kw_only=True)
class SampleTables:
    """One set of final tables.

    Args:
        folder: where they are; its name is their key.
        packs: folder of the packs of pictures that locations may point into.
    """

    folder: Path
    packs: Path

    @property
    def exists(self) -> bool:
        """Return whether the tables were written to their end."""
        return (self.folder / DATASET_FILE).exists()

    @property
    def facts(self) -> dict[str, JsonValue]:
        """Return what was noted when the tables were written."""
        return atomic.read_json(self.folder / DATASET_FILE)

    @contextmanager
    def writing(self, *, n_samples: int) -> Iterator[TableWriter]:
        """Yield a writer; the tables appear all at once when the block ends without an error."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        atomic.remove(self.folder)
        with atomic.replacing(self.folder) as temporary:
            temporary.mkdir()
            with TableWriter(temporary, n_samples=n_samples) as writer:
                yield writer

    def dataset(self) -> Dataset:
        """Return the data set with the predictions that came with it; columns are memory-mapped."""
        facts = self.facts
        class_names, task, n_samples = facts.get("class_names"), facts.get("task"), facts.get("n_samples")
        if not isinstance(class_names, list) or not isinstance(n_samples, int) or task not in list(Task):
            raise atomic.damaged(self.folder / DATASET_FILE, "it does not name the classes, the task and the number of samples")
        table = self._mapped_samples(n_samples)
        arrays = {name: self._outcome(name, n_samples) for name in OUTCOME_FILES}
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
        """Return the pictures that occur more than once."""
        return _read_parquet(self.folder / "duplicates.parquet")

    def _outcome(self, name: str, n_samples: int) -> AnyArray | None:
        path = self.folder / f"{name}.npy"
        return mapped(path, n_rows=n_samples) if path.exists() else None

    def _mapped_samples(self, n_samples: int) -> pa.Table:
        path = self.folder / f"samples-{hashlib.sha256(str(self.packs).encode()).hexdigest()[:8]}.arrow"
        table = _open_mapped(path)
        if table is None or table.num_rows != n_samples:
            table = self._map_anew(path)
        if table.num_rows != n_samples:
            raise atomic.damaged(self.folder / "samples.parquet", f"it has {table.num_rows} rows instead of {n_samples}")
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
                    yield batch.set_column(column, "location", self._real_paths(batch.column(column)))
        except (OSError, pa.ArrowException) as error:
            raise atomic.damaged(path, str(error)) from error

    def _real_paths(self, locations: pa.Array) -> pa.Array:
        packed = pc.fill_null(pc.starts_with(locations, PACK_SCHEME), False)  # noqa: FBT003 - the fill value
        if not pc.any(packed).as_py():
            return locations
        return pc.if_else(packed, pc.replace_substring(locations, PACK_SCHEME, f"{self.packs}/", max_replacements=1), locations)


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
