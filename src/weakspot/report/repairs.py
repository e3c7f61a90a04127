"""One repair beside its baselines, and several strategies in one table: ordered, and worded.

Nothing is called a rise or a fall that may be chance.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from weakspot.core.evidence import GivenGroups, Interval, Share, Spread
from weakspot.core.repairs import (
    Aftermath,
    ArmMeasurement,
    GroupChange,
    GroupKind,
    LabellingRequest,
    RepairArm,
    RepairResult,
    SliceNeed,
    SliceStatus,
)
from weakspot.core.slices import DataUse
from weakspot.core.statistics import adjusted_p_values
from weakspot.report.wording import CERTAIN, arm_name, count, interval, p_value, percent, points

MAX_NAMED = 12
MANY_GROUPS = 20
FINE_POINTS = 10
FORMER = (GroupKind.FORMERLY_RIGHT, GroupKind.FORMERLY_WRONG)
STATUS_WORDS = {
    SliceStatus.GONE: "gone",
    SliceStatus.SMALLER: "smaller, but still there",
    SliceStatus.STAYS: "still there",
    SliceStatus.NEW: "new",
}
EXPLORATORY = "Exploratory: a slice of this repair was not confirmed. It shows what retraining for it does, not that failures gather there."


def from_to(before: float, after: float) -> tuple[str, str]:
    """Return two shares in percent, with a decimal where whole numbers would hide the difference.

    >>> from_to(0.07, 0.67), from_to(0.962, 0.964), from_to(0.5, 0.5)
    (('7 %', '67 %'), ('96.2 %', '96.4 %'), ('50 %', '50 %'))
    """
    if before != after and f"{100 * before:.0f}" == f"{100 * after:.0f}":
        return f"{100 * before:.1f} %", f"{100 * after:.1f} %"
    return percent(before), percent(after)


def signed_points(values: Interval) -> str:
    """Return an interval of a change in percentage points.

    >>> signed_points(Interval(low=-0.02, high=0.11))
    '−2 to +11'
    """
    return f"{points(values.low)} to {points(values.high)}".replace("±", "")


def fine_points(change: float) -> str:
    """Return a change in percentage points, with a decimal where it is small.

    >>> fine_points(0.0123), fine_points(-0.004), fine_points(0.0), fine_points(0.25)
    ('+1.2', '−0.4', '±0', '+25')
    """
    size = abs(100 * change)
    words = f"{size:.1f}" if round(size, 1) < FINE_POINTS else f"{size:.0f}"
    return "±0" if float(words) == 0 else f"{'+' if change > 0 else '−'}{words}"


def fine_interval(values: Interval) -> str:
    """Return an interval of a change in percentage points, with a decimal where it is small.

    >>> fine_interval(Interval(low=-0.012, high=0.2))
    '−1.2 to +20'
    """
    return f"{fine_points(values.low)} to {fine_points(values.high)}".replace("±", "")


def p_words(value: float) -> str:
    """Return a p-value as it stands in a sentence.

    >>> p_words(0.03), p_words(0.00001)
    ('p = 0.03', 'p < 0.0001')
    """
    words = p_value(value)
    return f"p {words}" if words.startswith("<") else f"p = {words}"


def quoted(group: str) -> str:
    """Return a group in quotation marks, unless it holds some itself.

    >>> quoted("pear"), quoted("pear: all but “pear: old”")
    ('“pear”', 'pear: all but “pear: old”')
    """
    return group if "“" in group else f"“{group}”"


def movement(change: GroupChange) -> str:
    before, after = from_to(change.accuracy_before, change.accuracy_after)
    if not change.gained and not change.lost:
        return f"stayed at {before}"
    if change.right_before == change.right_after:
        return f"stayed at {before}, with {change.gained} samples gained and as many lost"
    if change.chance > CERTAIN:
        return f"went from {before} to {after}, which may be chance ({p_words(change.chance)})"
    return (
        f"{'rose' if change.right_after > change.right_before else 'fell'} from {before} to {after}"
    )


def rival_words(
    arm: str, rival: GroupChange, repaired: GroupChange, overall: GroupChange | None
) -> str:
    """Return how far the best baseline came on the same slice, and at what cost overall."""
    cost = (
        f"; overall {percent(overall.accuracy_after)}"
        if overall is not None and overall.n_samples
        else ""
    )
    reached = f"{percent(rival.accuracy_after)} ({rival.right_after} of {rival.n_samples}{cost})"
    if rival.right_after >= repaired.right_after:
        return f"; the baseline “{arm_name(arm)}” came as far or farther: {reached}"
    return f"; the best baseline there, “{arm_name(arm)}”, reached {reached}"


def spread_sentence(spread: Spread) -> str:
    """Return what a repair did to the worst served group, the average over groups and the gap."""
    worst, average = (
        from_to(spread.worst_before, spread.worst_after),
        from_to(spread.average_before, spread.average_after),
    )
    change, gap = spread.worst_change, spread.gap_change
    verb = "rose" if change.low > 0 else "fell" if change.high < 0 else "went"
    doubt = ", which may be chance" if verb == "went" else ""
    return (
        f"The lowest accuracy of a group {verb} from {worst[0]} to {worst[1]}{doubt} ({100 * change.level:.0f} % interval of the "
        f"change {signed_points(change)} points; now lowest: {quoted(spread.worst_group)}); the average over groups went from "
        f"{average[0]} to {average[1]}, and the gap between overall and lowest from {100 * spread.gap_before:.0f} to "
        f"{100 * spread.gap_after:.0f} points (interval of the change {signed_points(gap)})."
    )


def given_sentences(given: GivenGroups) -> Iterator[str]:
    """Yield what a repair did to the groups that somebody named in a column."""
    if given.spread is None:
        yield f"Fewer than two groups by class and “{given.column}” have enough measured samples to be compared."
        return
    yield f"Over the groups by class and “{given.column}”, which no method has seen: {spread_sentence(given.spread)}"


def data_words(use: DataUse) -> str:
    """Return data with the part it plays: failures that slices were found on are the seed, the other half is held out.

    >>> data_words(DataUse(name="validation, discovery half", n_samples=4, digest="d"))
    'seed (validation, discovery half)'
    """
    if "discovery" in use.name:
        return f"seed ({use.name})"
    return f"held-out ({use.name})" if "confirmation" in use.name else use.name


def kept_right(change: GroupChange) -> Share:
    """Return, of the samples that were right before, how many still are."""
    return Share.of(change.right_before - change.lost, change.right_before)


def resolved(change: GroupChange) -> Share:
    """Return, of the samples that failed before, how many are right now."""
    return Share.of(change.gained, change.n_samples - change.right_before)


def accounting_sentence(use: DataUse, overall: GroupChange) -> str:
    right, wrong = kept_right(overall), resolved(overall)
    failures = (
        f"{_share_words(wrong)} former failures are now right"
        if wrong.total
        else "nothing had failed"
    )
    clean = (
        f"{_share_words(right)} formerly right samples still are"
        if right.total
        else "nothing had been right"
    )
    return f"On {data_words(use)}: {failures}; {clean}."


def _share_words(share: Share) -> str:
    return (
        f"{share.count:,} of {share.total:,} ({percent(share.value)}, {interval(share.interval)})"
    )


def fallen_groups(arm: RepairArm) -> tuple[GroupChange, ...]:
    """Return the groups whose accuracy fell, surest first; formerly right samples can do nothing else and are left out."""
    fallen = [
        one for one in arm.changes if one.right_after < one.right_before and one.kind not in FORMER
    ]
    return tuple(sorted(fallen, key=lambda one: (one.chance, one.change)))


def slice_warning(arm: RepairArm) -> str:
    """Return that a repair made the very slices worse that it is for, which is said before anything else; empty if it did not."""
    fallen = [one for one in fallen_groups(arm) if one.kind is GroupKind.SLICE]
    if not fallen:
        return ""
    doubt = "" if any(one.chance <= CERTAIN for one in fallen) else "; it may be chance"
    return f"Do not use this repair: the slice it is for has become worse, {_named(fallen)}{doubt}."


def worse_sentences(arm: RepairArm) -> Iterator[str]:
    """Yield what got worse, named, told apart by whether it is more than chance."""
    fallen = fallen_groups(arm)
    n_groups = sum(one.kind not in FORMER and one.n_samples > 0 for one in arm.changes)
    sure = [one for one in fallen if one.chance <= CERTAIN]
    unsure = [one for one in fallen if one.chance > CERTAIN]
    if sure:
        by_chance = (
            f" Among {n_groups} groups, one in twenty can seem so by chance."
            if n_groups > MANY_GROUPS
            else ""
        )
        yield f"Got worse, by more than chance: {_named(sure)}.{by_chance}"
    if unsure:
        yield f"Lower, which may be chance: {_named(unsure)}."
    if not fallen:
        yield "No group got worse."


def _named(changes: Sequence[GroupChange]) -> str:
    named = [
        f"{quoted(one.group)} ({one.right_before} to {one.right_after} of {one.n_samples:,} right, {p_words(one.chance)})"
        for one in changes[:MAX_NAMED]
    ]
    rest = f", and {len(changes) - MAX_NAMED} more" if len(changes) > MAX_NAMED else ""
    return f"{', '.join(named)}{rest}"


def aftermath_sentences(aftermath: Aftermath) -> Iterator[str]:
    """Yield what became of slices when failures were looked for again."""
    tested = f", {count(aftermath.n_tested, 'slice')} tested" if aftermath.n_tested else ""
    yield f"Failures were looked for again after the repair, in the same way (on {aftermath.measured_on.name}{tested})."
    for status, words in STATUS_WORDS.items():
        after = [
            f"“{one.title}” ({one.failures_before} failures before, {one.failures_after} after, of {one.n_members} members)"
            for one in aftermath.slices
            if one.status is status
        ]
        if after:
            yield f"{words.capitalize()}: {', '.join(after)}."
    if not any(one.status is SliceStatus.NEW for one in aftermath.slices):
        yield "No new slice was confirmed."
    if aftermath.note:
        yield aftermath.note


def calibration_sentence(arm: RepairArm) -> str:
    """Return how well probabilities fit what happens, empty if it was not measured."""
    divided = (
        f"; logits were divided by {arm.temperature:.2f}" if arm.temperature is not None else ""
    )
    if arm.calibration_after is None:
        return f"Probabilities were calibrated{divided}." if divided else ""
    before = "" if arm.calibration_before is None else f"{arm.calibration_before:.3f} before, "
    return f"Expected calibration error: {before}{arm.calibration_after:.3f} after{divided}."


def labelling_sentence(request: LabellingRequest) -> str:
    missing = request.n_samples - request.n_labelled
    if missing <= 0:
        return f"Every label that was asked for has come back ({request.n_samples:,})."
    back = (
        f"; {request.n_labelled:,} of {request.n_samples:,} have come back"
        if request.n_labelled
        else ""
    )
    return f"Waiting for {count(missing, 'label')}: {request.file} (images alone: {request.image_list}){back}."


def need_sentences(need: SliceNeed) -> tuple[str, ...]:
    """Return what a slice has, lacks and could get, in words."""
    counts = f"“{need.title}” fails on {need.rate_inside:.0%} of {need.n_inside:,} rows, the rest of its class on {need.rate_outside:.0%}."
    sentences = [counts.replace("%", " %")]
    if need.n_training is not None:
        sentences.append(
            f"It has {need.n_training:,} of the {need.n_class_training:,} training rows of its class."
        )
        if need.n_to_match:
            sentences.append(
                f"{need.n_to_match:,} more would give it the share that it has in evaluation."
            )
    waiting = need.n_pool - need.n_pool_labelled
    unlabelled = f", and {waiting:,} without a label" if waiting else ""
    sentences.append(f"The pool has {need.n_pool_labelled:,} labelled rows that fit{unlabelled}.")
    return (*sentences, *_estimates(need))


def _estimates(need: SliceNeed) -> tuple[str, ...]:
    if not need.estimates:
        return (f"How many rows a given gain takes cannot be estimated: {need.why_no_estimate}.",)
    told = " and ".join(
        f"about {one.n_rows:,} more rows for {100 * one.gain:.0f} points" for one in need.estimates
    )
    return (
        f"Estimate, not measured: {told}, if more rows do for it what they do across {need.n_kinds} other kinds of its "
        f"class, which fail less with the power {need.exponent or 0.0:.2f} of their number of training rows.",
    )


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
        got_worse=tuple(change.group for change in fallen_groups(arms[0])) if arms else (),
        accounting=tuple(_accounting(result, arms)),
        spread=tuple(
            SpreadRow(arm=arm, spread=arm.spread) for arm in arms if arm.spread is not None
        ),
        given=tuple(
            SpreadRow(arm=arm, spread=arm.given.spread)
            for arm in arms
            if arm.given is not None and arm.given.spread is not None
        ),
        aftermath=() if result.aftermath is None else tuple(aftermath_sentences(result.aftermath)),
        looked_again=result.aftermath,
        calibration=calibration_sentence(arms[0]) if arms else "",
        labelling=labelling if labelling not in sentences else "",
        request=result.labelling,
        files=result.files or ((result.head_file,) if result.head_file else ()),
        notes=(*([EXPLORATORY] if result.plan.is_exploratory else []), *result.notes),
        needs=result.needs,
    )


def labels_sentence(request: LabellingRequest, result: RepairResult) -> str:
    """Return which labels are awaited or, where rows are only to be collected, would help."""
    if not result.needs:
        return labelling_sentence(request)
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
    yield from [warning] if (warning := slice_warning(arms[0])) else []
    for change in arms[0].changes:
        if change.kind is GroupKind.SLICE:
            yield _slice_sentence(change, [arm for arm in arms[1:] if not arm.is_reference])
    overall = arms[0].change_of(GroupKind.OVERALL)
    if overall is not None and overall.n_samples:
        yield (
            f"Overall accuracy, on {count(overall.n_samples, 'sample')}, {movement(overall)}; "
            f"{overall.gained:,} gained, {overall.lost:,} lost."
        )
    if arms[0].spread is not None:
        yield spread_sentence(arms[0].spread)
    if arms[0].given is not None:
        yield from given_sentences(arms[0].given)
    for one, change in _measured_overall(result, arms[0]):
        yield accounting_sentence(one.measured_on, change)
    yield from worse_sentences(arms[0])


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
        else rival_words(best[0].arm, best[1], change, best[0].change_of(GroupKind.OVERALL))
    )
    return (
        f"Accuracy on {quoted(change.group)} {movement(change)}: {change.right_before} of {count(change.n_samples, 'sample')} "
        f"right before, {change.right_after} after ({interval(change.interval_after)}){rival}."
    )


def _rows(arms: Sequence[RepairArm]) -> tuple[tuple[RepairRow, ...], int]:
    rows, n_unchanged = [], 0
    by_group = [{(change.kind, change.group): change for change in arm.changes} for arm in arms]
    for key, change in by_group[0].items() if by_group else ():
        if change.kind in FORMER:
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
        for is_clean, share_of in ((False, resolved), (True, kept_right)):
            shares = tuple(None if change is None else share_of(change) for change in changes)
            yield AccountingRow(data=data_words(one.measured_on), is_clean=is_clean, shares=shares)


FEWEST = 2


@dataclass(frozen=True, kw_only=True)
class Move:
    """The change of accuracy over one or several groups.

    Groups may overlap, and by how much is not known here. So the interval is the mean of the groups' own intervals, which no
    overlap can make too narrow, and the p-value is the smallest of theirs times their number.

    Args:
        change: accuracy after minus accuracy before; larger is better.
        interval: of the change; paired.
        gained: wrong before, right after.
        lost: right before, wrong after.
        n_samples: samples of all groups; one in two groups counts twice.
        p_value: the exact test, of the groups that moved the same way as all together; over all that these samples measured.
    """

    change: float
    interval: Interval
    gained: int
    lost: int
    n_samples: int
    p_value: float

    @classmethod
    def over(cls, changes: Sequence[GroupChange]) -> "Move | None":
        """Return the change over all samples of the groups, None if there are none."""
        groups = [one for one in changes if one.n_samples]
        n_samples = sum(one.n_samples for one in groups)
        if not n_samples:
            return None
        gained, lost = sum(one.gained for one in groups), sum(one.lost for one in groups)
        bounds = [one.interval_of_change for one in groups]
        low, high = (
            sum(
                one.n_samples * getattr(bound, end)
                for one, bound in zip(groups, bounds, strict=True)
            )
            for end in ("low", "high")
        )
        alike = [one.chance for one in groups if (one.gained - one.lost) * (gained - lost) > 0]
        return cls(
            change=(gained - lost) / n_samples,
            interval=Interval(low=low / n_samples, high=high / n_samples),
            gained=gained,
            lost=lost,
            n_samples=n_samples,
            p_value=min([1.0, *(len(groups) * p_value for p_value in alike)]),
        )

    @property
    def is_certain(self) -> bool:
        return self.p_value <= CERTAIN and (self.interval.low > 0 or self.interval.high < 0)


@dataclass(frozen=True, kw_only=True)
class StrategyRow:
    """One strategy or baseline of a comparison.

    Args:
        strategy: registered name.
        is_baseline: whether it only stands there for comparison.
        is_chosen: whether it is the strategy that the run repairs with.
        arm: its figures, None while labels are awaited.
        on_slices: change over all slices.
        on_rest: change over the rest of their classes.
        overall: change over all samples.
        rival: the best of its own baselines on the slices, and the change there.
        got_worse: groups that fell by more than chance.
        n_lower: groups that fell at all.
        note: why there are no figures.
    """

    strategy: str
    is_baseline: bool
    is_chosen: bool = False
    arm: RepairArm | None = None
    on_slices: Move | None = None
    on_rest: Move | None = None
    overall: Move | None = None
    rival: tuple[str, Move] | None = None
    got_worse: tuple[str, ...] = ()
    n_lower: int = 0
    note: str = ""

    @property
    def title(self) -> str:
        return arm_name(self.strategy)


@dataclass(frozen=True, kw_only=True)
class StrategyComparison:
    """Strategies side by side, all measured on the same samples.

    Args:
        rows: the chosen strategy, the others by what they did to slices, then baselines.
        measured_on: the data.
        n_samples: how many.
        n_slices: how many slices were repaired.
    """

    rows: tuple[StrategyRow, ...]
    measured_on: str
    n_samples: int
    n_slices: int

    @property
    def given(self) -> tuple[tuple[str, GivenGroups, Spread], ...]:
        """Return title and figures of the rows that were measured over groups that somebody named in a column."""
        return tuple(
            (row.title, row.arm.given, row.arm.given.spread)
            for row in self.rows
            if row.arm is not None
            and row.arm.given is not None
            and row.arm.given.spread is not None
        )

    @property
    def points(self) -> tuple[StrategyRow, ...]:
        return tuple(
            row for row in self.rows if row.on_slices is not None and row.overall is not None
        )


def compare_strategies(predictions: Sequence[RepairResult]) -> StrategyComparison | None:
    """Return strategies side by side, None if there are not several; the first result is the chosen one."""
    if len(predictions) < FEWEST:
        return None
    strategies = [
        _strategy(result, is_chosen=number == 0) for number, result in enumerate(predictions)
    ]
    ordered = strategies[:1] + sorted(strategies[1:], key=_by_gain)
    baselines = sorted(_baselines(predictions, {row.strategy for row in strategies}), key=_by_gain)
    rows = (
        [row for row in ordered if not row.is_baseline]
        + [row for row in ordered if row.is_baseline]
        + baselines
    )
    return StrategyComparison(
        rows=_over_arms(rows),
        measured_on=predictions[0].measured_on.name,
        n_samples=predictions[0].measured_on.n_samples,
        n_slices=len(predictions[0].plan.slice_ids),
    )


def _over_arms(rows: Sequence[StrategyRow]) -> tuple[StrategyRow, ...]:
    """Return rows whose p-values allow for all arms of the table (Holm), one column at a time: whoever compares looks for the best.

    Where the ledger gave them, they allow for that already.
    """
    counted = [change for row in rows if row.arm is not None for change in row.arm.changes]
    if any(change.q_value is not None for change in counted):
        return tuple(rows)
    adjusted = list(rows)
    for column in ("on_slices", "on_rest", "overall"):
        places = [place for place, row in enumerate(rows) if getattr(row, column) is not None]
        moves: list[Move] = [getattr(rows[place], column) for place in places]
        p_values = adjusted_p_values([move.p_value for move in moves], correction="fwer").tolist()
        for place, move, value in zip(places, moves, p_values, strict=True):
            changed: dict[str, Any] = {column: replace(move, p_value=value)}
            adjusted[place] = replace(adjusted[place], **changed)
    return tuple(adjusted)


def _by_gain(row: StrategyRow) -> tuple[float, str]:
    return (float("inf") if row.on_slices is None else -row.on_slices.change, row.strategy)


def _strategy(result: RepairResult, *, is_chosen: bool) -> StrategyRow:
    arm = main_arm(result)
    if arm is None:
        waits = "" if result.labelling is None else labelling_sentence(result.labelling)
        note = " ".join([*filter(None, [waits]), *result.notes]) or "Nothing was measured."
        return StrategyRow(
            strategy=result.plan.repairer, is_baseline=False, is_chosen=is_chosen, note=note
        )
    others = [other for other in result.arms if other is not arm and not other.is_reference]
    rivals = [(other.arm, move) for other in others if (move := _on(other, GroupKind.SLICE))]
    rival = max(rivals, key=lambda pair: pair[1].change, default=None)
    return _row(arm, is_chosen=is_chosen, rival=rival)


def _baselines(predictions: Sequence[RepairResult], listed: set[str]) -> Iterator[StrategyRow]:
    """Yield the baselines of the chosen strategy, and those that only others have; matched controls of others are their rivals."""
    for result in predictions:
        for arm in result.arms:
            if arm.is_baseline and arm.arm not in listed:
                listed = listed | {arm.arm}
                yield _row(arm)


def _row(
    arm: RepairArm, *, is_chosen: bool = False, rival: tuple[str, Move] | None = None
) -> StrategyRow:
    fallen = fallen_groups(arm)
    return StrategyRow(
        strategy=arm.arm,
        is_baseline=arm.is_baseline,
        is_chosen=is_chosen,
        arm=arm,
        on_slices=_on(arm, GroupKind.SLICE),
        on_rest=_on(arm, GroupKind.COMPLEMENT),
        overall=_on(arm, GroupKind.OVERALL),
        rival=rival,
        got_worse=tuple(one.group for one in fallen if one.chance <= CERTAIN),
        n_lower=len(fallen),
    )


def _on(arm: RepairArm, kind: GroupKind) -> Move | None:
    return Move.over([change for change in arm.changes if change.kind is kind])
