"""What is wrong with a machine and a project, in one sentence first."""

from collections.abc import Sequence
from pathlib import Path

from weakspot.core.errors import WeakspotError
from weakspot.core.preflight import CheckState, PreflightCheck
from weakspot.pipeline.missing_images import FIX, find_missing_images
from weakspot.project.doctor import DoctorFinding
from weakspot.project.project import Project


def examine_project(folder: Path) -> tuple[tuple[PreflightCheck, ...], tuple[DoctorFinding, ...]]:
    """Return what the pre-flight says of a project, and why it could not be made if so."""
    try:
        project = Project.open(folder)
        return project.preflight(), _images_of(project)
    except WeakspotError as error:
        found = f"{error.what} ({error.where})" if error.where else error.what
        fix = error.fix or "Correct weakspot.toml."
        return (), (DoctorFinding(area="pre-flight", state="broken", found=found, fix=fix),)


def _images_of(project: Project) -> tuple[DoctorFinding, ...]:
    tables = project.store.current_tables()
    missing = None if tables is None else find_missing_images(tables.dataset())
    if missing is None:
        return ()
    found = f"{missing.sentence} The first is {missing.example}."
    return (DoctorFinding(area="images", state="missing", found=found, fix=FIX),)


def is_in_order(findings: Sequence[DoctorFinding], checks: Sequence[PreflightCheck] = ()) -> bool:
    return not _needed(findings) and not _problems(checks)


def verdict_sentence(
    findings: Sequence[DoctorFinding], checks: Sequence[PreflightCheck] = ()
) -> str:
    """Return whether all is well, and what is not."""
    needed = [f"{finding.area} is {finding.state}" for finding in _needed(findings)]
    wrong = [check.short or check.check for check in _problems(checks)]
    if needed or wrong:
        return f"Not in order: {'; '.join([*wrong, *needed])}."
    n_notices = sum(check.state is CheckState.NOTICE for check in checks)
    things = "thing is" if n_notices == 1 else "things are"
    notices = f", {n_notices} {things} worth knowing" if n_notices else ""
    what = "this machine and the project are ready" if checks else "this machine is ready"
    return f"In order: {what}{notices}."


def _needed(findings: Sequence[DoctorFinding]) -> list[DoctorFinding]:
    return [finding for finding in findings if finding.state != "ok" and not finding.is_optional]


def _problems(checks: Sequence[PreflightCheck]) -> list[PreflightCheck]:
    return [check for check in checks if check.state is CheckState.PROBLEM]
