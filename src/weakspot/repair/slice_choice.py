"""Which slices of a run are repaired."""

from collections.abc import Sequence

from weakspot.core.dataset import Task
from weakspot.core.errors import ConfigError
from weakspot.core.run import RunRecord
from weakspot.core.slices import FailureSlice
from weakspot.repair.whole_classes import failing_classes


def chosen_slices(
    record: RunRecord, slice_ids: Sequence[str], task: Task = Task.SINGLE_LABEL
) -> tuple[FailureSlice, ...]:
    """Return the confirmed slices to repair; without any, the classes that fail as a whole.

    Raises:
        ConfigError: if an id names no slice, or one that was not confirmed.
    """
    confirmed = {found.slice_id: (found, evidence) for found, evidence in record.published()}
    if not slice_ids:
        return record.findings() or failing_classes(record, task)
    chosen: dict[str, FailureSlice] = {}
    for wanted in slice_ids:
        matching = [
            found
            for slice_id, (found, _) in confirmed.items()
            if wanted and slice_id.startswith(wanted)
        ]
        if len(matching) != 1:
            raise ConfigError(
                "This names no confirmed slice, or several." if wanted else "A slice id is empty.",
                where="--slice",
                given=wanted,
                fix="Choose from "
                + (
                    ", ".join(f"{one} ({found.title})" for one, (found, _) in confirmed.items())
                    or "none"
                )
                + ".",
            )
        chosen[matching[0].slice_id] = matching[0]
    return tuple(chosen.values())
