"""What repairs did, as sentences: nothing is called a rise or a fall that may be chance."""

from collections.abc import Iterator, Sequence

from weakspot.core.evidence import Interval, Share
from weakspot.core.repairs import (
    Aftermath,
    GroupChange,
    GroupKind,
    LabellingRequest,
    RepairArm,
    SliceAfter,
    SliceStatus,
)
from weakspot.core.slices import DataUse
from weakspot.core.spreads import GivenGroups, Spread
from weakspot.report.wording import CERTAIN, arm_name, count, interval, p_value, percent

MOST_NAMED = 12
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
    return f"{_signed(values.low)} to {_signed(values.high)}"


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


def _signed(share: float) -> str:
    rounded = round(100 * share)
    return f"−{-rounded}" if rounded < 0 else f"+{rounded}" if rounded else "0"


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


def repair_sentence(change: GroupChange) -> str:
    return (
        f"Accuracy on {quoted(change.group)} {movement(change)}: {change.right_before} of {count(change.n_samples, 'sample')} "
        f"right before, {change.right_after} after ({interval(change.interval_after)})"
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


def overall_sentence(change: GroupChange) -> str:
    return (
        f"Overall accuracy, on {count(change.n_samples, 'sample')}, {movement(change)}; "
        f"{change.gained:,} gained, {change.lost:,} lost."
    )


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
        for one in changes[:MOST_NAMED]
    ]
    rest = f", and {len(changes) - MOST_NAMED} more" if len(changes) > MOST_NAMED else ""
    return f"{', '.join(named)}{rest}"


def aftermath_sentences(aftermath: Aftermath) -> Iterator[str]:
    """Yield what became of slices when failures were looked for again."""
    tested = f", {count(aftermath.n_tested, 'slice')} tested" if aftermath.n_tested else ""
    yield f"Failures were looked for again after the repair, in the same way (on {aftermath.measured_on.name}{tested})."
    for status, words in STATUS_WORDS.items():
        chosen = [one for one in aftermath.slices if one.status is status]
        if chosen:
            yield f"{words.capitalize()}: {', '.join(map(_after_words, chosen))}."
    if not any(one.status is SliceStatus.NEW for one in aftermath.slices):
        yield "No new slice was confirmed."
    if aftermath.note:
        yield aftermath.note


def _after_words(one: SliceAfter) -> str:
    return f"“{one.title}” ({one.failures_before} failures before, {one.failures_after} after, of {one.n_members} members)"


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
