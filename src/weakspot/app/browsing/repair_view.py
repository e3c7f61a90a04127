"""What repairs did, in the words and figures of the report; what got worse is said first."""

from weakspot.app.browsing.overview import ShareView
from weakspot.app.browsing.run_list import made_of_run
from weakspot.app.browsing.view import View
from weakspot.app.browsing.workspace import Workspace
from weakspot.app.repairing import REPAIR_NOTE
from weakspot.core.evidence import Interval
from weakspot.core.repairs import GroupChange, RepairArm, RepairOutcome, Spread
from weakspot.core.run import RunRecord
from weakspot.report.repair_wording import FATE_WORDS, worse_sentences
from weakspot.report.repairs import AccountingRow, RepairRow, RepairSection, repair_section
from weakspot.report.strategies import Move, StrategyRow, compare_strategies
from weakspot.report.wording import CERTAIN, arm_name


class ArmView(View):
    """One way of retraining."""

    arm: str
    title: str
    is_baseline: bool
    is_reference: bool
    note: str
    n_trained: int
    n_added: int
    n_synthetic: int


class ChangeView(View):
    """A group after one way of retraining.

    Args:
        right: the share that is right after.
        change: accuracy after minus accuracy before.
        gained: wrong before, right after.
        lost: right before, wrong after.
        p_value: McNemar's exact test.
        is_certain: whether it is more than chance.
    """

    right: ShareView
    change: float
    gained: int
    lost: int
    p_value: float
    is_certain: bool


class GroupView(View):
    """One group before, and after every way of retraining; null where a way was not measured on it."""

    group: str
    kind: str
    n_samples: int
    before: ShareView
    after: list[ChangeView | None]


class SpreadView(View):
    """How even one way of retraining became; changes in shares, with intervals."""

    arm: str
    worst_group: str
    worst_before: float
    worst_after: float
    worst_change_low: float
    worst_change_high: float
    average_before: float
    average_after: float
    gap_before: float
    gap_after: float


class AccountingView(View):
    """Former failures that are right now, or formerly right samples that still are, for every way of retraining."""

    data: str
    is_clean: bool
    shares: list[ShareView | None]


class SliceAfterView(View):
    """A slice when failures were looked for again."""

    title: str
    slice_id: str
    fate: str
    failures_before: int
    failures_after: int
    n_members: int


class RepairView(View):
    """One repair beside its baselines.

    Args:
        strategy: registered name.
        title: heading.
        slice_ids: the slices that were repaired.
        worse: what got worse, in words.
        sentences: what else it did, in words.
        arms: the repair first.
        groups: overall, slices and what surrounds them, classes that changed.
        n_unchanged: classes that are not listed because nothing changed in them.
        measured_on: the data; nothing was trained or chosen on it.
        spread: how even every way became.
        accounting: clean accuracy and resolved failures.
        aftermath: what became of slices when failures were looked for again, in words.
        slices_after: the same as figures.
        calibration: in words; empty if it was not measured.
        labelling: which labels are awaited, in words; empty if none are.
        notes: what could not be done, and why.
    """

    strategy: str
    title: str
    slice_ids: list[str]
    worse: list[str]
    sentences: list[str]
    arms: list[ArmView]
    groups: list[GroupView]
    n_unchanged: int
    measured_on: str
    spread: list[SpreadView]
    accounting: list[AccountingView]
    aftermath: list[str]
    slices_after: list[SliceAfterView]
    calibration: str
    labelling: str
    notes: list[str]


class MoveView(View):
    """A change of accuracy with its interval."""

    change: float
    low: float
    high: float
    is_certain: bool


class StrategyView(View):
    """One strategy beside others; `rival` is the best of its own baselines on the slices."""

    strategy: str
    title: str
    is_baseline: bool
    is_chosen: bool
    on_slices: MoveView | None
    on_rest: MoveView | None
    overall: MoveView | None
    rival: str
    rival_change: float | None
    worst_before: float | None
    worst_after: float | None
    got_worse: list[str]
    n_lower: int
    note: str


class RepairResults(View):
    """What repairs of a run did.

    Args:
        run_id: the run; empty if there is none.
        note: why nothing was repaired; empty if something was.
        repairs: the chosen strategy first.
        comparison: strategies side by side, none if there are not several.
    """

    run_id: str
    note: str
    repairs: list[RepairView]
    comparison: list[StrategyView]


def repair_results(workspace: Workspace, run_id: str | None = None) -> RepairResults:
    """Return what repairs of a run did, the newest by default.

    Raises:
        StoreError: if there is no such run.
    """
    known = workspace.project.store.runs.run_ids()
    chosen = run_id or (known[-1] if known else None)
    if chosen is None:
        return RepairResults(run_id="", note="", repairs=[], comparison=[])
    return made_of_run(workspace, chosen, "repairs", results_of)


def results_of(record: RunRecord) -> RepairResults:
    """Return what the repairs of a run did."""
    compared = compare_strategies(record.repairs)
    return RepairResults(
        run_id=record.run_id,
        note=" ".join(note.note for note in record.notes if note.class_name == REPAIR_NOTE),
        repairs=[_repair(outcome, repair_section(outcome)) for outcome in record.repairs],
        comparison=[] if compared is None else [_strategy(row) for row in compared.rows],
    )


def _repair(outcome: RepairOutcome, section: RepairSection) -> RepairView:
    worse = list(worse_sentences(section.arms[0])) if section.arms else []
    again = section.looked_again
    return RepairView(
        strategy=section.strategy,
        title=section.title,
        slice_ids=list(outcome.plan.slice_ids),
        worse=worse,
        sentences=[sentence for sentence in section.sentences if sentence not in worse],
        arms=[_arm(arm) for arm in section.arms],
        groups=[_group(row) for row in section.rows],
        n_unchanged=section.n_unchanged,
        measured_on=section.measured_on,
        spread=[_spread(row.arm, row.spread) for row in section.spread],
        accounting=[_accounting(row) for row in section.accounting],
        aftermath=list(section.aftermath),
        slices_after=[
            SliceAfterView(
                title=one.title,
                slice_id=one.slice_id,
                fate=FATE_WORDS[one.fate],
                failures_before=one.failures_before,
                failures_after=one.failures_after,
                n_members=one.n_members,
            )
            for one in (again.slices if again is not None else ())
        ],
        calibration=section.calibration,
        labelling=section.labelling,
        notes=list(section.notes),
    )


def _arm(arm: RepairArm) -> ArmView:
    return ArmView(
        arm=arm.arm,
        title=arm_name(arm.arm),
        is_baseline=arm.is_baseline,
        is_reference=arm.is_reference,
        note=arm.note,
        n_trained=arm.n_trained,
        n_added=arm.n_added,
        n_synthetic=arm.n_synthetic,
    )


def _group(row: RepairRow) -> GroupView:
    before = row.before
    return GroupView(
        group=row.group,
        kind=row.kind.value,
        n_samples=before.n_samples,
        before=_right(before.right_before, before.n_samples, before.interval_before),
        after=[None if change is None else _change(change) for change in row.after],
    )


def _change(change: GroupChange) -> ChangeView:
    return ChangeView(
        right=_right(change.right_after, change.n_samples, change.interval_after),
        change=change.change if change.n_samples else 0.0,
        gained=change.gained,
        lost=change.lost,
        p_value=change.p_value,
        is_certain=change.p_value <= CERTAIN,
    )


def _right(count: int, total: int, interval: Interval) -> ShareView:
    return ShareView(count=count, total=total, value=count / total if total else 0.0, low=interval.low, high=interval.high)


def _spread(arm: RepairArm, spread: Spread) -> SpreadView:
    return SpreadView(
        arm=arm_name(arm.arm),
        worst_group=spread.worst_group,
        worst_before=spread.worst_before,
        worst_after=spread.worst_after,
        worst_change_low=spread.worst_change.low,
        worst_change_high=spread.worst_change.high,
        average_before=spread.average_before,
        average_after=spread.average_after,
        gap_before=spread.gap_before,
        gap_after=spread.gap_after,
    )


def _accounting(row: AccountingRow) -> AccountingView:
    shares = [None if share is None else ShareView.of(share) for share in row.shares]
    return AccountingView(data=row.data, is_clean=row.is_clean, shares=shares)


def _strategy(row: StrategyRow) -> StrategyView:
    spread = row.arm.spread if row.arm is not None else None
    return StrategyView(
        strategy=row.strategy,
        title=row.title,
        is_baseline=row.is_baseline,
        is_chosen=row.is_chosen,
        on_slices=_move(row.on_slices),
        on_rest=_move(row.on_rest),
        overall=_move(row.overall),
        rival="" if row.rival is None else arm_name(row.rival[0]),
        rival_change=None if row.rival is None else row.rival[1].change,
        worst_before=None if spread is None else spread.worst_before,
        worst_after=None if spread is None else spread.worst_after,
        got_worse=list(row.got_worse),
        n_lower=row.n_lower,
        note=row.note,
    )


def _move(move: Move | None) -> MoveView | None:
    if move is None:
        return None
    return MoveView(change=move.change, low=move.interval.low, high=move.interval.high, is_certain=move.is_certain)
