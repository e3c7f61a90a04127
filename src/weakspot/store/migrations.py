"""Steps that turn a project folder of an older layout into today's.

    version   layout of the folder .weakspot
    0         samples.parquet, quarantine.parquet, duplicates.parquet and dataset.json directly in it, no format.json
    1         tables in tables/<key>/, named by current.json; format.json says the version
    2         vectors/, outcomes/, drawn/ and drawing-results/ are embeddings/, predictions/, generated/ and generation-results/

Every step may be interrupted and is then simply done again; the version is written last.
"""

from collections.abc import Callable
from pathlib import Path

from weakspot.core.errors import StoreError
from weakspot.store import atomic

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
