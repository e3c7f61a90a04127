"""The run that is judged, its held-out samples, and the baseline that it is compared with."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weakspot.core.arrays import BoolArray, IntArray
from weakspot.core.dataset import Split, identities
from weakspot.core.errors import DataError, StoreError
from weakspot.core.failures import FailureCriterion, class_problems
from weakspot.core.run import RunRecord
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.core.statistics import overlap
from weakspot.gate.baseline import (
    Baseline,
    ClassPredictions,
    HeldOutPredictions,
    Packed,
    decode_baseline,
    encode_baseline,
    portable_record,
)
from weakspot.gate.figures import Sighting
from weakspot.project.project import Project
from weakspot.run.halves import split_in_halves
from weakspot.run.ingestion import IngestResult
from weakspot.run.preparation import EmbedResult
from weakspot.run.settings import SETTINGS_FILE, Settings
from weakspot.run.wiring import build_classifier
from weakspot.store import atomic

HELD_OUT = (Split.VALIDATION, Split.TEST)


HeldOut = tuple[IntArray, HeldOutPredictions]
"""Rows of the data set that nothing was trained on, every image once, and what is said of them, in their order."""


def held_out(
    record: RunRecord, samples: SampleSet, settings: Settings, criterion: FailureCriterion
) -> HeldOut:
    """Return the labelled validation and test samples with predictions, members of published slices, and who found them."""
    rows = _held_out_rows(samples)
    classes = tuple(
        ClassPredictions(
            class_name=problem.class_name,
            side=problem.side,
            members=Packed.of_bits(np.isin(rows, problem.rows)),
            failed=Packed.of_bits(np.isin(rows, problem.rows[problem.failed])),
        )
        for problem in class_problems(samples.dataset, rows, criterion)
    )
    discovery = {
        found_on.digest(): Packed.of_bits(np.isin(rows, found_on.rows))
        for found_on, _ in split_in_halves(samples, settings, criterion)
    }
    members = {
        found.slice_id: Packed.of_bits(found.rule.members(samples, rows))
        for found, _ in record.published()
    }
    keys = Packed.of_hashes(identities(samples.dataset, rows))
    return rows, HeldOutPredictions(
        keys=keys, classes=classes, discovery=discovery, slice_members=members
    )


def _held_out_rows(samples: SampleSet) -> IntArray:
    dataset = samples.dataset
    rows = dataset.rows_of(*HELD_OUT)
    rows = rows[dataset.is_labelled[rows]]
    keys = Packed.of_hashes(identities(dataset, rows)).keys
    _, first = np.unique(keys, return_index=True)
    return np.asarray(rows[np.sort(first)], dtype=np.int64)


Members = tuple[BoolArray, BoolArray]
"""Members of two slices among the same samples."""


def find_sightings(
    record: RunRecord, baseline: Baseline, now: HeldOut, samples: SampleSet, *, same_at: float
) -> tuple[Sighting, ...]:
    """Return for every finding of a run which slice of the baseline it is, if any.

    The samples of now are put to the rules of the baseline; where these read embeddings of another encoder, the members that the
    baseline wrote down are compared on the samples that both have.

    Raises:
        DataError: if neither is possible for a slice of the baseline.
    """
    return tuple(
        _sighting(record, found, baseline, now, samples, same_at) for found in record.findings()
    )


def _sighting(
    record: RunRecord,
    found: FailureSlice,
    baseline: Baseline,
    now: HeldOut,
    samples: SampleSet,
    same_at: float,
) -> Sighting:
    entry = next(one for one in record.evidence if one.slice_id == found.slice_id)
    candidates = sorted(
        _candidates(found, baseline, now, samples), key=lambda pair: (-pair[0], pair[1].slice_id)
    )
    share, nearest = candidates[0] if candidates else (0.0, None)
    is_known = nearest is not None and share >= same_at
    return Sighting(
        subject=found.title,
        slice_id=found.slice_id,
        p_value=entry.p_value,
        q_value=entry.q_value,
        weight=entry.weight,
        known_id=nearest.slice_id if nearest is not None and is_known else "",
        known_as=nearest.title if nearest is not None and is_known else "",
        overlap=share,
    )


def _candidates(
    found: FailureSlice, baseline: Baseline, now: HeldOut, samples: SampleSet
) -> Iterator[tuple[float, FailureSlice]]:
    for known, _ in baseline.run.published():
        if known.slice_id == found.slice_id:
            yield 1.0, known
        elif (known.class_name, known.side) == (found.class_name, found.side):
            yield (
                overlap(*_compared_members(found, known, baseline.predictions, now, samples)),
                known,
            )


def _compared_members(
    found: FailureSlice,
    known: FailureSlice,
    before: HeldOutPredictions | None,
    now: HeldOut,
    samples: SampleSet,
) -> Members:
    held, predictions = now
    rows = found.class_rows(samples.only(held))
    try:
        return found.rule.members(samples, rows), known.rule.members(samples, rows)
    except DataError:
        if before is None or known.slice_id not in before.slice_members:
            raise
    _, old, new = np.intersect1d(
        before.keys.keys, predictions.keys.keys, assume_unique=True, return_indices=True
    )
    if not len(old):
        raise DataError(
            f"The baseline's slice “{known.title}” reads embeddings that the project has not, and no sample is in both.",
            fix="Write a new baseline with the present embedder.",
        )
    is_class = np.isin(held[new], rows)
    known_members = before.slice_members[known.slice_id].bits[old]
    return found.rule.members(samples, held[new]) & is_class, known_members & is_class


INDIFFERENT_SECTIONS = ("engine", "repair", "generator", "search", "report")
"""Settings that findings do not depend on: where work runs, and what is done with findings afterwards."""


@dataclass(frozen=True, kw_only=True)
class EnsuredRun:
    """A run of the present samples, model and settings.

    Args:
        record: the run.
        is_new: whether it was made now.
        ingested: what the ingest brought.
        embedded: what was computed for it now.
    """

    record: RunRecord
    is_new: bool
    ingested: IngestResult
    embedded: EmbedResult


def choose_run(project: Project, run_id: str, *, may_run: bool) -> RunRecord:
    """Return the run of an id or, without one, that of the present samples, model and settings.

    Raises:
        StoreError: if there is none and none may be made, or its slices were not measured.
    """
    if not run_id:
        return ensure_run(project).record if may_run else stored_run(project)
    record = project.run_record(run_id)
    if not is_finished(record):
        raise StoreError(
            "The slices of the run have not been measured yet.",
            where=run_id,
            fix=f"weakspot verify --run {run_id}",
        )
    return record


def ensure_run(project: Project) -> EnsuredRun:
    """Return the run of the present samples, model and settings; only what is missing is computed."""
    ingested = project.ingest()
    prepared = project.prepared()
    record = newest_of(project, prepared.inputs)
    is_new = record is None
    if record is None:
        record = project.verify(project.discover().run_id)
    return EnsuredRun(record=record, is_new=is_new, ingested=ingested, embedded=prepared.summary)


def stored_run(project: Project) -> RunRecord:
    """Return the newest stored run of the present settings and model, without computing anything.

    Raises:
        StoreError: if there is none.
    """
    classifier = build_classifier(
        project.settings.classifier,
        project.folder,
        provider=project.settings.engine.provider,
    )
    known = {
        "samples": project.store.tables_key(),
        "classifier": classifier.classifier_id if classifier else "",
    }
    record = newest_of(project, {name: value for name, value in known.items() if value})
    if record is None:
        said = (
            "of the present samples, model and settings" if project.store.runs.run_ids() else "yet"
        )
        raise StoreError(
            f"The project has no finished run {said}.",
            where=str(project.folder),
            fix="Run `weakspot run` first, or leave out --no-run.",
        )
    return record


def newest_of(project: Project, inputs: dict[str, str]) -> RunRecord | None:
    """Return the newest finished run with these inputs and the project's settings, None if there is none."""
    wanted = decisive(project.settings)
    for run_id in reversed(project.store.runs.run_ids()):
        record = project.store.runs.load(run_id)
        is_same = all(record.inputs.get(name) == value for name, value in inputs.items())
        if is_same and is_finished(record) and _without_indifferent(record.settings) == wanted:
            return record
    return None


def is_finished(record: RunRecord) -> bool:
    """Return whether every slice of a run was measured."""
    return record.classifier is not None and len(record.evidence) == len(record.slices)


def decisive(settings: Settings) -> dict[str, object]:
    """Return the settings that findings depend on."""
    return _without_indifferent(settings.model_dump(mode="json"))


def _without_indifferent(settings: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in settings.items() if name not in INDIFFERENT_SECTIONS}


def baseline_of(project: Project, record: RunRecord) -> Baseline:
    """Return a run as a baseline.

    Raises:
        StoreError: if the run is of other samples or another model than the project has now.
    """
    prepared = project.prepared(record)
    refuse_other_inputs(record, prepared.inputs)
    criterion = project.settings.failure.criterion()
    _, predictions = held_out(record, prepared.samples, project.settings, criterion)
    return Baseline(
        run=portable_record(record),
        class_names=prepared.samples.dataset.class_names,
        predictions=predictions,
    )


def write_baseline(path: Path, baseline: Baseline) -> None:
    write_file(path, encode_baseline(baseline), what="The baseline")


def write_file(path: Path, content: bytes, *, what: str) -> None:
    """Write a file for other programs in one step.

    Raises:
        StoreError: if it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic.write_bytes(path, content)
    except OSError as error:
        raise StoreError(f"{what} cannot be written: {error.strerror}.", where=str(path)) from error


def load_baseline(place: Path) -> Baseline:
    """Return a baseline from its file, from the run.json of a run, or from a project: its run of its present samples and model.

    Raises:
        StoreError: if there is none, or it cannot be read.
    """
    if place.is_dir():
        return _of_project(place)
    try:
        content = place.read_bytes()
    except OSError as error:
        raise StoreError(
            f"The baseline cannot be read: {error.strerror}.",
            where=str(place),
            fix="Name a project, a run.json, or a file that `weakspot check --write-baseline` wrote.",
        ) from error
    return decode_baseline(content, where=str(place))


def _of_project(folder: Path) -> Baseline:
    if not (folder / SETTINGS_FILE).exists():
        raise StoreError(
            f"The baseline is a folder without {SETTINGS_FILE}.",
            where=str(folder),
            fix="Name a project or a file.",
        )
    project = Project.open(folder)
    record = newest_of(project, project.prepared().inputs)
    if record is None:
        raise StoreError(
            "The baseline's project has no finished run of its present samples, model and settings.",
            where=str(folder),
            fix=f"weakspot run -p {folder}",
        )
    return baseline_of(project, record)


def refuse_other_inputs(record: RunRecord, inputs: dict[str, str]) -> None:
    """Refuse a run whose predictions are not those that the project has now."""
    differing = sorted(
        name
        for name in ("samples", "classifier")
        if record.inputs.get(name, "") != inputs.get(name, "")
    )
    if differing:
        raise StoreError(
            f"The run is not of the present {' and '.join(differing)}, so samples cannot be put to it.",
            where=record.run_id,
            fix="Judge the newest run instead, or restore what the run was made of.",
        )


def refuse_other_task(baseline: Baseline, class_names: tuple[str, ...], criterion: str) -> None:
    """Refuse a baseline of other classes, or of another idea of a failure.

    Raises:
        DataError: saying what differs.
    """
    if baseline.class_names and set(baseline.class_names) != set(class_names):
        before, now = set(baseline.class_names), set(class_names)
        only = {"only in the baseline": before - now, "only in the run": now - before}
        raise DataError(
            "The baseline has other classes than the run.",
            given={name: sorted(classes)[:5] for name, classes in only.items()},
            fix="Write a new baseline with the present classes.",
        )
    if baseline.run.criterion != criterion:
        raise DataError(
            "The baseline counts something else as a failure than the run.",
            given={"baseline": baseline.run.criterion, "run": criterion},
            fix="Write a new baseline with the present [failure] settings.",
        )
