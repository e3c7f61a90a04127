"""Rules that hold a model against a baseline: new slices, and regressions on the same samples."""

from collections.abc import Iterator, Sequence

import numpy as np

from weakspot.core.statistics import Control, adjusted_p_values, mcnemar_p
from weakspot.release.bars import too_few
from weakspot.release.figures import PairedTally, Sighting, SubjectKind
from weakspot.release.intervals import paired_interval, shared_level
from weakspot.release.outcome import PolicyEntry, Ruling
from weakspot.release.policy import Judging, NewSliceRule, RegressionRule
from weakspot.release.wording import between, percent, samples, subject_words

GROUPS = {
    SubjectKind.OVERALL: "overall",
    SubjectKind.CLASS: "classes",
    SubjectKind.SLICE: "slices",
    SubjectKind.NAMED: "slices",
}


def new_slices(
    rule: NewSliceRule,
    sightings: Sequence[Sighting],
    judging: Judging,
    *,
    n_tested: int,
    control: Control,
    accepted: Sequence[str],
) -> Iterator[PolicyEntry]:
    """Judge whether the run has confirmed slices that the baseline has not.

    Args:
        rule: how many may be new.
        sightings: the findings of the run.
        judging: how rules are judged.
        n_tested: slices that were tested in the run.
        control: which error rate was held over them.
        accepted: ids of slices that somebody answers for; they do not count.
    """
    fresh = [one for one in sightings if one.is_new]
    q_values = dict(zip((one.slice_id for one in fresh), _q_values(fresh, n_tested, control), strict=True))
    certain = [one for one in fresh if q_values[one.slice_id] <= 1.0 - judging.level]
    is_kept = len([one for one in certain if one.slice_id not in accepted]) <= rule.max
    if not sightings:
        yield _entry("all slices", "", Ruling.KEPT, rule, "No slice is confirmed, so none is new.")
    for one in sightings:
        if not one.is_new:
            same = f" as “{one.known_as}” (overlap {one.overlap:.2f})" if one.known_id != one.slice_id else ""
            yield _entry(one.subject, one.slice_id, Ruling.KEPT, rule, f"“{one.subject}” is known: the baseline has it{same}.")
        elif one not in certain:
            sentence = f"“{one.subject}” is not in the baseline, but it is certain only together with known slices: not judged."
            yield _entry(one.subject, one.slice_id, Ruling.NOT_JUDGED, rule, sentence)
        else:
            near = f"; the nearest overlaps by {one.overlap:.2f}" if one.overlap else ""
            may = f" {rule.max} may be new." if rule.max else ""
            sentence = f"“{one.subject}” is new: no slice of the baseline has nearly the same members{near}.{may}"
            yield _entry(one.subject, one.slice_id, Ruling.KEPT if is_kept else Ruling.VIOLATED, rule, sentence)


def regressions(rule: RegressionRule, pairs: Sequence[PairedTally], judging: Judging) -> Iterator[PolicyEntry]:
    """Judge whether accuracy fell on the same samples; error rates are held over everything that is compared."""
    wanted = [pair for pair in pairs if GROUPS[pair.kind] in rule.of]
    tested = [pair for pair in wanted if pair.n_samples >= judging.min_samples]
    p_values = adjusted_p_values([mcnemar_p(pair.gained, pair.lost) for pair in tested], control="fwer").tolist()
    by_pair = dict(zip(map(id, tested), p_values, strict=True))
    for pair in wanted:
        if id(pair) not in by_pair:
            yield too_few("regressions", pair.subject, pair.n_samples, judging, slice_id=pair.slice_id, bar=-rule.max_drop)
        else:
            yield _regression(pair, rule, judging, by_pair[id(pair)], n_subjects=len(tested))


def _regression(pair: PairedTally, rule: RegressionRule, judging: Judging, p_value: float, *, n_subjects: int) -> PolicyEntry:
    before, now = pair.right_before / pair.n_samples, pair.right_now / pair.n_samples
    change = now - before
    interval = paired_interval(pair.gained, pair.lost, pair.n_samples, level=shared_level(judging.level, n_subjects))
    is_beyond = pair.lost - pair.gained > rule.max_drop * pair.n_samples
    is_certain = interval.high < -rule.max_drop and p_value <= 1.0 - judging.level
    is_violated = is_beyond if rule.judge == "point" else is_beyond and is_certain
    return PolicyEntry(
        rule="regressions",
        subject=pair.subject,
        slice_id=pair.slice_id,
        verdict=Ruling.VIOLATED if is_violated else Ruling.KEPT,
        value=change,
        interval=interval,
        bar=-rule.max_drop,
        n_samples=pair.n_samples,
        before=before,
        after=now,
        p_value=p_value,
        sentence=f"{subject_words(pair.subject, pair.kind)} went from {percent(before)} to {percent(now)} on the same "
        f"{samples(pair.n_samples)}: {pair.gained} gained, {pair.lost} lost, a change of {percent(change)} ({between(interval)})"
        f"{_verdict(rule, is_beyond=is_beyond, is_violated=is_violated)}.",
    )


def _verdict(rule: RegressionRule, *, is_beyond: bool, is_violated: bool) -> str:
    if not is_beyond:
        return ""
    fall = f"a fall of more than {percent(rule.max_drop)}" if rule.max_drop else "a fall"
    if rule.judge == "point":
        return f", {fall}"
    return f", clearly {fall}" if is_violated else f", but not clearly {fall}"


def _q_values(fresh: Sequence[Sighting], n_tested: int, control: Control) -> list[float]:
    """Return q-values of the new slices, as if every other test of the run had found nothing: they are a choice among findings."""
    if not fresh or control == "fwer":
        return [one.q_value for one in fresh]
    p_values = np.ones(max(n_tested, len(fresh)))
    p_values[: len(fresh)] = [min(1.0, one.p_value / one.weight) for one in fresh]
    adjusted = adjusted_p_values(p_values, control=control)[: len(fresh)].tolist()
    return [max(value, one.q_value) for value, one in zip(adjusted, fresh, strict=True)]


def _entry(subject: str, slice_id: str, verdict: Ruling, rule: NewSliceRule, sentence: str) -> PolicyEntry:
    return PolicyEntry(
        rule="new_slices", subject=subject, slice_id=slice_id, verdict=verdict, bar=float(rule.max), sentence=sentence
    )
