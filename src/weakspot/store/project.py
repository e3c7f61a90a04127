"""The project folder: where everything is, who may write, which layout it has, and steps from an older layout to today's."""

import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from weakspot.core.dataset import Dataset
from weakspot.core.errors import StoreError
from weakspot.store import atomic
from weakspot.store import atomic as lock
from weakspot.store.array_files import folder_name
from weakspot.store.corrections import CorrectionFile
from weakspot.store.embeddings import EmbeddingCache, PredictionCache
from weakspot.store.runs import RunStore
from weakspot.store.samples import SampleParts, SampleTables

SCHEMA_VERSION = 2
FORMAT_FILE = "format.json"
CURRENT_FILE = "current.json"
FLAT_TABLES = ("samples.parquet", "quarantine.parquet", "duplicates.parquet", "dataset.json")
FLAT_KEY = "from-version-0"
RENAMED_FOLDERS = {
    "vectors": "embeddings",
    "outcomes": "predictions",
    "drawing-results": "generation-results",
    "drawn": "generated",
    "generated/pictures": "generated/images",
    "generated/vectors": "generated/embeddings",
    "generated/outcomes": "generated/predictions",
}


def layout_version(data: Path) -> int:
    """Return the layout version of a data folder.

    Raises:
        StoreError: if it was made by a newer weakspot, or the version cannot be read.
    """
    path = data / FORMAT_FILE
    if not path.exists():
        return 0
    version = atomic.read_json(path).get("schema_version")
    if not isinstance(version, int) or version < 1:
        raise atomic.damaged(path, "it does not name a schema version")
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"The project was written by a newer weakspot (layout {version}; this one reads up to {SCHEMA_VERSION}).",
            where=str(data),
            fix="Upgrade weakspot: pip install --upgrade weakspot",
        )
    return version


def migrate(data: Path) -> None:
    """Bring a data folder to today's layout, one version after the other; the caller holds the lock."""
    for version in range(layout_version(data), SCHEMA_VERSION):
        MIGRATIONS[version](data)
        write_version(data, version + 1)


def write_version(data: Path, version: int) -> None:
    atomic.write_json(data / FORMAT_FILE, {"schema_version": version})


def _tables_into_folder(data: Path) -> None:
    target = data / "tables" / FLAT_KEY
    target.mkdir(parents=True, exist_ok=True)
    for name in FLAT_TABLES:
        if (data / name).exists():
            (data / name).rename(target / name)
    if (target / "dataset.json").exists():
        atomic.write_json(data / CURRENT_FILE, {"tables": FLAT_KEY})


def _rename_folders(data: Path) -> None:
    for old, new in RENAMED_FOLDERS.items():
        if (data / old).is_dir() and not (data / new).exists():
            (data / old).rename(data / new)


MIGRATIONS: dict[int, Callable[[Path], None]] = {0: _tables_into_folder, 1: _rename_folders}


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
        self._corrections = CorrectionFile(self.root)
        self._depth = 0
        self._guard = threading.RLock()

    @classmethod
    def open(cls, root: Path | str) -> "ProjectStore":
        """Open a project that exists, bringing it to today's layout if it is older.

        Raises:
            StoreError: if there is none, it is damaged, or a newer weakspot wrote it.
        """
        project = cls(Path(root))
        if not project.data.is_dir():
            raise StoreError(
                "There is no weakspot data here yet.",
                where=str(project.root),
                fix="Run `weakspot ingest` first.",
            )
        if layout_version(project.data) < SCHEMA_VERSION:
            with project.writing():
                migrate(project.data)
        return project

    @classmethod
    def create(cls, root: Path | str) -> "ProjectStore":
        """Open a project, making its folders if they are not there yet."""
        data = Path(root) / DATA_FOLDER
        try:
            if not data.is_dir():
                data.mkdir(parents=True, exist_ok=True)
                write_version(data, SCHEMA_VERSION)
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
            with lock.exclusive(self.data / "lock", patience=max(patience, self.least_patience)):
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

    @property
    def corrections(self) -> CorrectionFile:
        """Return the file of labels that people corrected."""
        return self._corrections

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
