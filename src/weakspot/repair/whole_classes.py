"""Classes that fail as a whole, as something to repair."""

from collections.abc import Sequence

from weakspot.core.class_findings import ClassFindingKind
from weakspot.core.dataset import Task
from weakspot.core.failures import Side
from weakspot.core.rules import AllOfRule
from weakspot.core.run import RunRecord
from weakspot.core.slices import DataUse, FailureSlice, SliceName
from weakspot.pipeline.settings import Settings

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
