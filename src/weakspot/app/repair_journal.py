"""Outcomes of single strategies, kept as they are finished, so that an interrupted comparison goes on where it was."""

import hashlib
from dataclasses import dataclass

from pydantic import ValidationError

from weakspot.core.errors import StoreError
from weakspot.core.record import Record
from weakspot.core.repairs import RepairOutcome
from weakspot.store.project import ProjectStore


class _Entry(Record):
    key: str
    outcome: RepairOutcome


@dataclass(frozen=True, kw_only=True)
class RepairJournal:
    """The finished outcomes of one run.

    Args:
        store: of the project.
        run_id: the run.
        key: everything that outcomes depend on beside their plan; another key makes kept ones worthless.
    """

    store: ProjectStore
    run_id: str
    key: str

    def kept(self, outcome: RepairOutcome) -> RepairOutcome | None:
        """Return the finished outcome of the same plan, measured on the same samples, or None."""
        try:
            content = self.store.runs.load_artefact(self.run_id, self._name(outcome))
            entry = _Entry.model_validate_json(content)
        except (StoreError, ValidationError):
            return None
        return entry.outcome if entry.key == self._key(outcome) else None

    def keep(self, outcome: RepairOutcome) -> None:
        """Write a finished outcome."""
        entry = _Entry(key=self._key(outcome), outcome=outcome)
        with self.store.writing():
            self.store.runs.save_artefact(self.run_id, self._name(outcome), entry.model_dump_json().encode())

    def _name(self, outcome: RepairOutcome) -> str:
        return f"repair-{outcome.plan.repairer}.json"

    def _key(self, outcome: RepairOutcome) -> str:
        content = f"{self.key}{outcome.plan.model_dump_json()}{outcome.measured_on.model_dump_json()}"
        return hashlib.sha256(content.encode()).hexdigest()
