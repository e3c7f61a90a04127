"""What can be repaired here, and how: confirmed slices, strategies, and why some of them cannot be used."""

from weakspot.app.browsing.overview import ShareView
from weakspot.app.browsing.part_words import first_sentence
from weakspot.app.browsing.run_list import made_of_run
from weakspot.app.browsing.view import View
from weakspot.app.browsing.workspace import Workspace
from weakspot.app.repair_bench import GROUP_METHODS
from weakspot.app.repairing import PLAIN, POOL_PREFIX, obstacle_to_repair
from weakspot.app.wiring import buildable
from weakspot.core.dataset import Split
from weakspot.core.errors import ConfigError
from weakspot.core.evidence import Evidence
from weakspot.core.registry import part_class, registered
from weakspot.core.run import RunRecord
from weakspot.core.slices import FailureSlice
from weakspot.repair.twins import TWINS
from weakspot.report.wording import CAUSE_WORDS, arm_name, finding_sentence

SYNTHETIC = "synthetic"
BASELINES = (PLAIN, *TWINS)


class RepairableSlice(View):
    """A confirmed slice.

    Args:
        slice_id: which slice.
        title: its name.
        sentence: what it says.
        inside: failures among its members on the confirmation half.
        cause: the probable cause in words; empty if it was not looked into.
        is_finding: whether no stronger slice explains it: these are repaired if nothing is chosen.
    """

    slice_id: str
    title: str
    sentence: str
    inside: ShareView
    cause: str
    is_finding: bool


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
    """

    run_id: str
    slices: list[RepairableSlice]
    strategies: list[Strategy]
    baselines: list[str]
    budget: int
    n_pool: int
    why_not: str


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
        return RepairOptions(run_id="", slices=[], strategies=[], baselines=[], budget=0, n_pool=0, why_not=why_not)
    slices, why_not = made_of_run(workspace, chosen, "repairable", lambda record: _repairable(workspace, record))
    n_pool = len(workspace.samples.dataset.rows_of(Split.POOL))
    return RepairOptions(
        run_id=chosen,
        slices=slices,
        strategies=_strategies(workspace, n_pool=n_pool),
        baselines=[arm_name(name) for name in BASELINES],
        budget=settings.budget,
        n_pool=n_pool,
        why_not=why_not,
    )


def _repairable(workspace: Workspace, record: RunRecord) -> tuple[list[RepairableSlice], str]:
    published = record.published()
    why_not = obstacle_to_repair([found for found, _ in published], workspace.samples)
    return [_slice(found, evidence) for found, evidence in published], why_not


def _slice(found: FailureSlice, evidence: Evidence) -> RepairableSlice:
    interval = evidence.interval_inside
    return RepairableSlice(
        slice_id=found.slice_id,
        title=found.title,
        sentence=finding_sentence(found, evidence),
        inside=ShareView(
            count=evidence.failures_inside,
            total=evidence.n_inside,
            value=evidence.rate_inside,
            low=interval.low,
            high=interval.high,
        ),
        cause="" if evidence.cause is None else CAUSE_WORDS[evidence.cause.cause],
        is_finding=evidence.explained is None,
    )


def _strategies(workspace: Workspace, *, n_pool: int) -> list[Strategy]:
    settings = workspace.project.settings
    options = {name: {"column": settings.repair.groups} for name in GROUP_METHODS if settings.repair.groups}
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
    return sorted(found, key=lambda one: (not one.is_configured, bool(one.why_not), one.is_baseline, one.name))


def _why_not(workspace: Workspace, name: str, *, able: set[str], n_pool: int) -> str:
    """Return why a strategy cannot be used on these samples; empty if it can."""
    repair = workspace.project.settings.repair
    if name.startswith(POOL_PREFIX) and not n_pool:
        return "There are no samples in the split “pool” to choose from."
    if name in GROUP_METHODS and not repair.groups:
        return "[repair] groups in weakspot.toml names no column with group labels."
    if name == SYNTHETIC and not repair.synthetic:
        return "[repair] synthetic in weakspot.toml names no folder of generated pictures."
    if name not in able:
        return "It needs options that weakspot.toml does not give."
    return ""
