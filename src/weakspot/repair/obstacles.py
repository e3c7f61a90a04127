"""Why nothing can be retrained here, and how a run says so."""

from collections.abc import Sequence

from weakspot.core.dataset import Split
from weakspot.core.run import ClassNote, RunRecord
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.pipeline.preparation import FEATURES
from weakspot.repair.bench import RepairBench

REPAIR_NOTE = "repair"
WITHOUT_SLICES = (
    "worst-class",
    "class-balanced",
    "just-train-twice",
    "dfr-subsample",
    "dfr-upsample",
    "group-dro",
)
"""Strategies that look at no slice."""
NOTHING = (
    "No slice was confirmed and no class fails as a whole, so there is nothing to repair. To retrain all the same: "
    "weakspot repair --method worst-class"
)


def obstacle_to_repair(
    slices: Sequence[FailureSlice], samples: SampleSet, *, method: str = ""
) -> str:
    """Return why nothing can be retrained here, whatever the strategy; empty if something can.

    Args:
        slices: what is to be repaired.
        samples: of the project.
        method: the strategy, if it was asked for by name: some need no slice.
    """
    if not slices and method not in WITHOUT_SLICES:
        return NOTHING
    if FEATURES not in samples.spaces:
        return "The features under the classifier's last layer are not known, so it cannot be retrained here."
    if not len(samples.dataset.rows_of(Split.TRAIN)):
        return "There are no training samples to retrain the last layer on."
    if not len(samples.dataset.rows_of(Split.TEST)):
        return "There are no test samples to measure a repair on."
    return ""


def with_note(record: RunRecord, text: str) -> RunRecord:
    """Return a run without repairs that says why."""
    note = ClassNote(class_name=REPAIR_NOTE, note=text)
    return record.model_copy(update={"repairs": (), "notes": (*other_notes(record), note)})


def other_notes(record: RunRecord) -> tuple[ClassNote, ...]:
    """Return the notes of a run that are not about repairs."""
    return tuple(note for note in record.notes if note.class_name != REPAIR_NOTE)


def left_out(bench: RepairBench) -> list[str]:
    """Return what a comparison leaves out before anything is tried."""
    notes = []
    if bench.material.pool is None or not bench.material.budget:
        missing = "a pool" if bench.material.pool is None else "a budget (--budget)"
        notes.append(f"Strategies that choose from a pool were left out: they need {missing}.")
    if not bench.settings.repair.groups:
        notes.append("References with group labels were left out: [repair] groups names no column.")
    return notes


def unmeasured_groups(bench: RepairBench) -> list[str]:
    """Return why nothing is measured over given groups although a column was named."""
    column = bench.settings.repair.groups
    if not column or column in bench.samples.dataset.metadata_names:
        return []
    return [f"Nothing was measured over given groups: there is no column “{column}”."]
