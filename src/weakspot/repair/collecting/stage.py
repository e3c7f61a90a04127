"""A repair where the last layer cannot be retrained here: predictions and columns, or captions, are all there is."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weakspot.core.dataset import Split
from weakspot.core.errors import DataError, NotEnoughDataError, UnavailableError
from weakspot.core.failures import FailureCriterion
from weakspot.core.repairs import LabellingRequest, RepairPlan, RepairResult
from weakspot.core.run import RunRecord
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.core.training_sets import RepairMaterial, TrainingSelection
from weakspot.pipeline.halves import used_rows
from weakspot.pipeline.preparation import Prepared
from weakspot.pipeline.settings import Settings
from weakspot.pipeline.wiring import build_part
from weakspot.repair.collecting.files import CollectedFiles, write_collected
from weakspot.repair.collecting.needs import slice_needs
from weakspot.repair.collecting.pool_rows import PoolRows, pool_rows
from weakspot.repair.contamination import refuse_contamination
from weakspot.repair.labels.requests import write_labelling_list
from weakspot.store.project import ProjectStore

OWN_WEIGHTS = ("slice-balanced", "worst-slice", "just-train-twice")
FOLDER = "handed-back/table"
COLLECT_INSTEAD = "`weakspot repair` writes which pool rows to collect, how many, and weights for your own training."


@dataclass(frozen=True, kw_only=True, eq=False)
class CollectingRequest:
    """What is collected for.

    Args:
        record: the run.
        prepared: samples.
        settings: of the project.
        criterion: what counts as a failure.
        slices: confirmed ones.
        why: why nothing can be retrained here.
        gain: by how much the failure rate of every slice is to fall; None: by half and all of its gap.
    """

    record: RunRecord
    prepared: Prepared
    settings: Settings
    criterion: FailureCriterion
    slices: tuple[FailureSlice, ...]
    why: str
    gain: float | None = None

    @property
    def samples(self) -> SampleSet:
        return self.prepared.samples


def collect_instead(
    asked: CollectingRequest, *, store: ProjectStore, write_to: Path | None
) -> RepairResult:
    """Write the files, into a folder of the run by default, and return what they say.

    Raises:
        DataError: if pool samples are also evaluated on.
        ModelError: if files of the same names are there.
    """
    dataset = asked.samples.dataset
    refuse_contamination(
        dataset,
        training=dataset.rows_of(Split.TRAIN),
        pool=dataset.rows_of(Split.POOL),
        synthetic=None,
        verifying=dataset.rows_of(Split.VALIDATION, Split.TEST),
    )
    evaluated = used_rows(asked.samples, asked.settings)
    pool = pool_rows(asked.slices, asked.samples, asked.criterion)
    needs = slice_needs(
        asked.slices,
        asked.record.evidence,
        asked.samples,
        asked.criterion,
        pool,
        evaluated=evaluated,
        gain=asked.gain,
    )
    selections, notes = _selections(asked)
    content = CollectedFiles(
        plan=_plan(asked, selections),
        slices=asked.slices,
        pool=pool,
        needs=needs,
        selections=selections,
        notes=(asked.why, *notes),
    )
    run_folder = store.runs.run_folder(asked.record.run_id)
    with store.writing():
        if write_to is None:
            shutil.rmtree(run_folder / FOLDER, ignore_errors=True)
        written = write_collected(write_to or run_folder / FOLDER, content, asked.samples)
        labelling = _ask_for_labels(asked, pool, run_folder)
    files = [
        str(path) if write_to is not None else path.relative_to(run_folder).as_posix()
        for path in written
    ]
    if labelling is not None:
        files += [labelling.file, labelling.image_list]
    return RepairResult(
        plan=content.plan,
        measured_on=DataUse.of(asked.samples.only(evaluated, name="evaluation samples")),
        arms=(),
        labelling=labelling,
        files=tuple(files),
        notes=content.notes,
        needs=needs,
    )


def _selections(asked: CollectingRequest) -> tuple[dict[str, TrainingSelection], tuple[str, ...]]:
    """Return training weights by strategy, the configured one first, and why others are missing."""
    samples = asked.samples
    training, pool = (
        samples.only(samples.dataset.rows_of(split), name=name)
        for split, name in ((Split.TRAIN, "training samples"), (Split.POOL, "pool"))
    )
    if not samples.dataset.is_labelled[training.rows].any():
        return {}, ("There are no labelled training samples to weigh.",)
    repair = asked.settings.repair
    material = RepairMaterial(
        training=training,
        pool=pool if len(pool) else None,
        budget=repair.budget,
        evidence={entry.slice_id: entry for entry in asked.record.evidence},
        n_failures=sum(entry.failures_inside for entry in asked.record.evidence),
        seed=asked.settings.seed,
        assistants=asked.prepared.assistants,
    )
    found: dict[str, TrainingSelection] = {}
    notes: list[str] = []
    for name in dict.fromkeys([repair.method, *OWN_WEIGHTS]):
        given = dict(repair.parameters) if name == repair.method else {}
        try:
            part = build_part("repairers", name, given, where="[repair] parameters")
            chosen: TrainingSelection = part.select(asked.slices, material)
        except (NotEnoughDataError, DataError, UnavailableError) as error:
            notes.append(f"Weights of {name} are missing: {error.what}")
            continue
        waiting = ~samples.dataset.is_labelled[chosen.rows]
        if waiting.any():
            notes.append(
                f"Weights of {name} are missing: {int(waiting.sum())} chosen pool rows have no label."
            )
            continue
        found[name] = chosen
    return found, tuple(notes)


def _plan(asked: CollectingRequest, selections: dict[str, TrainingSelection]) -> RepairPlan:
    repair = asked.settings.repair
    name = next(iter(selections), repair.method)
    return RepairPlan(
        slice_ids=tuple(found.slice_id for found in asked.slices),
        repairer=name,
        parameters=dict(repair.parameters) if name == repair.method else {},
        budget=repair.budget,
        seed=asked.settings.seed,
    )


def _ask_for_labels(
    asked: CollectingRequest, pool: tuple[PoolRows, ...], run_folder: Path
) -> LabellingRequest | None:
    """Write the pool rows without a label that fit a slice as a list that labelling tools and people fill in."""
    rows = np.unique(np.concatenate([own.rows[~own.is_labelled] for own in pool]))
    if not len(rows):
        return None
    return write_labelling_list(run_folder, rows, asked.samples, asked.slices, roles={})
