"""Training weights that are worth taking: those of the strategy that was measured to help, or could not be measured here."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from weakspot.core.dataset import Dataset, Split
from weakspot.core.errors import DataError, NotEnoughDataError, UnavailableError
from weakspot.core.repairs import RepairPlan
from weakspot.core.run import RunRecord
from weakspot.core.training_sets import RepairMaterial, TrainingSelection
from weakspot.pipeline.preparation import FEATURES, Prepared
from weakspot.pipeline.wiring import build_part
from weakspot.repair.advice.likeness import with_embedding
from weakspot.repair.advice.measured import MeasuredRepair
from weakspot.repair.export import (
    GROUP_OBJECTIVES_FILE,
    ROWS_FILE,
    WEIGHTS_FILE,
    write_training_lists,
)
from weakspot.store.atomic import write_bytes


def recommended_plan(record: RunRecord, measured: Sequence[MeasuredRepair]) -> RepairPlan | None:
    """Return the plan whose weights are worth taking; None if there is none.

    That is the one that helped most of those that weigh training samples only. Where nothing could be retrained here, it is the
    one that was asked for.
    """
    helpful = [one for one in measured if one.helps and not one.n_added]
    if helpful:
        return max(helpful, key=lambda one: one.change.gained - one.change.lost).plan
    return next((result.plan for result in record.repairs if result.needs), None)


def selection_of(
    plan: RepairPlan, record: RunRecord, prepared: Prepared
) -> TrainingSelection | None:
    """Return which training samples a plan takes and how much each counts; None if that cannot be done here."""
    samples = prepared.samples
    rows = samples.dataset.rows_of(Split.TRAIN)
    if FEATURES in samples.spaces:
        rows = with_embedding(samples, rows, FEATURES)
    slices = record.slices_by_id()
    material = RepairMaterial(
        training=samples.only(rows, name="training samples"),
        evidence={entry.slice_id: entry for entry in record.evidence},
        n_failures=sum(entry.failures_inside for entry in record.evidence),
        seed=plan.seed,
        assistants=prepared.assistants,
    )
    try:
        part = build_part("repairers", plan.repairer, plan.parameters, where="[repair] parameters")
        found: TrainingSelection = part.select(
            [slices[name] for name in plan.slice_ids if name in slices], material
        )
    except (NotEnoughDataError, DataError, UnavailableError):
        return None
    return found


def write_weights(folder: Path, selection: TrainingSelection | None, dataset: Dataset) -> bool:
    """Write the training lists into a folder and return whether there are any; what an earlier run left is removed."""
    names = (WEIGHTS_FILE, ROWS_FILE, GROUP_OBJECTIVES_FILE)
    with tempfile.TemporaryDirectory() as place:
        written = () if selection is None else write_training_lists(Path(place), selection, dataset)
        fresh = {path.name: path.read_bytes() for path in written}
    for name in names:
        if name in fresh:
            folder.mkdir(parents=True, exist_ok=True)
            write_bytes(folder / name, fresh[name])
        else:
            (folder / name).unlink(missing_ok=True)
    return bool(fresh)
