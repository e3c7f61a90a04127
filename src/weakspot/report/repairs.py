"""One repair beside its baselines, ordered and worded."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from weakspot.core.evidence import Share
from weakspot.core.repairs import (
    Aftermath,
    ArmMeasurement,
    GroupChange,
    GroupKind,
    LabellingRequest,
    RepairArm,
    RepairResult,
    SliceNeed,
)
from weakspot.core.spreads import Spread
from weakspot.report import repair_wording as words
from weakspot.report.need_wording import need_sentences
from weakspot.report.wording import arm_name


@dataclass(frozen=True, kw_only=True)
class RepairRow:
    """One group in the table of a repair: before, and after for every arm; None where an arm was not measured on it."""

    group: str
    kind: GroupKind
    before: GroupChange
    after: tuple[GroupChange | None, ...]


@dataclass(frozen=True, kw_only=True)
class AccountingRow:
    """Clean accuracy or resolved failures on one set of samples, for every arm.

    Args:
        data: the samples, with the part they play.
        is_clean: whether it counts formerly right samples that still are, or former failures that are right now.
        shares: one an arm; None where an arm was not measured on them.
    """

    data: str
    is_clean: bool
    shares: tuple[Share | None, ...]


@dataclass(frozen=True, kw_only=True)
class SpreadRow:
    """How even one arm became."""

    arm: RepairArm
    spread: Spread


@dataclass(frozen=True, kw_only=True)
class RepairSection:
    """One repair beside its baselines.

    Args:
        strategy: registered name of the strategy.
        title: heading.
        sentences: what it did, in words; first, that it made its own slices worse, if it did, and what else got worse last.
        arms: the repair first.
        rows: overall, then slices and what surrounds them, then classes that changed.
        n_unchanged: classes that are not listed because nothing changed in them.
        measured_on: the data.
        got_worse: groups whose accuracy fell with the repair.
        accounting: clean accuracy and resolved failures.
        spread: how even every arm became.
        given: the same over the groups that somebody named in a column; empty if nobody did.
        aftermath: failures looked for again, in words.
        looked_again: the same as figures, None if that was not done.
        calibration: in words; empty if it was not measured.
        labelling: which labels are awaited, in words; empty if none are.
        request: the same as figures.
        files: what was written for the user.
        notes: what could not be done, and why.
        needs: what every slice lacks, where nothing could be retrained.
    """

    strategy: str
    title: str
    sentences: tuple[str, ...]
    arms: tuple[RepairArm, ...]
    rows: tuple[RepairRow, ...]
    n_unchanged: int
    measured_on: str
    got_worse: tuple[str, ...]
    accounting: tuple[AccountingRow, ...] = ()
    spread: tuple[SpreadRow, ...] = ()
    given: tuple[SpreadRow, ...] = ()
    aftermath: tuple[str, ...] = ()
    looked_again: Aftermath | None = None
    calibration: str = ""
    labelling: str = ""
    request: LabellingRequest | None = None
    files: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    needs: tuple[SliceNeed, ...] = ()


def main_arm(result: RepairResult) -> RepairArm | None:
    """Return the arm of a result's own strategy, which may itself be a baseline; None while labels are awaited."""
    named = [arm for arm in result.arms if arm.arm == result.plan.repairer]
    repaired = [arm for arm in result.arms if not arm.is_baseline]
    return next(iter([*named, *repaired, *result.arms]), None)


def arms_in_order(result: RepairResult) -> tuple[RepairArm, ...]:
    main = main_arm(result)
    return () if main is None else (main, *(arm for arm in result.arms if arm is not main))


def repair_section(result: RepairResult) -> RepairSection:
    """Order and word one result; one without arms says what it waits for."""
    arms = arms_in_order(result)
    rows, n_unchanged = _rows(arms)
    labelling = "" if result.labelling is None else labels_sentence(result.labelling, result)
    sentences = tuple(repair_sentences(result)) or (labelling or "Nothing was measured.",)
    kind = "Repair (exploratory)" if result.plan.is_exploratory else "Repair"
    title = f"{kind}: {arm_name(result.plan.repairer)}"
    return RepairSection(
        strategy=result.plan.repairer,
        title="Repair without retraining" if result.needs else title,
        sentences=sentences,
        arms=arms,
        rows=rows,
        n_unchanged=n_unchanged,
        measured_on=result.measured_on.name,
        got_worse=tuple(change.group for change in words.fallen_groups(arms[0])) if arms else (),
        accounting=tuple(_accounting(result, arms)),
        spread=tuple(
            SpreadRow(arm=arm, spread=arm.spread) for arm in arms if arm.spread is not None
        ),
        given=tuple(
            SpreadRow(arm=arm, spread=arm.given.spread)
            for arm in arms
            if arm.given is not None and arm.given.spread is not None
        ),
        aftermath=()
        if result.aftermath is None
        else tuple(words.aftermath_sentences(result.aftermath)),
        looked_again=result.aftermath,
        calibration=words.calibration_sentence(arms[0]) if arms else "",
        labelling=labelling if labelling not in sentences else "",
        request=result.labelling,
        files=result.files or ((result.head_file,) if result.head_file else ()),
        notes=(*([words.EXPLORATORY] if result.plan.is_exploratory else []), *result.notes),
        needs=result.needs,
    )


def labels_sentence(request: LabellingRequest, result: RepairResult) -> str:
    """Return which labels are awaited or, where rows are only to be collected, would help."""
    if not result.needs:
        return words.labelling_sentence(request)
    return (
        f"{request.n_samples - request.n_labelled:,} pool rows that fit have no label: they are listed in {request.file}; "
        f"with labels filled in, `weakspot repair --labels {request.file}` counts them, too."
    )


def repair_sentences(result: RepairResult) -> Iterator[str]:
    """Yield what a repair did, or what slices need where nothing could be retrained; nothing while labels are awaited."""
    arms = arms_in_order(result)
    for need in result.needs:
        yield " ".join(need_sentences(need))
    if not arms:
        return
    yield from [warning] if (warning := words.slice_warning(arms[0])) else []
    for change in arms[0].changes:
        if change.kind is GroupKind.SLICE:
            yield _slice_sentence(change, [arm for arm in arms[1:] if not arm.is_reference])
    overall = arms[0].change_of(GroupKind.OVERALL)
    if overall is not None and overall.n_samples:
        yield words.overall_sentence(overall)
    if arms[0].spread is not None:
        yield words.spread_sentence(arms[0].spread)
    if arms[0].given is not None:
        yield from words.given_sentences(arms[0].given)
    for one, change in _measured_overall(result, arms[0]):
        yield words.accounting_sentence(one.measured_on, change)
    yield from words.worse_sentences(arms[0])


def _slice_sentence(change: GroupChange, baselines: Sequence[RepairArm]) -> str:
    if not change.n_samples:
        return f"No measured sample is a member of “{change.group}”, so nothing can be said of it."
    rivals = [
        (arm, same)
        for arm in baselines
        if (same := arm.change_of(change.kind, change.group)) is not None
    ]
    best = max(rivals, key=lambda pair: pair[1].right_after, default=None)
    rival = (
        ""
        if best is None
        else words.rival_words(best[0].arm, best[1], change, best[0].change_of(GroupKind.OVERALL))
    )
    return f"{words.repair_sentence(change)}{rival}."


def _rows(arms: Sequence[RepairArm]) -> tuple[tuple[RepairRow, ...], int]:
    rows, n_unchanged = [], 0
    by_group = [{(change.kind, change.group): change for change in arm.changes} for arm in arms]
    for key, change in by_group[0].items() if by_group else ():
        if change.kind in words.FORMER:
            continue
        after = tuple(changes.get(key) for changes in by_group)
        if change.kind is GroupKind.CLASS and not any(
            one is not None and (one.gained or one.lost) for one in after
        ):
            n_unchanged += 1
            continue
        rows.append(RepairRow(group=change.group, kind=change.kind, before=change, after=after))
    return tuple(rows), n_unchanged


def _measured_overall(
    result: RepairResult, arm: RepairArm
) -> Iterator[tuple[ArmMeasurement, GroupChange]]:
    """Yield the decisive data and then the halves, with the change over all their samples."""
    for one in (
        ArmMeasurement(measured_on=result.measured_on, changes=arm.changes),
        *arm.elsewhere,
    ):
        overall = next(
            (
                change
                for change in one.changes
                if change.kind is GroupKind.OVERALL and change.n_samples
            ),
            None,
        )
        if overall is not None:
            yield one, overall


def _accounting(result: RepairResult, arms: Sequence[RepairArm]) -> Iterator[AccountingRow]:
    by_arm = [
        {one.measured_on.digest: overall for one, overall in _measured_overall(result, arm)}
        for arm in arms
    ]
    if not arms:
        return
    for one, _ in _measured_overall(result, arms[0]):
        changes = [overalls.get(one.measured_on.digest) for overalls in by_arm]
        for is_clean, share_of in ((False, words.resolved), (True, words.kept_right)):
            shares = tuple(None if change is None else share_of(change) for change in changes)
            yield AccountingRow(
                data=words.data_words(one.measured_on), is_clean=is_clean, shares=shares
            )
