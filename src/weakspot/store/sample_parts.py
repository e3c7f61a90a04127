"""Examined samples as they come in: numbered Parquet parts, each written in one step, that know how far the source was read."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from weakspot.core.errors import StoreError
from weakspot.store import atomic
from weakspot.store.images import ImagePack, PackPosition

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
        self.images.cut_back(
            self._parts[-1].pack if self._parts else PackPosition(shard=0, length=0)
        )
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
            PACK_KEY: f"{part.pack.shard}:{part.pack.length}",
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

    def readable_tables(
        self, columns: Sequence[str], later: Sequence[str] = ()
    ) -> Iterator[pa.Table]:
        """Yield every part that can be read and has these columns, whatever became of the others; for use by a later reading.

        Later columns are yielded where a part has them.
        """
        for path in sorted(self.folder.glob("part-*.parquet")):
            try:
                table = _read(path, [*columns, *later])
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


def _read(path: Path, columns: Sequence[str] | None) -> pa.Table:
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            return file.read(columns=None if columns is None else list(columns))
    except (OSError, pa.ArrowException) as error:
        raise atomic.damaged(path, str(error)) from error


def _sound_part(path: Path) -> Part | None:
    try:
        marks = _read(path, None).schema.metadata or {}
        shard, length = marks[PACK_KEY].split(b":")
        pack = PackPosition(shard=int(shard), length=int(length))
        return Part(path=path, start=int(marks[START_KEY]), stop=int(marks[STOP_KEY]), pack=pack)
    except (StoreError, KeyError, ValueError):
        return None
