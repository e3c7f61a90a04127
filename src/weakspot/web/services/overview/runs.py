"""The runs of a project, images of the worst slices of one, and the methods that a run can use."""

import inspect
from pathlib import PurePath
from typing import Any

import numpy as np

from weakspot.core.arrays import IntArray
from weakspot.core.errors import ConfigError, WeakspotError
from weakspot.core.registry import part_class, registered
from weakspot.core.run import RunRecord
from weakspot.core.slices import FailureSlice
from weakspot.pipeline.settings import Settings
from weakspot.pipeline.wiring import build_part, buildable
from weakspot.web.services.samples.facts import answers_of
from weakspot.web.services.slices.samples import LookedAt, look_at
from weakspot.web.services.view import View
from weakspot.web.services.workspace import Workspace

REPORT_FILE = "report.html"


class RunView(View):
    """One run.

    Args:
        run_id: time and hash.
        started: ISO 8601, UTC.
        command: what was asked for.
        n_slices: how many were found.
        n_published: how many of them were confirmed and not dismissed.
        is_repaired: whether a repair was measured.
        has_report: whether its report was written.
    """

    run_id: str
    started: str
    command: str
    n_slices: int
    n_published: int
    is_repaired: bool
    has_report: bool


class RunsView(View):
    """All runs, newest first."""

    runs: list[RunView]


def run_list(workspace: Workspace) -> RunsView:
    """Return all runs, newest first; every one is read once for each state that it is in."""
    ids = workspace.project.store.runs.run_ids()
    return RunsView(
        runs=[
            _with_report(workspace, workspace.make_of_run(run_id, "in short", _in_short))
            for run_id in ids[::-1]
        ]
    )


def has_report(workspace: Workspace, run_id: str) -> bool:
    return (workspace.project.store.runs.folder / run_id / REPORT_FILE).is_file()


def _in_short(record: RunRecord) -> RunView:
    return RunView(
        run_id=record.run_id,
        started=record.started,
        command=_shown_command(record.command),
        n_slices=len(record.slices),
        n_published=len(record.published()),
        is_repaired=any(result.arms for result in record.repairs),
        has_report=False,
    )


def _shown_command(command: str) -> str:
    """Return what was typed, of paths on the server only the last part."""
    return " ".join(PurePath(word).name if "/" in word else word for word in command.split())


def _with_report(workspace: Workspace, run: RunView) -> RunView:
    return run.model_copy(update={"has_report": has_report(workspace, run.run_id)})


class MethodChoice(View):
    """A method that can be chosen, or why not.

    Args:
        name: registered name.
        sentence: what it does.
        is_configured: whether weakspot.toml names it.
        why_not: why it cannot be used here; empty if it can.
    """

    name: str
    sentence: str
    is_configured: bool
    why_not: str = ""


class MethodChoices(View):
    """All methods of a role."""

    methods: list[MethodChoice]


def discoverer_choices(settings: Settings) -> MethodChoices:
    """Return the methods that failures can be looked for with; baselines are left out."""
    given = settings.discover.parameters
    able = buildable("discoverers", given)
    configured = settings.discover.methods
    found = []
    for name in registered("discoverers"):
        part = _part("discoverers", name)
        if part is None or (
            name in able
            and build_part("discoverers", name, given.get(name, {}), where=name).is_baseline
        ):
            continue
        why_not = "" if name in able else "It needs options that weakspot.toml does not give."
        is_configured = name in configured or ("all" in configured and not why_not)
        found.append(
            MethodChoice(
                name=name,
                sentence=first_sentence(part),
                is_configured=is_configured,
                why_not=why_not,
            )
        )
    return MethodChoices(methods=found)


def first_sentence(part: Any) -> str:
    """Return what a part does, from the first paragraph of its own documentation.

    >>> first_sentence(int)
    'int([x]) -> integer int(x, base=10) -> integer'
    """
    text = inspect.getdoc(part) or ""
    return " ".join(text.split("\n\n", maxsplit=1)[0].split())


def _part(role: str, name: str) -> Any:
    try:
        return part_class(role, name)
    except ConfigError:
        return None


N_WORST = 6
N_IMAGES = 8


class ShownSample(View):
    """One sample.

    Args:
        row: its number.
        label: the true class.
        answer: what the classifier answered.
        is_failure: whether that was a failure.
    """

    row: int
    label: str
    answer: str
    is_failure: bool


class ImageStrips(View):
    """What a finding looks like.

    Args:
        fails: failures of the slice, deepest inside first.
        rest: samples of the rest of the class, evenly over all.
    """

    fails: list[ShownSample]
    rest: list[ShownSample]


class WorstImages(View):
    """Images of each of the worst slices.

    Args:
        tables: what row numbers refer to.
        slices: images by slice id; none for a slice of other samples than the project holds now.
    """

    tables: str
    slices: dict[str, ImageStrips]


def worst_images(workspace: Workspace, run_id: str) -> WorstImages:
    """Return failures of the worst slices of a run, deepest inside first.

    Raises:
        StoreError: if there is no such run.
    """

    def choose(record: RunRecord) -> WorstImages:
        shown = {
            found.slice_id: _strips(workspace, record, found)
            for found, _ in record.published()[:N_WORST]
        }
        return WorstImages(tables=workspace.tables_key, slices=shown)

    return workspace.make_of_run(run_id, "worst images", choose)


def _strips(workspace: Workspace, record: RunRecord, found: FailureSlice) -> ImageStrips:
    try:
        looked = look_at(workspace, record, found)
    except WeakspotError:
        return ImageStrips(fails=[], rest=[])
    fails = np.flatnonzero(looked.inside & looked.problem.failed)[:N_IMAGES]
    outside = np.flatnonzero(~looked.inside)
    rest = np.unique(np.linspace(0, len(outside) - 1, min(N_IMAGES, len(outside))).astype(np.int64))
    return ImageStrips(fails=_shown(looked, fails), rest=_shown(looked, outside[rest]))


def _shown(looked: LookedAt, places: IntArray) -> list[ShownSample]:
    rows, failed = looked.problem.rows[places], looked.problem.failed[places]
    answers = answers_of(looked.samples.dataset, rows, failed)
    return [
        ShownSample(row=row, label=looked.problem.title, answer=answer, is_failure=is_failure)
        for row, answer, is_failure in zip(rows.tolist(), answers, failed.tolist(), strict=True)
    ]
