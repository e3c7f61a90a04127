"""The rule on slices that a baseline has not."""

from collections.abc import Iterator, Sequence

import numpy as np

from weakspot.core.statistics import Correction, adjusted_p_values
from weakspot.release.figures import Sighting
from weakspot.release.policy import Judging, NewSliceRule
from weakspot.release.result import PolicyEntry, Ruling


def new_slices(
    rule: NewSliceRule,
    sightings: Sequence[Sighting],
    judging: Judging,
    *,
    n_tested: int,
    correction: Correction,
    accepted: Sequence[str],
) -> Iterator[PolicyEntry]:
    """Judge whether the run has confirmed slices that the baseline has not.

    Args:
        rule: how many may be new.
        sightings: the findings of the run.
        judging: how rules are judged.
        n_tested: slices that were tested in the run.
        correction: which error rate was held over them.
        accepted: ids of slices that somebody answers for; they do not count.
    """
    fresh = [one for one in sightings if one.is_new]
    q_values = dict(
        zip((one.slice_id for one in fresh), _q_values(fresh, n_tested, correction), strict=True)
    )
    certain = [one for one in fresh if q_values[one.slice_id] <= 1.0 - judging.level]
    is_kept = len([one for one in certain if one.slice_id not in accepted]) <= rule.max
    if not sightings:
        yield _entry("all slices", "", Ruling.KEPT, rule, "No slice is confirmed, so none is new.")
    for one in sightings:
        if not one.is_new:
            same = (
                f" as “{one.known_as}” (overlap {one.overlap:.2f})"
                if one.known_id != one.slice_id
                else ""
            )
            yield _entry(
                one.subject,
                one.slice_id,
                Ruling.KEPT,
                rule,
                f"“{one.subject}” is known: the baseline has it{same}.",
            )
        elif one not in certain:
            sentence = f"“{one.subject}” is not in the baseline, but it is certain only together with known slices: not judged."
            yield _entry(one.subject, one.slice_id, Ruling.NOT_JUDGED, rule, sentence)
        else:
            near = f"; the nearest overlaps by {one.overlap:.2f}" if one.overlap else ""
            may = f" {rule.max} may be new." if rule.max else ""
            sentence = f"“{one.subject}” is new: no slice of the baseline has nearly the same members{near}.{may}"
            yield _entry(
                one.subject,
                one.slice_id,
                Ruling.KEPT if is_kept else Ruling.VIOLATED,
                rule,
                sentence,
            )


def _q_values(fresh: Sequence[Sighting], n_tested: int, correction: Correction) -> list[float]:
    if not fresh or correction == "fwer":
        return [one.q_value for one in fresh]
    p_values = np.ones(max(n_tested, len(fresh)))
    p_values[: len(fresh)] = [min(1.0, one.p_value / one.weight) for one in fresh]
    adjusted = adjusted_p_values(p_values, correction=correction)[: len(fresh)].tolist()
    return [max(value, one.q_value) for value, one in zip(adjusted, fresh, strict=True)]


def _entry(
    subject: str, slice_id: str, verdict: Ruling, rule: NewSliceRule, sentence: str
) -> PolicyEntry:
    return PolicyEntry(
        rule="new_slices",
        subject=subject,
        slice_id=slice_id,
        verdict=verdict,
        bar=float(rule.max),
        sentence=sentence,
    )
