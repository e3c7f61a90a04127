"""Baselines: made of a run, written, and read from a file, a run or a project."""

from pathlib import Path

from weakspot.app.checking.held_out import held_out
from weakspot.app.checking.present import newest_of
from weakspot.app.config import SETTINGS_FILE
from weakspot.app.project import Project
from weakspot.core.errors import DataError, StoreError
from weakspot.core.run import RunRecord
from weakspot.release.baseline import Baseline, decoded, encoded, portable_record
from weakspot.store import atomic


def baseline_of(project: Project, record: RunRecord) -> Baseline:
    """Return a run as a baseline.

    Raises:
        StoreError: if the run is of other samples or another model than the project has now.
    """
    prepared = project.prepared(record)
    refuse_other_inputs(record, prepared.inputs)
    found = held_out(record, prepared.samples, project.settings, project.settings.failure.criterion())
    return Baseline(run=portable_record(record), class_names=prepared.samples.dataset.class_names, outcomes=found.outcomes)


def write_baseline(path: Path, baseline: Baseline) -> None:
    """Write a baseline in one step."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic.write_bytes(path, encoded(baseline))
    except OSError as error:
        raise StoreError(f"The baseline cannot be written: {error.strerror}.", where=str(path)) from error


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
    return decoded(content, where=str(place))


def _of_project(folder: Path) -> Baseline:
    if not (folder / SETTINGS_FILE).exists():
        raise StoreError(f"The baseline is a folder without {SETTINGS_FILE}.", where=str(folder), fix="Name a project or a file.")
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
    """Refuse a run whose outcomes are not those that the project has now."""
    differing = sorted(name for name in ("samples", "classifier") if record.inputs.get(name, "") != inputs.get(name, ""))
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
        more, fewer = (sorted(set(one) - set(other))[:5] for one, other in _both_ways(baseline.class_names, class_names))
        raise DataError(
            "The baseline has other classes than the run.",
            given={"only in the baseline": more, "only in the run": fewer},
            fix="Write a new baseline with the present classes.",
        )
    if baseline.run.criterion != criterion:
        raise DataError(
            "The baseline counts something else as a failure than the run.",
            given={"baseline": baseline.run.criterion, "run": criterion},
            fix="Write a new baseline with the present [failure] settings.",
        )


def _both_ways(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
    return (first, second), (second, first)
