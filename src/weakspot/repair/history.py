"""What is kept of repairs: finished predictions of an interrupted comparison, and repairs that others took the place of."""

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePath

from weakspot.core.errors import DataError, StoreError
from weakspot.core.repairs import RepairResult
from weakspot.core.run import RunRecord, StoredRepair
from weakspot.repair.export import HEAD_FILE
from weakspot.store.project import ProjectStore


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
            entry = json.loads(content)
            is_same = entry["key"] == self._key(result)
            return RepairResult.model_validate(entry["result"]) if is_same else None
        except (StoreError, ValueError, TypeError, KeyError):
            return None

    def keep(self, result: RepairResult) -> None:
        """Write a finished result."""
        entry = {"key": self._key(result), "result": result.model_dump(mode="json")}
        with self.store.writing():
            self.store.runs.save_artefact(
                self.run_id, self._name(result), json.dumps(entry).encode()
            )

    def _name(self, result: RepairResult) -> str:
        return f"repair-{result.plan.repairer}.json"

    def _key(self, result: RepairResult) -> str:
        content = f"{self.key}{result.plan.model_dump_json()}{result.measured_on.model_dump_json()}"
        return hashlib.sha256(content.encode()).hexdigest()


HEAD = PurePath(HEAD_FILE)


def set_repair_aside(store: ProjectStore, record: RunRecord) -> RunRecord:
    """Return a run that is about to be repaired: what was repaired before is among its earlier repairs, whatever comes of this one."""
    kept = keep_current(store, record)
    return record.model_copy(
        update={
            "earlier_repairs": (*record.earlier_repairs, *kept),
            # To the microsecond: repairs are ordered by it, and small ones take less than a second.
            "repaired": datetime.now(UTC).isoformat(timespec="microseconds"),
        }
    )


def keep_current(store: ProjectStore, record: RunRecord) -> tuple[StoredRepair, ...]:
    """Copy the retrained layer of the current repair, and return the repair; none if nothing came of it yet."""
    if not any(result.arms or result.needs for result in record.repairs):
        return ()
    kept = StoredRepair(
        repair_id=current_id(record),
        made=record.repaired,
        repairs=record.repairs,
        advice=record.advice,
    )
    _copy(store, record.run_id, HEAD.name, head_name(kept.repair_id))
    return (kept,)


def forget_repeats(record: RunRecord) -> RunRecord:
    """Return a run that was just repaired without earlier repairs that came to the same, as after an interruption at the last moment."""
    others = tuple(one for one in record.earlier_repairs if one.repairs != record.repairs)
    return record.model_copy(update={"earlier_repairs": others})


def current_id(record: RunRecord) -> str:
    """Return what the current repair is called among all of the run; empty if there is none."""
    if not record.repairs:
        return ""
    made_of = f"{record.repaired} {[result.plan.model_dump_json() for result in record.repairs]}"
    return hashlib.sha256(made_of.encode()).hexdigest()[:12]


def go_back(
    store: ProjectStore, run_id: str, repair_id: str, *, patience: float = 0.0
) -> RunRecord:
    """Make an earlier repair the current one again; the one that was current is kept in its place.

    Raises:
        DataError: if the run has no such repair.
    """
    with store.writing(patience=patience):
        record = store.runs.load(run_id)
        chosen = next((one for one in record.earlier_repairs if one.repair_id == repair_id), None)
        if chosen is None:
            raise DataError(
                "The run has no such repair.",
                given=repair_id,
                fix=f"Choose one of {[one.repair_id for one in record.earlier_repairs]}.",
            )
        kept = keep_current(store, record)
        others = [one for one in record.earlier_repairs if one is not chosen]
        _copy(store, run_id, head_name(repair_id), HEAD.name)
        changed = record.model_copy(
            update={
                "repairs": chosen.repairs,
                "repaired": chosen.made,
                "advice": chosen.advice,
                "earlier_repairs": tuple(sorted([*others, *kept], key=lambda one: one.made)),
            }
        )
        store.runs.save(changed)
    return changed


def head_name(repair_id: str) -> str:
    """Return the file of an earlier repair's retrained layer."""
    return f"{HEAD.stem}-{repair_id}{HEAD.suffix}"


def _copy(store: ProjectStore, run_id: str, source: str, target: str) -> None:
    if (store.runs.run_folder(run_id) / source).is_file():
        store.runs.save_artefact(run_id, target, store.runs.load_artefact(run_id, source))
