"""How much generated samples should count, and from how many names: a synthetic repair at several settings, as one table."""

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path

from weakspot.core.dataset import Split
from weakspot.core.errors import ConfigError, NotEnoughDataError
from weakspot.core.repairs import ArmMeasurement, GroupChange, GroupKind, RepairArm
from weakspot.project.project import Project
from weakspot.repair.bench import RepairBench
from weakspot.run.halves import CONFIRMATION
from weakspot_lab.sweep.table import SweepPoint, SweepTable, sweep_files

METHOD = "synthetic"
DEBUG_WEIGHTS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
N_NAMES = (1, 2, 3, 5)


def sweep(
    arm_of: Callable[[float, int], RepairArm],
    *,
    debug_weights: Sequence[float] = DEBUG_WEIGHTS,
    n_names: Sequence[int] = N_NAMES,
) -> SweepTable:
    """Return a synthetic repair at every weight and number of names.

    Which point is best is said by the confirmation half alone, never by the test split, whose figures stand beside it.

    Args:
        arm_of: weight and number of names to the measured repair.
        debug_weights: how much generated samples count beside training samples.
        n_names: how many names of a class are used.

    Raises:
        NotEnoughDataError: if no setting could be tried.
    """
    points: list[SweepPoint] = []
    failed: list[NotEnoughDataError] = []
    for names in n_names:
        for weight in debug_weights:
            try:
                points.append(_point(weight, names, arm_of(weight, names)))
            except NotEnoughDataError as error:
                failed.append(error)
    if not points:
        raise (
            failed[0]
            if failed
            else NotEnoughDataError(
                "There is no setting to try.", fix="Name weights and numbers of names."
            )
        )
    notes = list(dict.fromkeys(error.what for error in failed))
    return SweepTable(points=tuple(_distinct(points, notes)), notes=tuple(notes))


def sweep_synthetic(
    project: Project,
    folder: Path,
    run_id: str | None = None,
) -> tuple[Path, ...]:
    """Write the trade-off of a synthetic repair of the confirmed slices of a run into a folder: page, JSON and CSV, the page first.

    Raises:
        ConfigError: if the folder holds such files already.
        NotEnoughDataError: if there are no confirmed slices or no generated samples.
    """
    names = ("sweep.html", "sweep.json", "sweep.csv")
    there = [name for name in names if (folder / name).exists()]
    if there:
        raise ConfigError(
            "There are files of an earlier sweep.",
            where=str(folder),
            given=there,
            fix="Choose another folder.",
        )
    record, prepared = project.repairable(run_id)
    progress = project.progress_of("sweep")
    slices = record.findings()
    if not slices:
        raise NotEnoughDataError(
            "No slice was confirmed, so there is nothing to repair.", where=record.run_id
        )
    if not len(prepared.samples.dataset.rows_of(Split.SYNTHETIC)):
        raise NotEnoughDataError(
            "There are no generated samples.", fix="Name their folder: --synthetic FOLDER."
        )
    bench = RepairBench.of(prepared, project.settings, slices, record.evidence)

    tried = count()

    def arm_of(weight: float, n_names: int) -> RepairArm:
        progress(next(tried), len(DEBUG_WEIGHTS) * len(N_NAMES))
        selection = bench.selection(METHOD, {"debug_weight": weight, "n_names": n_names})
        return bench.arm(METHOD, selection, is_baseline=False)

    table = sweep(arm_of).with_measured(test=bench.measured.name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        contents = sweep_files(table)
        for name in names:
            (folder / name).write_bytes(contents[name])
    except OSError as error:
        raise ConfigError(
            f"The folder cannot be written: {error.strerror}.", where=str(folder)
        ) from error
    return tuple(folder / name for name in names)


def _point(weight: float, n_names: int, arm: RepairArm) -> SweepPoint:
    held_out = next((one for one in arm.elsewhere if CONFIRMATION in one.measured_on.name), None)
    return SweepPoint(
        debug_weight=weight,
        n_names=n_names,
        n_synthetic=arm.n_synthetic,
        held_out=None if held_out is None else held_out.measured_on.name,
        held_out_wrong=_change(held_out, GroupKind.FORMERLY_WRONG),
        held_out_overall=_change(held_out, GroupKind.OVERALL),
        test_wrong=arm.change_of(GroupKind.FORMERLY_WRONG),
        test_overall=arm.change_of(GroupKind.OVERALL),
        given=arm.given,
    )


def _distinct(points: Sequence[SweepPoint], notes: list[str]) -> Iterator[SweepPoint]:
    """Yield the points of every number of names that differs from all before; with more names than there are, nothing is new."""
    seen: dict[tuple[SweepPoint, ...], int] = {}
    for number in dict.fromkeys(point.n_names for point in points):
        own = [point for point in points if point.n_names == number]
        said = tuple(point.model_copy(update={"n_names": 0}) for point in own)
        if said in seen:
            notes.append(
                f"{number} names use the same generated samples as {seen[said]}, and are left out."
            )
            continue
        seen[said] = number
        yield from own


def _change(measured: ArmMeasurement | None, kind: GroupKind) -> GroupChange | None:
    return (
        None
        if measured is None
        else next((one for one in measured.changes if one.kind is kind), None)
    )
