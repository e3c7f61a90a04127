"""What became of repaired slices when failures are looked for again, and which slices are new.

Which tests are made. Every repaired slice is tested again with the new predictions, and so is all that the fresh search found,
with the verifier's own test. Error rates are held in two families, whether or not the verifier tested all of it together.

The first family are the repaired slices. To be called gone, a slice has to fail its test, so correcting for everything else that
was tested would make the good news easier the more was tried; only the repaired slices share a correction. They were chosen because
their members failed on these very samples, and new failures resemble old ones, so "still confirmed" is no second proof.

The second family are the slices that are new. They were found on the discovery samples alone and are tested on samples that they
never saw; but they are a choice among all confirmed slices, and the share of false findings in a choice is not held by a correction
over all. So their q-values are computed anew: over the new ones only, with all tests that were made beside them as if those had
found nothing. What that accepts, the correction over all accepts too, and the share of false findings among new slices is held.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from weakspot.core.arrays import BoolArray
from weakspot.core.dataset import Task
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.evidence import Evidence, Verdict
from weakspot.core.repairs import Aftermath, SliceAfter, SliceStatus
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.core.statistics import adjusted_p_values, overlap

LEAST_FALL = 0.2
SAME_AT = 0.5
TESTED = (Verdict.CONFIRMED, Verdict.NOT_CONFIRMED)

Confirmed = tuple[FailureSlice, Evidence]


def aftermath(
    slices: Sequence[FailureSlice],
    before: Mapping[str, Evidence],
    after: Mapping[str, Evidence],
    found: Sequence[Confirmed],
    confirmation: SampleSet,
    *,
    alpha: float,
) -> Aftermath:
    """Return the status of every repaired slice, then the confirmed slices that were not there before.

    A slice is gone if fewer members fail than before and it is no longer confirmed, or fails no more often than the rest of its
    class; smaller if it is still confirmed and at least a fifth of its failures went away; else it stays. A slice that could not
    be tested again is never called gone. A confirmed slice is new if it overlaps less than one half with every repaired slice
    of its class.

    Args:
        slices: the repaired slices.
        before: evidence with the old predictions, by slice id; of the slices found now as well, for their counts.
        after: evidence with the new predictions on the same samples, by slice id.
        found: slices that a fresh search found with the new predictions, with their evidence.
        confirmation: the samples that the evidence was measured on.
        alpha: accepted error rate of the verifier.
    """
    if not 0.0 < alpha < 1.0:
        raise ConfigError("The setting alpha must lie between 0 and 1.", given=alpha)
    known = [one for one in slices if one.slice_id in before and one.slice_id in after]
    again = _tested_again(known, after)
    old = [
        _old(one, before[one.slice_id], after[one.slice_id], again.get(one.slice_id), alpha)
        for one in known
    ]
    fresh = _fresh(found, slices, confirmation)
    _refuse_if_unmeasured(fresh, before)
    new = [
        _new(one, before[one.slice_id], entry, q_value)
        for (one, entry), q_value in zip(fresh, _q_values(fresh), strict=True)
        if q_value <= alpha
    ]
    return Aftermath(
        measured_on=DataUse.of(confirmation),
        slices=(*old, *new),
        n_tested=_n_tested(known, after, found),
        note=_note(slices, known, old, confirmation),
    )


def _refuse_if_unmeasured(fresh: Sequence[Confirmed], before: Mapping[str, Evidence]) -> None:
    missing = [one.title for one, _ in fresh if one.slice_id not in before]
    if missing:
        raise DataError(
            "How often members of a new slice failed before the repair is not known.",
            given=missing[:5],
            fix="Measure every slice that was found now with the old predictions too, and give that as evidence before.",
        )


def _tested_again(
    slices: Sequence[FailureSlice], after: Mapping[str, Evidence]
) -> dict[str, float]:
    # Of slices with nearly the same members only one is tested; what it says goes for the others.
    entries = {one.slice_id: after[one.slice_id] for one in slices}
    judges = {
        name: after.get(entry.same_as, entry) if entry.same_as is not None else entry
        for name, entry in entries.items()
    }
    tested = {judge.slice_id: judge for judge in judges.values() if judge.verdict in TESTED}
    if not tested:
        return {}
    correction = next(iter(tested.values())).correction
    adjusted = adjusted_p_values(
        [judge.p_value for judge in tested.values()], correction=correction
    ).tolist()
    q_values = dict(zip(tested, adjusted, strict=True))
    return {
        name: q_values[judge.slice_id]
        for name, judge in judges.items()
        if judge.slice_id in q_values
    }


def _old(
    found: FailureSlice, before: Evidence, entry: Evidence, q_value: float | None, alpha: float
) -> SliceAfter:
    return SliceAfter(
        title=found.title,
        slice_id=found.slice_id,
        status=_status(before.failures_inside, entry, q_value, alpha),
        failures_before=before.failures_inside,
        failures_after=entry.failures_inside,
        n_members=entry.n_inside,
        q_value=q_value,
    )


def _status(
    failures_before: int, entry: Evidence, q_value: float | None, alpha: float
) -> SliceStatus:
    fell = failures_before - entry.failures_inside
    is_unconfirmed = q_value is not None and (
        q_value > alpha or entry.rate_inside <= entry.rate_outside
    )
    if fell > 0 and is_unconfirmed:
        return SliceStatus.GONE
    return (
        SliceStatus.SMALLER
        if fell > 0 and fell >= LEAST_FALL * failures_before
        else SliceStatus.STAYS
    )


def _new(found: FailureSlice, before: Evidence, entry: Evidence, q_value: float) -> SliceAfter:
    return SliceAfter(
        title=found.title,
        slice_id=found.slice_id,
        status=SliceStatus.NEW,
        failures_before=before.failures_inside,
        failures_after=entry.failures_inside,
        n_members=entry.n_inside,
        q_value=q_value,
    )


def _fresh(
    found: Sequence[Confirmed], slices: Sequence[FailureSlice], confirmation: SampleSet
) -> list[Confirmed]:
    return [
        (one, entry)
        for one, entry in found
        if entry.verdict is Verdict.CONFIRMED
        and entry.explained is None
        and not _is_old(one, slices, confirmation)
    ]


def _is_old(found: FailureSlice, slices: Sequence[FailureSlice], confirmation: SampleSet) -> bool:
    own = [one for one in slices if (one.class_name, one.side) == (found.class_name, found.side)]
    rows = found.class_rows(confirmation)
    members: BoolArray = found.rule.members(confirmation, rows)
    return any(overlap(members, one.rule.members(confirmation, rows)) >= SAME_AT for one in own)


def _q_values(new: Sequence[Confirmed]) -> list[float]:
    if not new:
        return []
    correction, n_tested = (
        new[0][1].correction,
        max(len(new), *(entry.n_tested for _, entry in new)),
    )
    if correction == "fwer":
        # The chance of any false finding is held for every choice among the findings.
        return [entry.q_value for _, entry in new]
    # Weights were of mean one over all tests, so those of a part of them never add up to more.
    p_values = np.ones(n_tested)
    p_values[: len(new)] = [min(1.0, entry.p_value / entry.weight) for _, entry in new]
    adjusted = adjusted_p_values(p_values, correction=correction)[: len(new)]
    return [
        max(float(value), entry.q_value) for value, (_, entry) in zip(adjusted, new, strict=True)
    ]


def _n_tested(
    slices: Sequence[FailureSlice], after: Mapping[str, Evidence], found: Sequence[Confirmed]
) -> int:
    old = max((after[one.slice_id].n_tested for one in slices), default=0)
    new = max((entry.n_tested for one, entry in found if one.slice_id not in after), default=0)
    together = max((entry.n_tested for one, entry in found if one.slice_id in after), default=0)
    return max(old, together) + new


def _note(
    slices: Sequence[FailureSlice],
    known: Sequence[FailureSlice],
    old: Sequence[SliceAfter],
    confirmation: SampleSet,
) -> str:
    sentences = [
        "The retrained layer was trained on none of these samples, but the repaired slices were chosen on them, so their fall "
        "here is flattered; what the repair is worth is shown by the samples that decide.",
    ]
    if confirmation.dataset.task is Task.MULTI_LABEL:
        sentences.append("Decision thresholds may have been chosen on them.")
    if any(one.status is SliceStatus.GONE for one in old):
        sentences.append(
            "“Gone” means that the slice can no longer be shown, not that it is proven to be no worse than the rest."
        )
    if n_untested := sum(one.q_value is None for one in old):
        sentences.append(
            f"{_slices(n_untested)} could not be tested again and can therefore not be called gone."
        )
    if n_missing := len(slices) - len(known):
        sentences.append(
            f"{_slices(n_missing)} had not been measured here before and cannot be compared."
        )
    return " ".join(sentences)


def _slices(count: int) -> str:
    return "One repaired slice" if count == 1 else f"{count} repaired slices"
