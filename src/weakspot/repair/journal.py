"""Predictions of single strategies, kept as they are finished, so that an interrupted comparison goes on where it was."""

import hashlib
from dataclasses import dataclass

from pydantic import ValidationError

from weakspot.core.errors import StoreError
from weakspot.core.record import Record
from weakspot.core.repairs import RepairResult
from weakspot.store.project import ProjectStore


class _Entry(Record):
    key: str
    result: RepairResult


@dataclass(frozen=True, kw_only=True)
class RepairJournal:
    """The finished predictions of one run.

    Args:
        store: of the project.
        run_id: the run.
        key: everything that predictions depend on beside their plan; another key makes kept ones worthless.
    """

    store: ProjectStore
    run_id: str
    key: str

    def kept(self, result: RepairResult) -> RepairResult | None:
        """Return the finished result of the same plan, measured on the same samples, or None."""
        try:
            content = self.store.runs.load_artefact(self.run_id, self._name(result))
            entry = _Entry.model_validate_json(content)
        except (StoreError, ValidationError):
            return None
        return entry.result if entry.key == self._key(result) else None

    def keep(self, result: RepairResult) -> None:
        """Write a finished result."""
        entry = _Entry(key=self._key(result), result=result)
        with self.store.writing():
            self.store.runs.save_artefact(
                self.run_id, self._name(result), entry.model_dump_json().encode()
            )

    def _name(self, result: RepairResult) -> str:
        return f"repair-{result.plan.repairer}.json"

    def _key(self, result: RepairResult) -> str:
        content = f"{self.key}{result.plan.model_dump_json()}{result.measured_on.model_dump_json()}"
        return hashlib.sha256(content.encode()).hexdigest()
