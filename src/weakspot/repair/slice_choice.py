"""Which slices of a run are repaired."""

from collections.abc import Sequence

from weakspot.core.dataset import Task
from weakspot.core.errors import ConfigError
from weakspot.core.repairs import RepairPlan
from weakspot.core.run import RunRecord
from weakspot.core.slices import FailureSlice
from weakspot.repair.whole_classes import failing_classes


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
