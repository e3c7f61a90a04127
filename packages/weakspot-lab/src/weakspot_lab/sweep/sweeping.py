"""How much generated samples should count, and from how many names: a synthetic repair at several settings, as one table."""

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from html import escape
from itertools import count
from pathlib import Path

from weakspot.core.dataset import Split
from weakspot.core.errors import ConfigError, NotEnoughDataError
from weakspot.core.evidence import GivenGroups
from weakspot.core.record import Record
from weakspot.core.repairs import ArmMeasurement, GroupChange, GroupKind, RepairArm
from weakspot.data.charts import ChartPoint, scatter
from weakspot.project.project import Project
from weakspot.repair.bench import RepairBench
from weakspot.run.halves import CONFIRMATION
from weakspot_lab.charts import line_chart

MAX_LOSS = 0.01


class SweepPoint(Record):
    """A synthetic repair at one setting.

    Args:
        debug_weight: how much generated samples count beside training samples, the paper's lambda.
        n_names: how many names of a class are used, the paper's k.
        n_synthetic: generated samples that were used.
        held_out: name of the held-out samples, None if nothing was measured on them.
        held_out_wrong: failures that nothing was chosen by, and how many of them are resolved.
        held_out_overall: all held-out samples before and after.
        test_wrong: failures of the test split.
        test_overall: all samples of the test split before and after.
        given: worst, average and gap over given groups of the test split; None if `[repair] groups` names no column.
    """

    debug_weight: float
    n_names: int
    n_synthetic: int
    held_out: str | None = None
    held_out_wrong: GroupChange | None = None
    held_out_overall: GroupChange | None = None
    test_wrong: GroupChange | None = None
    test_overall: GroupChange | None = None
    given: GivenGroups | None = None

    @property
    def resolved(self) -> float:
        """Return the share of held-out failures that are resolved; NaN if it was not measured."""
        return float("nan") if self.held_out_wrong is None else self.held_out_wrong.accuracy_after

    @property
    def test_accuracy(self) -> float:
        """Return the accuracy on the test split; NaN if it was not measured."""
        return float("nan") if self.test_overall is None else self.test_overall.accuracy_after


class SweepTable(Record):
    """A synthetic repair at several settings.

    Args:
        points: in the order of names, then of weights.
        measured_on: name of the samples that the test figures are from.
        notes: why some settings could not be tried.
    """

    points: tuple[SweepPoint, ...]
    measured_on: str = "test samples"
    notes: tuple[str, ...] = ()

    @property
    def chosen(self) -> SweepPoint | None:
        """Return the point that resolves most held-out failures while held-out accuracy falls by at most one point.

        Equals are decided for the smaller weight, then for fewer names. If all of them lose more, it is the one that loses least.
        The test split has no say. None if nothing was measured on held-out samples.
        """
        known = [
            (point, point.held_out_overall.change)
            for point in self.points
            if point.held_out_overall and point.held_out_wrong
        ]
        careful = [point for point, change in known if change >= -MAX_LOSS - 1e-9]
        if careful:
            return min(
                careful, key=lambda point: (-point.resolved, point.debug_weight, point.n_names)
            )
        return max(known, key=lambda one: one[1])[0] if known else None

    def with_measured(self, *, test: str) -> "SweepTable":
        return self.model_copy(update={"measured_on": test})


COLUMNS = (
    "debug_weight",
    "n_names",
    "n_synthetic",
    "held_out_failures",
    "held_out_resolved",
    "held_out_accuracy_before",
    "held_out_accuracy",
    "test_failures",
    "test_resolved",
    "test_accuracy_before",
    "test_accuracy",
    "given_worst_before",
    "given_worst",
    "given_gap",
    "is_chosen",
)
STYLE = """
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1b1f24; --quiet: #5a6470; --line: #d9dee4; --mark: #fff3d6; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14171b; --ink: #e7eaee; --quiet: #a0aab5; --line: #343b44; --mark: #3a3115; }
}
body { margin: 0 auto; max-width: 62rem; padding: 2rem 1.25rem; background: var(--paper); color: var(--ink); }
body { font: 16px/1.5 system-ui, sans-serif; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .92rem; }
th, td { text-align: right; padding: .3rem .8rem; border-bottom: 1px solid var(--line); }
tr.chosen td { background: var(--mark); font-weight: 600; }
.plots { display: flex; flex-wrap: wrap; gap: 0 1rem; } figure { margin: 1.5rem 0; overflow-x: auto; }
caption, .quiet { color: var(--quiet); text-align: left; }
"""


def sweep_files(table: SweepTable) -> dict[str, bytes]:
    return {
        "sweep.html": _page(table).encode(),
        "sweep.json": _json(table).encode(),
        "sweep.csv": _csv(table).encode(),
    }


def trade_off_plots(table: SweepTable) -> dict[str, str]:
    """Return SVG charts by name: held-out failures resolved against test accuracy, and each of them by weight."""
    series = {
        _names(number): number for number in sorted({point.n_names for point in table.points})
    }
    own = {
        title: [point for point in table.points if point.n_names == names]
        for title, names in series.items()
    }
    chosen = table.chosen
    points = [
        ChartPoint(
            name=f"{point.debug_weight:g}"
            if chosen is None or point.n_names == chosen.n_names
            else "",
            across=point.test_accuracy,
            up=point.resolved,
            across_interval=_ends(point.test_overall) if point == chosen else None,
            up_interval=_ends(point.held_out_wrong) if point == chosen else None,
            series=title,
            is_marked=point == chosen,
        )
        for title, listed in own.items()
        for point in listed
    ]
    resolved = {
        title: [(point.debug_weight, point.resolved) for point in listed]
        for title, listed in own.items()
    }
    accuracy = {
        title: [(point.debug_weight, point.test_accuracy) for point in listed]
        for title, listed in own.items()
    }
    weight, share, right = (
        "weight of generated samples",
        "held-out failures resolved",
        f"accuracy, {table.measured_on}",
    )
    return {
        "trade-off": scatter(
            points,
            title="Failures resolved against accuracy, by weight",
            x_label=right,
            y_label=share,
        ),
        "resolved": line_chart(
            resolved, title="Held-out failures resolved", x_label=weight, y_label=share, is_log=True
        ),
        "accuracy": line_chart(
            accuracy, title="Accuracy on the test split", x_label=weight, y_label=right, is_log=True
        ),
    }


def _names(number: int) -> str:
    return "1 name" if number == 1 else f"{number} names"


def _ends(change: GroupChange | None) -> tuple[float, float] | None:
    return None if change is None else (change.interval_after.low, change.interval_after.high)


def _cells(point: SweepPoint, chosen: SweepPoint | None) -> tuple[float | None, ...]:
    wrong, overall, test_wrong, test = (
        point.held_out_wrong,
        point.held_out_overall,
        point.test_wrong,
        point.test_overall,
    )
    return (
        point.debug_weight,
        point.n_names,
        point.n_synthetic,
        None if wrong is None else wrong.n_samples,
        None if wrong is None else _share(wrong.right_after, wrong.n_samples),
        None if overall is None else _share(overall.right_before, overall.n_samples),
        None if overall is None else _share(overall.right_after, overall.n_samples),
        None if test_wrong is None else test_wrong.n_samples,
        None if test_wrong is None else _share(test_wrong.right_after, test_wrong.n_samples),
        None if test is None else _share(test.right_before, test.n_samples),
        None if test is None else _share(test.right_after, test.n_samples),
        *_given_cells(point.given),
        point == chosen,
    )


def _given_cells(given: GivenGroups | None) -> tuple[float | None, ...]:
    """Return worst before, worst and gap over given groups."""
    if given is None or given.spread is None:
        return None, None, None
    spread = given.spread
    return tuple(
        round(one, 6) for one in (spread.worst_before, spread.worst_after, spread.gap_after)
    )


def _share(count: int, total: int) -> float | None:
    return round(count / total, 6) if total else None


def _csv(table: SweepTable) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerow(COLUMNS)
    for point in table.points:
        writer.writerow(
            ["" if cell is None else str(cell).lower() for cell in _cells(point, table.chosen)]
        )
    return stream.getvalue()


def _json(table: SweepTable) -> str:
    chosen = table.chosen
    found = table.model_dump(mode="json") | {
        "chosen": None
        if chosen is None
        else {"debug_weight": chosen.debug_weight, "n_names": chosen.n_names},
        "chosen_on": _held_out_name(table),
    }
    return json.dumps(found, indent=1) + "\n"


def _held_out_name(table: SweepTable) -> str | None:
    return next((point.held_out for point in table.points if point.held_out is not None), None)


def _page(table: SweepTable) -> str:
    figures = "\n".join(f"<figure>{plot}</figure>" for plot in trade_off_plots(table).values())
    notes = "".join(f'<p class="quiet">{escape(note)}</p>' for note in table.notes)
    head = "".join(
        f'<th scope="col">{escape(name.replace("_", " "))}</th>' for name in COLUMNS[:-1]
    )
    rows = "\n".join(_row(point, table.chosen) for point in table.points)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Sweep of a synthetic repair</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head><body>\n'
        f"<h1>How much generated samples should count</h1>\n<p>{escape(_summary(table))}</p>{notes}\n"
        f'<div class="plots">{figures}</div>\n'
        f"<table><caption>All settings.</caption><thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table>\n</body></html>\n"
    )


def _row(point: SweepPoint, chosen: SweepPoint | None) -> str:
    weight, *others = _cells(point, chosen)[:-1]
    cells = f"<td>{weight:g}</td>" + "".join(f"<td>{_shown(cell)}</td>" for cell in others)
    return f'<tr class="chosen">{cells}</tr>' if point == chosen else f"<tr>{cells}</tr>"


def _shown(cell: float | None) -> str:
    if cell is None:
        return ""
    return f"{cell:.3f}" if isinstance(cell, float) else str(cell)


def _summary(table: SweepTable) -> str:
    chosen, held_out = table.chosen, _held_out_name(table)
    if chosen is None:
        return "Nothing was measured on held-out samples, so no setting is marked: the test split must not choose."
    return (
        f"The marked setting, weight {chosen.debug_weight:g} and {_names(chosen.n_names)} a class, resolves "
        f"{100 * chosen.resolved:.1f} % of the failures in “{held_out}”. It was chosen there; "
        f"the test split (“{table.measured_on}”) had no say and gives {100 * chosen.test_accuracy:.1f} % accuracy."
    )


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
