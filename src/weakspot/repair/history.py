"""Repairs that others took the place of: every one is kept with its retrained layer, and can be gone back to."""

import hashlib
from datetime import UTC, datetime
from pathlib import PurePath

from weakspot.core.errors import DataError
from weakspot.core.run import KeptRepair, RunRecord
from weakspot.store.project import ProjectStore

HEAD = PurePath("repaired_head.safetensors")


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


def keep_current(store: ProjectStore, record: RunRecord) -> tuple[KeptRepair, ...]:
    """Copy the retrained layer of the current repair, and return the repair; none if nothing came of it yet."""
    if not any(result.arms or result.needs for result in record.repairs):
        return ()
    kept = KeptRepair(
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
