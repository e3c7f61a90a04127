"""The project folder: where everything is, who may write, and which layout it has."""

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from weakspot.core.dataset import Dataset
from weakspot.core.errors import StoreError
from weakspot.store import atomic
from weakspot.store.array_files import folder_name
from weakspot.store.corrections import CorrectionFile
from weakspot.store.embeddings import EmbeddingCache, PredictionCache
from weakspot.store.runs import RunStore
from weakspot.store.samples import SampleParts, SampleTables

SCHEMA_VERSION = 2
FORMAT_FILE = "format.json"
CURRENT_FILE = "current.json"


def check_layout(data: Path) -> None:
    """Refuse a data folder of another layout than today's.

    Raises:
        StoreError: if another weakspot made it, or its layout cannot be read.
    """
    path = data / FORMAT_FILE
    version = atomic.read_json(path).get("schema_version") if path.exists() else 0
    if not isinstance(version, int) or (path.exists() and version < 1):
        raise atomic.damaged(path, "it does not name a schema version")
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"The project was written by a newer weakspot (layout {version}; this one reads up to {SCHEMA_VERSION}).",
            where=str(data),
            fix="Upgrade weakspot: pip install --upgrade weakspot",
        )
    if version < SCHEMA_VERSION:
        raise StoreError(
            f"The project was written by an earlier weakspot (layout {version}; this one reads {SCHEMA_VERSION}).",
            where=str(data),
            fix="Move it elsewhere and run `weakspot ingest` again.",
        )


DATA_FOLDER, EMBEDDINGS_FOLDER, GENERATED_FOLDER = ".weakspot", "embeddings", "generated"
OWN_CARE = frozenset({GENERATED_FOLDER, "thumbnails"})


class ProjectStore:
    """A project on disk.

    Reading needs no lock. Whoever writes does it inside `with project.writing():`, which may be nested.

    Args:
        root: the project folder; everything of ours is in `.weakspot` inside it.
    """

    least_patience: ClassVar[float] = 0.0
    """Seconds that every writer of this process waits at least; for processes that work beside others on the same project."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.data = self.root / DATA_FOLDER
        self.corrections = CorrectionFile(self.root)
        """The file of labels that people corrected."""
        self._depth = 0
        self._guard = threading.RLock()

    @classmethod
    def open(cls, root: Path | str) -> "ProjectStore":
        """Open a project that exists.

        Raises:
            StoreError: if there is none, it is damaged, or a weakspot with another layout wrote it.
        """
        project = cls(Path(root))
        if not project.data.is_dir():
            raise StoreError(
                "There is no weakspot data here yet.",
                where=str(project.root),
                fix="Run `weakspot ingest` first.",
            )
        check_layout(project.data)
        return project

    @classmethod
    def create(cls, root: Path | str) -> "ProjectStore":
        """Open a project, making its folders if they are not there yet."""
        data = Path(root) / DATA_FOLDER
        try:
            data.mkdir(parents=True, exist_ok=True)
            if not any(data.iterdir()):
                atomic.write_json(data / FORMAT_FILE, {"schema_version": SCHEMA_VERSION})
                atomic.write_bytes(data / ".gitignore", b"*\n")
        except OSError as error:
            raise StoreError(
                f"The project folder cannot be made: {error.strerror}.", where=str(root)
            ) from error
        return cls.open(root)

    @contextmanager
    def writing(self, *, patience: float = 0.0) -> Iterator[None]:
        """Be the only writer of the project; leftovers of interrupted writers are removed first.

        Args:
            patience: seconds to wait for another process that writes.

        Raises:
            StoreError: if another process writes for longer than that, with its id.
        """
        with self._guard:
            if self._depth:
                yield
                return
            with atomic.exclusive(self.data / "lock", patience=max(patience, self.least_patience)):
                self._depth += 1
                try:
                    self._remove_leftovers()
                    yield
                finally:
                    self._depth -= 1

    def _remove_leftovers(self) -> None:
        """Clean up after interrupted writers, except among generated images and thumbnails: very many, cared for elsewhere."""
        for path in sorted(self.data.iterdir()):
            atomic.remove_leftover(path)
            if path.is_dir() and path.name not in OWN_CARE:
                atomic.remove_leftovers(path)

    @property
    def generated(self) -> Path:
        return self.data / GENERATED_FOLDER

    def sample_parts(self, fingerprint: str) -> SampleParts:
        return SampleParts(self._packs / hashlib.sha256(fingerprint.encode()).hexdigest()[:16])

    def earlier_parts(self, parts: SampleParts) -> list[SampleParts]:
        """Return what other readings have brought, of this source before it changed or of another; they need not be complete."""
        folders = sorted(self._packs.iterdir()) if self._packs.is_dir() else []
        return [
            SampleParts(folder) for folder in folders if folder.is_dir() and folder != parts.folder
        ]

    def tables(self, key: str) -> SampleTables:
        return SampleTables(folder=self.data / "tables" / key, packs=self._packs, root=self.root)

    def current_tables(self) -> SampleTables | None:
        path = self.data / CURRENT_FILE
        if not path.exists():
            return None
        tables = self.tables(str(atomic.read_json(path).get("tables")))
        if not tables.exists:
            raise atomic.damaged(path, "the tables it names are not there")
        return tables

    def adopt(self, tables: SampleTables, parts: SampleParts) -> None:
        """Make tables the ones that the project works with, and delete older tables and readings of sources."""
        atomic.write_json(self.data / CURRENT_FILE, {"tables": tables.folder.name})
        for folder, kept in ((tables.folder.parent, tables.folder), (self._packs, parts.folder)):
            for other in folder.iterdir():
                if other != kept:
                    atomic.remove(other)

    def dataset(self) -> Dataset:
        """Return the samples of the project.

        Raises:
            StoreError: if nothing was ingested yet.
        """
        tables = self.current_tables()
        if tables is None:
            raise StoreError(
                "The project has no samples yet.",
                where=str(self.root),
                fix="Run `weakspot ingest` first.",
            )
        return self.corrections.read().apply(tables.dataset())

    def tables_key(self) -> str:
        """Return which samples, under which labels, the project works with; empty before the first ingest."""
        tables = self.current_tables()
        mark = self.corrections.read().mark if tables is not None else ""
        return "" if tables is None else "-".join(filter(None, (tables.folder.name, mark)))

    def embeddings(self, encoder_id: str) -> EmbeddingCache:
        return EmbeddingCache(
            self.data / EMBEDDINGS_FOLDER / folder_name(encoder_id), identity=encoder_id
        )

    def predictions(self, classifier_id: str) -> PredictionCache:
        return PredictionCache(
            self.data / "predictions" / folder_name(classifier_id), identity=classifier_id
        )

    @property
    def runs(self) -> RunStore:
        return RunStore(folder=self.data / "runs")

    @property
    def _packs(self) -> Path:
        return self.data / "ingest"
