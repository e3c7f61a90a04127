"""Which slices of a run are repaired, classes that fail as a whole among them."""

from collections.abc import Sequence

from weakspot.core.dataset import Task
from weakspot.core.errors import ConfigError
from weakspot.core.evidence import ClassFindingKind
from weakspot.core.failures import Side
from weakspot.core.repairs import RepairPlan
from weakspot.core.rules import AllOfRule
from weakspot.core.run import RunRecord
from weakspot.core.slices import DataUse, FailureSlice, SliceName
from weakspot.run.settings import Settings

WHOLE_CLASS = "whole-class"
EVERYBODY = AllOfRule(rules=())
WORST_CLASS = "worst-class"
WITHIN_CLASSES = ("slice-balanced", "worst-slice")


def failing_classes(record: RunRecord, task: Task) -> tuple[FailureSlice, ...]:
    """Return the classes that are confirmed to fail as a whole, as slices that every sample of the class is a member of."""
    return tuple(
        FailureSlice(
            class_name=one.class_name,
            side=None if task is Task.SINGLE_LABEL else Side.PRESENT,
            rule=EVERYBODY,
            method=WHOLE_CLASS,
            found_on=DataUse.nothing(),
            names=(
                SliceName(
                    phrase=one.class_name,
                    contrast="as a whole",
                    score=one.rate,
                    describer=WHOLE_CLASS,
                ),
            ),
        )
        for one in record.class_findings
        if one.kind is ClassFindingKind.WHOLE and one.is_confirmed
    )


def settings_for(slices: Sequence[FailureSlice], settings: Settings) -> tuple[Settings, str]:
    """Return settings that fit what is repaired, and why they were changed: balancing parts of a class cannot mend a whole one."""
    method = settings.repair.method
    are_classes = bool(slices) and all(found.method == WHOLE_CLASS for found in slices)
    if not are_classes or method not in WITHIN_CLASSES:
        return settings, ""
    why = (
        f"No slice was confirmed, so the classes that fail as a whole are repaired, by {WORST_CLASS}; {method} balances parts of a "
        "class."
    )
    repair = settings.repair.model_copy(update={"method": WORST_CLASS, "parameters": {}})
    return settings.model_copy(update={"repair": repair}), why


def with_reason(record: RunRecord, why: str) -> RunRecord:
    """Return a run whose first repair says why it was done so."""
    if not why or not record.repairs:
        return record
    first = record.repairs[0]
    told = first.model_copy(update={"notes": (why, *first.notes)})
    return record.model_copy(update={"repairs": (told, *record.repairs[1:])})


def chosen_slices(
    record: RunRecord,
    slice_ids: Sequence[str],
    task: Task = Task.SINGLE_LABEL,
    *,
    is_exploratory: bool = False,
) -> tuple[FailureSlice, ...]:
    """Return the confirmed slices to repair; without any, the classes that fail as a whole.

    Args:
        record: the run.
        slice_ids: ids, or the beginnings of them; empty for all.
        task: single-label or multi-label.
        is_exploratory: whether ids may name slices that were not confirmed.

    Raises:
        ConfigError: if an id names no slice, or one that was not confirmed; or if unconfirmed slices are allowed and none is named.
    """
    if is_exploratory and not slice_ids:
        raise ConfigError(
            "An exploratory repair is for slices that are named.",
            where="--exploratory",
            fix="Name them: --slice ID.",
        )
    confirmed = {found.slice_id: found for found, _ in record.published()}
    if is_exploratory:
        confirmed |= {found.slice_id: found for found in record.slices}
    if not slice_ids:
        return record.findings() or failing_classes(record, task)
    chosen: dict[str, FailureSlice] = {}
    for wanted in slice_ids:
        matching = [
            found for slice_id, found in confirmed.items() if wanted and slice_id.startswith(wanted)
        ]
        if len(matching) != 1:
            raise ConfigError(
                f"This names no {'' if is_exploratory else 'confirmed '}slice, or several."
                if wanted
                else "A slice id is empty.",
                where="--slice",
                given=wanted,
                fix="Choose from "
                + (
                    ", ".join(f"{one} ({found.title})" for one, found in confirmed.items())
                    or "none"
                )
                + ".",
            )
        chosen[matching[0].slice_id] = matching[0]
    return tuple(chosen.values())


def are_exploratory(
    record: RunRecord, slices: Sequence[FailureSlice], plan: RepairPlan | None
) -> bool:
    """Return whether a repair is for slices of the run that nobody confirmed; a given plan says it itself."""
    if plan is not None:
        return plan.is_exploratory
    confirmed = {found.slice_id for found, _ in record.published()}
    unconfirmed = {found.slice_id for found in record.slices} - confirmed
    return any(found.slice_id in unconfirmed for found in slices)
