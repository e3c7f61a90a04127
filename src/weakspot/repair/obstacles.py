"""Why nothing can be retrained here, and how a run says so."""

from collections.abc import Sequence

from weakspot.core.dataset import Split
from weakspot.core.run import ClassNote, RunRecord
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.pipeline.preparation import FEATURES

REPAIR_NOTE = "repair"


def obstacle_to_repair(slices: Sequence[FailureSlice], samples: SampleSet) -> str:
    """Return why nothing can be retrained here, whatever the strategy; empty if something can."""
    if not slices:
        return "No slice was confirmed, so there is nothing to repair."
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
