"""Run records and the files that belong to them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from weakspot.core.errors import StoreError
from weakspot.core.run import RECORD_VERSION, RunRecord
from weakspot.store import atomic

RECORD_FILE = "run.json"
SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclass(frozen=True, kw_only=True)
class RunStore:
    """The runs of a project, one folder each."""

    folder: Path

    def save(self, record: RunRecord) -> Path:
        """Write a record, replacing an earlier state of the same run, and return its path."""
        path = self.run_folder(record.run_id) / RECORD_FILE
        atomic.write_bytes(path, (record.model_dump_json(indent=1) + "\n").encode())
        return path

    def load(self, run_id: str) -> RunRecord:
        """Read a record.

        Raises:
            StoreError: if there is none of that id, it is damaged, or a newer weakspot wrote it.
        """
        path = self._path(run_id, RECORD_FILE)
        if not path.exists():
            raise StoreError(
                f"There is no run {run_id!r}.",
                where=str(self.folder),
                fix=f"Choose one of {self.run_ids()}.",
            )
        version = atomic.read_json(path).get("record_version")
        if isinstance(version, int) and version > RECORD_VERSION:
            raise StoreError(
                f"The run {run_id!r} was written by a newer weakspot.",
                given=version,
                fix="Upgrade weakspot.",
            )
        try:
            return RunRecord.model_validate_json(path.read_bytes())
        except ValidationError as error:
            raise atomic.damaged(
                path, f"{error.error_count()} fields are wrong or missing"
            ) from error

    def run_ids(self) -> list[str]:
        """Return the ids of all runs, oldest first."""
        return sorted(path.parent.name for path in self.folder.glob(f"*/{RECORD_FILE}"))

    def records(self) -> Iterator[RunRecord]:
        """Yield all records, oldest first; a damaged one is an error when it is reached."""
        for run_id in self.run_ids():
            yield self.load(run_id)

    def latest(self) -> RunRecord | None:
        run_ids = self.run_ids()
        return self.load(run_ids[-1]) if run_ids else None

    def run_folder(self, run_id: str) -> Path:
        folder = self._path(run_id)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def save_artefact(self, run_id: str, name: str, content: bytes) -> Path:
        """Write a file of a run (report, retrained layer) in one step and return its path."""
        path = self._path(run_id, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic.write_bytes(path, content)
        return path

    def load_artefact(self, run_id: str, name: str) -> bytes:
        path = self._path(run_id, name)
        if not path.is_file():
            raise StoreError(f"The run {run_id!r} has no file {name!r}.", where=str(path.parent))
        return path.read_bytes()

    def _path(self, *names: str) -> Path:
        for name in names:
            if not SAFE_NAME.fullmatch(name):
                raise StoreError(
                    "A run id or file name may hold only letters, digits, dots, hyphens and underscores.",
                    given=name,
                )
        return self.folder.joinpath(*names)
