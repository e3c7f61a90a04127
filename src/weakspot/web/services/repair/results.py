"""What can be repaired, how, and what repairs did: the sections and rows of the report; what got worse comes first."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated

from pydantic import StringConstraints

from weakspot.core.dataset import Split
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.registry import part_class, registered
from weakspot.core.repairs import GroupKind, RepairArm, RepairResult
from weakspot.core.run import RunRecord
from weakspot.pipeline.wiring import buildable
from weakspot.repair.bench import GROUP_METHODS
from weakspot.repair.history import current_id, go_back
from weakspot.repair.matched_controls import MATCHED_CONTROLS
from weakspot.repair.obstacles import REPAIR_NOTE, obstacle_to_repair
from weakspot.repair.stage import PLAIN, POOL_PREFIX
from weakspot.repair.whole_classes import failing_classes
from weakspot.report.repair_wording import slice_warning, worse_sentences
from weakspot.report.repairs import RepairSection, repair_section
from weakspot.report.strategies import StrategyRow, compare_strategies
from weakspot.report.wording import arm_name
from weakspot.web.services.overview.page import ConfirmedSlice, confirmed_slices
from weakspot.web.services.overview.runs import first_sentence
from weakspot.web.services.view import View
from weakspot.web.services.workspace import Workspace

SYNTHETIC = "synthetic"
BASELINES = (PLAIN, *MATCHED_CONTROLS)


class Strategy(View):
    """A way of repairing.

    Args:
        name: registered name.
        title: as people read it.
        sentence: what it does.
        is_configured: whether weakspot.toml names it.
        is_baseline: whether it stands there for comparison.
        why_not: why it cannot be used here; empty if it can.
    """

    name: str
    title: str
    sentence: str
    is_configured: bool
    is_baseline: bool
    why_not: str


class RepairOptions(View):
    """What can be repaired, and how.

    Args:
        run_id: the run; empty if there is none yet.
        slices: confirmed ones, largest gap first.
        strategies: all registered ones.
        baselines: what every repair is compared with.
        budget: samples that may be taken from the pool, as in weakspot.toml.
        n_pool: samples in the pool.
        why_not: why nothing can be repaired here; empty if something can.
        only_collects: why the last layer cannot be retrained here, so that a repair lists rows to collect and training weights instead;
            empty if it can.
    """

    run_id: str
    slices: list[ConfirmedSlice]
    strategies: list[Strategy]
    baselines: list[str]
    budget: int
    n_pool: int
    why_not: str
    only_collects: str = ""


def repair_options(workspace: Workspace, run_id: str | None = None) -> RepairOptions:
    """Return what can be repaired of a run, the newest by default.

    Raises:
        StoreError: if there is no such run.
    """
    settings = workspace.project.settings.repair
    known = workspace.project.store.runs.run_ids()
    chosen = run_id or (known[-1] if known else None)
    if chosen is None:
        why_not = "There is no run yet. Look for failures on the overview first."
        return RepairOptions(
            run_id="", slices=[], strategies=[], baselines=[], budget=0, n_pool=0, why_not=why_not
        )
    slices, obstacle = workspace.make_of_run(
        chosen, "repairable", lambda record: _repairable(workspace, record)
    )
    n_pool = len(workspace.samples.dataset.rows_of(Split.POOL))
    return RepairOptions(
        run_id=chosen,
        slices=slices,
        strategies=_strategies(workspace, n_pool=n_pool),
        baselines=[arm_name(name) for name in BASELINES],
        budget=settings.budget,
        n_pool=n_pool,
        why_not="" if slices else obstacle,
        only_collects=obstacle if slices else "",
    )


def _repairable(workspace: Workspace, record: RunRecord) -> tuple[list[ConfirmedSlice], str]:
    samples = workspace.samples
    subjects = [slice_ for slice_, _ in record.published()]
    subjects = subjects or [*failing_classes(record, samples.dataset.task)]
    return confirmed_slices(record), obstacle_to_repair(subjects, samples)


def _strategies(workspace: Workspace, *, n_pool: int) -> list[Strategy]:
    settings = workspace.project.settings
    options = {
        name: {"column": settings.repair.groups} for name in GROUP_METHODS if settings.repair.groups
    }
    able = set(buildable("repairers", options))
    found = []
    for name in registered("repairers"):
        try:
            part = part_class("repairers", name)
        except ConfigError:
            continue
        found.append(
            Strategy(
                name=name,
                title=arm_name(name),
                sentence=first_sentence(part),
                is_configured=name == settings.repair.method,
                is_baseline=bool(getattr(part, "is_baseline", False)),
                why_not=_why_not(workspace, name, able=able, n_pool=n_pool),
            )
        )
    return sorted(
        found, key=lambda one: (not one.is_configured, bool(one.why_not), one.is_baseline, one.name)
    )


def _why_not(workspace: Workspace, name: str, *, able: set[str], n_pool: int) -> str:
    """Return why a strategy cannot be used on these samples; empty if it can."""
    repair = workspace.project.settings.repair
    if name.startswith(POOL_PREFIX) and not n_pool:
        return "There are no samples in the split “pool” to choose from."
    if name in GROUP_METHODS and not repair.groups:
        return "[repair] groups in weakspot.toml names no column with group labels."
    if name == SYNTHETIC and not repair.synthetic:
        return "[repair] synthetic in weakspot.toml names no folder of generated images."
    if name not in able:
        return "It needs options that weakspot.toml does not give."
    return ""


class RepairView(View):
    """One repair beside its baselines.

    Args:
        slice_ids: the slices that were repaired.
        worse: what got worse, in words; that a repair made its own slices worse comes first.
        section: what else it did, in the words and figures of the report.
    """

    slice_ids: tuple[str, ...]
    worse: tuple[str, ...]
    section: RepairSection


class KeptSlice(View):
    """What a repair did to a slice, by its present name."""

    slice_id: str
    title: str
    n_samples: int
    right_before: int
    right_after: int


class KeptRepairView(View):
    """One of all repairs of a run, in short, to compare them.

    Args:
        repair_id: which one.
        made: ISO 8601, UTC; empty if it is not known.
        is_current: whether it is the one that is shown and downloaded.
        title: its strategy, as people read it.
        n_strategies: how many strategies were compared in it.
        slices: the slices it was made for.
        n_samples: samples it was measured on.
        right_before: of them, right before.
        right_after: of them, right after.
        worse: what got worse, in words; empty if nothing was retrained.
    """

    repair_id: str
    made: str
    is_current: bool
    title: str
    n_strategies: int
    slices: tuple[KeptSlice, ...]
    n_samples: int
    right_before: int
    right_after: int
    worse: str


class RepairResults(View):
    """What repairs of a run did.

    Args:
        run_id: the run; empty if there is none.
        note: why nothing was repaired; empty if something was.
        repairs: the chosen strategy first.
        comparison: strategies side by side, none if there are not several.
        names: of strategies and baselines, as people read them.
        kept: all repairs of the run, newest first.
    """

    run_id: str
    note: str
    repairs: tuple[RepairView, ...]
    comparison: tuple[StrategyRow, ...]
    names: dict[str, str]
    kept: tuple[KeptRepairView, ...] = ()


def repair_results(workspace: Workspace, run_id: str | None = None) -> RepairResults:
    """Return what repairs of a run did, the newest by default.

    Raises:
        StoreError: if there is no such run.
    """
    known = workspace.project.store.runs.run_ids()
    chosen = run_id or (known[-1] if known else None)
    if chosen is None:
        return RepairResults(run_id="", note="", repairs=(), comparison=(), names={})
    return workspace.make_of_run(chosen, "repairs", results_of)


def results_of(record: RunRecord) -> RepairResults:
    compared = compare_strategies(record.repairs)
    rows = () if compared is None else compared.rows
    used = [arm.arm for result in record.repairs for arm in result.arms]
    return RepairResults(
        run_id=record.run_id,
        note=" ".join(note.note for note in record.notes if note.class_name == REPAIR_NOTE),
        repairs=tuple(_repair(result) for result in record.repairs),
        comparison=tuple(replace(row, arm=row.arm and _in_short(row.arm)) for row in rows),
        names={name: arm_name(name) for name in [*used, *(row.strategy for row in rows)]},
        kept=_kept(record),
    )


def _kept(record: RunRecord) -> tuple[KeptRepairView, ...]:
    titles = {slice_id: found.title for slice_id, found in record.slices_by_id().items()}
    every = [(one.repair_id, one.made, one.repairs) for one in record.earlier_repairs]
    shown = [_in_brief(*one, titles, is_current=False) for one in every]
    if any(result.arms or result.needs for result in record.repairs):
        current = current_id(record), record.repaired, record.repairs
        shown.append(_in_brief(*current, titles, is_current=True))
    return tuple(sorted(shown, key=lambda one: one.made, reverse=True))


def _in_brief(
    repair_id: str,
    made: str,
    repairs: tuple[RepairResult, ...],
    titles: Mapping[str, str],
    *,
    is_current: bool,
) -> KeptRepairView:
    first = repairs[0]
    overall = first.arms[0].change_of(GroupKind.OVERALL) if first.arms else None
    changes = [(slice_id, first.change_of_slice(slice_id)) for slice_id in first.plan.slice_ids]
    return KeptRepairView(
        repair_id=repair_id,
        made=made,
        is_current=is_current,
        title=arm_name(first.plan.repairer) if first.arms else "Rows to collect",
        n_strategies=len(repairs),
        slices=tuple(
            KeptSlice(
                slice_id=slice_id,
                title=titles.get(slice_id, slice_id),
                n_samples=0 if change is None else change.n_samples,
                right_before=0 if change is None else change.right_before,
                right_after=0 if change is None else change.right_after,
            )
            for slice_id, change in changes
        ),
        n_samples=0 if overall is None else overall.n_samples,
        right_before=0 if overall is None else overall.right_before,
        right_after=0 if overall is None else overall.right_after,
        worse=next(iter(worse_sentences(first.arms[0])), "") if first.arms else "",
    )


class GoBack(View):
    """Which repair is to be the current one."""

    repair_id: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{12}$")]


def go_back_to(workspace: Workspace, repair_id: str, run_id: str | None = None) -> RepairResults:
    """Make an earlier repair of a run the current one again.

    Raises:
        DataError: if there is no such repair.
    """
    record = workspace.record(run_id)
    if record is None:
        raise DataError("There is no run yet, so nothing was repaired.")
    with workspace.editing() as project:
        go_back(project.store, record.run_id, repair_id)
    return repair_results(workspace, record.run_id)


def current_repair(workspace: Workspace, run_id: str | None) -> str:
    """Return which repair of a run is in use; empty if there is none."""
    record = workspace.record(run_id)
    return "" if record is None else current_id(record)


def title_of_repair(workspace: Workspace, run_id: str | None, repair_id: str) -> str:
    """Return what a repair of a run is called."""
    record = workspace.record(run_id)
    kept = () if record is None else _kept(record)
    found = next((one for one in kept if one.repair_id == repair_id), None)
    return repair_id if found is None else f"{found.title} of {found.made[:19].replace('T', ' ')}"


def _repair(result: RepairResult) -> RepairView:
    """Return a repair without what is told elsewhere on the page, and without places of files on the server."""
    section = repair_section(result)
    said = (slice_warning(arm) for arm in section.arms[:1])
    worse = (
        *(warning for warning in said if warning),
        *(sentence for arm in section.arms[:1] for sentence in worse_sentences(arm)),
    )
    shown = replace(
        section,
        sentences=tuple(one for one in section.sentences if one not in worse),
        arms=tuple(_in_short(arm) for arm in section.arms),
        spread=tuple(replace(row, arm=_in_short(row.arm)) for row in section.spread),
        given=tuple(replace(row, arm=_in_short(row.arm)) for row in section.given),
        looked_again=None,
        request=None,
        files=(),
    )
    return RepairView(slice_ids=result.plan.slice_ids, worse=worse, section=shown)


def _in_short(arm: RepairArm) -> RepairArm:
    return arm.model_copy(update={"changes": (), "elsewhere": ()})
