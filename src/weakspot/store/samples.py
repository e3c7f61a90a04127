"""The samples of a project as Parquet: numbered parts as they come in, and the final tables.

Images below the folder are stored without it.
"""

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import JsonValue

from weakspot.core.arrays import AnyArray
from weakspot.core.dataset import Dataset, Task
from weakspot.core.errors import StoreError
from weakspot.store import atomic
from weakspot.store.array_files import mapped, writing_array
from weakspot.store.images import PACK_SCHEME, PACK_START, ImagePack, PackPosition

PROJECT_SCHEME = "weakspot-project:"


@dataclass(frozen=True, kw_only=True)
class Places:
    """Turns places of this machine into places within a project, and back.

    Args:
        packs: folder of the packs of images that locations may point into.
        root: the project folder; None if nothing lies below it.
    """

    packs: Path
    root: Path | None = None

    @cached_property
    def folder(self) -> str:
        """Return the project folder with the separator behind it; empty if there is none."""
        return "" if self.root is None else f"{os.path.abspath(self.root)}{os.sep}"

    @property
    def key(self) -> str:
        """Return what real places depend on."""
        return f"{os.path.abspath(self.packs)} {self.folder}"

    def stored(self, locations: pa.Array) -> pa.Array:
        """Return locations as they are stored: those below the project folder without it."""
        for folder in self._own_names():
            locations = _with_start(locations, folder, PROJECT_SCHEME)
        return locations

    def real(self, locations: pa.Array) -> pa.Array:
        """Return locations on this machine."""
        locations = _with_start(locations, PACK_SCHEME, f"{self.packs}{os.sep}")
        return _with_start(locations, PROJECT_SCHEME, self.folder) if self.folder else locations

    def _own_names(self) -> tuple[str, ...]:
        if self.root is None:
            return ()
        given = f"{self.root}{os.sep}"
        names = {self.folder, f"{os.path.realpath(self.root)}{os.sep}"}
        return tuple(names | {given}) if os.path.isabs(given) else tuple(names)


def _with_start(locations: pa.Array, old: str, new: str) -> pa.Array:
    """Return locations that begin with something else instead."""
    starts = pc.fill_null(pc.starts_with(locations, old), False)  # noqa: FBT003 - the fill value
    if not pc.any(starts).as_py():
        return locations
    changed = pc.binary_join_element_wise(
        pa.scalar(new), pc.utf8_slice_codeunits(locations, len(old)), ""
    )
    return pc.if_else(starts, changed, locations)


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
        open_files: closes the files.
        n_samples: how many samples will come.
        places: how locations are stored.
    """

    def __init__(
        self, folder: Path, open_files: ExitStack, *, n_samples: int, places: Places
    ) -> None:
        self._folder = folder
        self._open = open_files
        self._places = places
        self._n_samples = n_samples
        self._samples: Any = None
        self._waiting: list[pa.Table] = []
        self._arrays: dict[str, Callable[[AnyArray], None]] = {}

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
                    writing_array(path, shape, PREDICTION_FILES[name])
                )
        self._waiting.append(samples)
        if sum(table.num_rows for table in self._waiting) >= GROUP_ROWS:
            self.flush()
        for name, rows in predictions.items():
            self._arrays[name](rows)

    def flush(self) -> None:
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
        with atomic.replacing(self.folder) as temporary, ExitStack() as open_files:
            temporary.mkdir()
            writer = TableWriter(temporary, open_files, n_samples=n_samples, places=self.places)
            yield writer
            writer.flush()

    def dataset(self) -> Dataset:
        """Return the data set with the predictions that came with it; columns are memory-mapped."""
        facts = self.facts
        class_names, task, n_samples = map(facts.get, ("class_names", "task", "n_samples"))
        if (
            not isinstance(class_names, list)
            or not isinstance(n_samples, int)
            or task not in list(Task)
        ):
            raise atomic.damaged(
                self.folder / DATASET_FILE,
                "it does not name the classes, the task and the number of samples",
            )
        paths = {name: self.folder / f"{name}.npy" for name in PREDICTION_FILES}
        arrays: dict[str, Any] = {
            name: mapped(path, n_rows=n_samples) for name, path in paths.items() if path.exists()
        }
        return Dataset(
            class_names=tuple(str(name) for name in class_names),
            task=Task(str(task)),
            table=self._mapped_samples(n_samples),
            **arrays,
        )

    def quarantine(self) -> pa.Table:
        """Return the samples that were set aside: key, location, reason, detail."""
        return _read(self.folder / "quarantine.parquet")

    def duplicates(self) -> pa.Table:
        return _read(self.folder / "duplicates.parquet")

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


SOURCE_FILE = "source.json"
START_KEY, STOP_KEY, PACK_KEY = b"weakspot.start", b"weakspot.stop", b"weakspot.pack"


@dataclass(frozen=True, kw_only=True)
class Part:
    """One part on disk.

    Args:
        path: where it is.
        start: position in the source of its first sample.
        stop: position in the source after its last sample.
        pack: how far the pack of images was filled when it was written.
    """

    path: Path
    start: int
    stop: int
    pack: PackPosition


class SampleParts:
    """What one reading of a source has brought so far.

    Args:
        folder: one folder a source fingerprint, so a changed source starts anew.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.images = ImagePack(folder)
        self._parts: list[Part] = []

    def resume(self) -> int:
        """Keep every sound part, drop the rest, cut torn images, and return the source position to go on from."""
        marker = self.folder / SOURCE_FILE
        if not marker.exists():
            atomic.remove(self.folder)
            self.folder.mkdir(parents=True)
            atomic.write_json(marker, {"n_read": None})
        atomic.remove_leftovers(self.folder)
        self._parts = list(self._sound_parts())
        kept = {part.path for part in self._parts}
        dropped = [path for path in self.folder.glob("part-*.parquet") if path not in kept]
        for path in dropped:
            path.unlink()
        if dropped:
            atomic.write_json(marker, {"n_read": None})
        self.images.cut_back(self._parts[-1].pack if self._parts else PACK_START)
        return self.reached

    @property
    def reached(self) -> int:
        return self._parts[-1].stop if self._parts else 0

    @property
    def is_finished(self) -> bool:
        """Return whether the source was read to its end and nothing of it is lost."""
        marker = self.folder / SOURCE_FILE
        noted = atomic.read_json(marker) if marker.exists() else {}
        return noted.get("n_read") == self.reached and not noted.get("is_mixed")

    def append(self, table: pa.Table, *, stop: int) -> None:
        """Write the samples that were read since the last part; `stop` is the source position reached."""
        import pyarrow.parquet as pq

        self.images.flush()
        part = Part(
            path=self._path(len(self._parts)),
            start=self.reached,
            stop=stop,
            pack=self.images.position,
        )
        marks = {
            START_KEY: str(part.start),
            STOP_KEY: str(part.stop),
            PACK_KEY: ":".join(map(str, part.pack)),
        }
        with atomic.replacing(part.path) as temporary:
            marked = table.replace_schema_metadata(marks)
            pq.write_table(marked, temporary, compression="zstd", write_page_checksum=True)
        self._parts.append(part)

    def finish(self, *, is_mixed: bool = False) -> None:
        """Note that the source has no more samples.

        Args:
            is_mixed: whether the source changed while it was read, so that this is neither what it was nor what it is.
        """
        atomic.write_json(self.folder / SOURCE_FILE, {"n_read": self.reached, "is_mixed": is_mixed})

    @property
    def is_mixed(self) -> bool:
        marker = self.folder / SOURCE_FILE
        return marker.exists() and bool(atomic.read_json(marker).get("is_mixed"))

    def start_over(self) -> None:
        self.close()
        atomic.remove(self.folder)
        self.resume()

    def close(self) -> None:
        self.images.close()

    def tables(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield the parts in order; one is in memory at a time."""
        for part in self._parts:
            yield _read(part.path, columns)

    def readable_tables(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield every part that can be read and has these columns, also of a reading that was never finished."""
        for path in sorted(self.folder.glob("part-*.parquet")):
            try:
                table = _read(path, columns)
            except StoreError:
                continue
            if set(columns) <= set(table.column_names):
                yield table

    def count_rows(self) -> int:
        import pyarrow.parquet as pq

        n_rows = 0
        for path in self.folder.glob("part-*.parquet"):
            with contextlib.suppress(OSError, pa.ArrowException):
                n_rows += pq.read_metadata(path).num_rows
        return n_rows

    def _path(self, number: int) -> Path:
        return self.folder / f"part-{number:06d}.parquet"

    def _sound_parts(self) -> Iterator[Part]:
        """Yield parts from the first on, until one is missing or damaged."""
        number, reached = 0, 0
        while (path := self._path(number)).exists():
            part = _sound_part(path)
            if part is None or part.start != reached or not self.images.is_whole(part.pack):
                return
            yield part
            number, reached = number + 1, part.stop


def _read(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            return file.read(columns=None if columns is None else list(columns))
    except (OSError, pa.ArrowException) as error:
        raise atomic.damaged(path, str(error)) from error


def _sound_part(path: Path) -> Part | None:
    try:
        marks = _read(path).schema.metadata or {}
        shard, length = marks[PACK_KEY].split(b":")
        start, stop = int(marks[START_KEY]), int(marks[STOP_KEY])
        return Part(path=path, start=start, stop=stop, pack=(int(shard), int(length)))
    except (StoreError, KeyError, ValueError):
        return None
