"""Columns that were computed for the samples of a project, and the book that says what they mean."""

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pydantic import ValidationError

from weakspot.core.samples import BOOK_VERSION, AttributeBook
from weakspot.store import atomic

BOOK_FILE, COLUMNS_FILE = "book.json", "columns.arrow"
LATEST_FILE = "attributes.json"


@dataclass(frozen=True, kw_only=True, eq=False)
class ShelvedColumns:
    """Attributes as they were stored.

    Args:
        book: what the columns mean.
        columns: one row a sample, memory-mapped.
    """

    book: AttributeBook
    columns: pa.Table


@dataclass(frozen=True, kw_only=True)
class ColumnCache:
    """Computed columns by key, one folder each; book and columns of a key appear together or not at all.

    Args:
        data: the data folder of the project; the book that was written last is also in its `attributes.json`, for people.
    """

    data: Path

    def load(self, key: str, *, n_rows: int) -> ShelvedColumns | None:
        """Return what is stored under a key, or None if there is nothing, or nothing that can be read: it is then made anew."""
        folder = self._folder(key)
        try:
            book = AttributeBook.model_validate_json((folder / BOOK_FILE).read_bytes())
            columns = pa.ipc.open_file(pa.memory_map(str(folder / COLUMNS_FILE))).read_all()
        except (OSError, ValidationError, pa.ArrowException):
            return None
        if book.book_version != BOOK_VERSION or columns.num_rows != n_rows:
            return None
        return ShelvedColumns(book=book, columns=columns)

    def written(self, key: str) -> int:
        """Return when a key was last written, in nanoseconds; 0 if it is not there."""
        try:
            return (self._folder(key) / BOOK_FILE).stat().st_mtime_ns
        except OSError:
            return 0

    def changed(self) -> int:
        """Return when any key was last written or deleted, in nanoseconds; 0 if there was never one."""
        try:
            return (self.data / "attributes").stat().st_mtime_ns
        except OSError:
            return 0

    def save(
        self, key: str, book: AttributeBook, columns: pa.Table, *, group: str, is_whole: bool = True
    ) -> None:
        """Store columns; the caller holds the project's lock.

        Args:
            key: starts with the group.
            book: what the columns mean.
            columns: one row a sample.
            group: entries of other groups are deleted: they belong to samples that the project has no more.
            is_whole: whether these are all attributes of the project, so that people are shown this book.
        """
        folder = self._folder(key)
        folder.parent.mkdir(parents=True, exist_ok=True)
        atomic.remove(folder)
        content = (book.model_dump_json(indent=1) + "\n").encode()
        with atomic.replacing(folder) as temporary:
            temporary.mkdir()
            (temporary / BOOK_FILE).write_bytes(content)
            with (
                pa.OSFile(str(temporary / COLUMNS_FILE), "wb") as sink,
                pa.ipc.new_file(sink, columns.schema) as writer,
            ):
                writer.write_table(columns)
        if is_whole:
            self.show(book)
        for other in folder.parent.iterdir():
            if not other.name.startswith(group):
                atomic.remove(other)

    def show(self, book: AttributeBook) -> None:
        """Write a book where people find it; the caller holds the project's lock."""
        atomic.write_bytes(
            self.data / LATEST_FILE, (book.model_dump_json(indent=1) + "\n").encode()
        )

    def _folder(self, key: str) -> Path:
        return self.data / "attributes" / key
