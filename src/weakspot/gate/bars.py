"""Rules that hold one model against a bar: accuracy overall, by class and on slices, gaps, and slices that are many or new."""

import difflib
from collections.abc import Iterator, Sequence
from functools import partial
from math import sqrt

import numpy as np

from weakspot.core.errors import ConfigError
from weakspot.core.evidence import Interval
from weakspot.core.statistics import Correction, adjusted_p_values, exact_interval
from weakspot.gate.figures import Figures, Sighting, SubjectKind, Tally
from weakspot.gate.policy import (
    ClassRule,
    CountRule,
    GapRule,
    Judge,
    Judging,
    LeastRule,
    NewSliceRule,
)
from weakspot.gate.result import PolicyEntry, Ruling


def percent(value: float) -> str:
    """Return a share in per cent, with a decimal only where it says something.

    >>> percent(0.5), percent(0.995), percent(-0.031)
    ('50 %', '99.5 %', '-3.1 %')
    """
    rounded = round(100 * value, 1)
    return f"{rounded:.0f} %" if rounded == round(rounded) else f"{rounded:.1f} %"


def between(interval: Interval) -> str:
    """Return an interval of a share.

    >>> between(Interval(low=0.1, high=0.25))
    '10 % to 25 %'
    """
    return f"{percent(interval.low)} to {percent(interval.high)}"


def samples(count: int) -> str:
    """Return a number of samples.

    >>> samples(1), samples(2)
    ('1 sample', '2 samples')
    """
    return f"{count} sample" if count == 1 else f"{count} samples"


def subject_words(subject: str, kind: SubjectKind) -> str:
    """Return a subject as the beginning of a sentence.

    >>> subject_words("disc: green", SubjectKind.SLICE)
    '“disc: green”'
    """
    return "The model" if kind is SubjectKind.OVERALL else f"“{subject}”"


def shared_level(level: float, n_subjects: int) -> float:
    """Return the level that each of several intervals needs so that all of them hold together.

    >>> round(shared_level(0.95, 5), 4)
    0.99
    """
    return 1.0 - (1.0 - level) / max(n_subjects, 1)


def accuracy_interval(n_failed: int, n_samples: int, *, level: float) -> Interval:
    """Return the exact interval of an accuracy (Clopper and Pearson)."""
    low, high = exact_interval(n_samples - n_failed, n_samples, level=level)
    return Interval(low=low, high=high, level=level)


def gap_interval(table: tuple[int, int, int, int], *, level: float) -> Interval:
    """Return the interval of a difference of two failure rates, put together from the exact intervals of both (after Newcombe).

    Args:
        table: failures and samples inside, failures and samples outside.
        level: of the interval.
    """
    failed_inside, n_inside, failed_outside, n_outside = table
    inside, outside = (
        failed_inside / n_inside if n_inside else 0.0,
        failed_outside / n_outside if n_outside else 0.0,
    )
    low_in, high_in = exact_interval(failed_inside, n_inside, level=level)
    low_out, high_out = exact_interval(failed_outside, n_outside, level=level)
    gap = inside - outside
    low = gap - sqrt((inside - low_in) ** 2 + (high_out - outside) ** 2)
    high = gap + sqrt((high_in - inside) ** 2 + (outside - low_out) ** 2)
    return Interval(low=max(-1.0, low), high=min(1.0, high), level=level)


SHOWN = 5


def overall_accuracy(rule: LeastRule, figures: Figures) -> Iterator[PolicyEntry]:
    """Judge the accuracy on all samples of the evaluation splits."""
    for tally in figures.of(SubjectKind.OVERALL):
        yield _accuracy_entry("overall_accuracy", tally, rule.min, rule.judge, figures.judging)


def class_accuracy(rule: ClassRule, figures: Figures) -> Iterator[PolicyEntry]:
    """Judge the accuracy on every class; some may have bars of their own."""
    tallies = figures.of(SubjectKind.CLASS)
    _refuse_unknown(rule.per_class, [tally.subject for tally in tallies])
    judging = _shared(figures.judging, len(tallies))
    for tally in tallies:
        bar = rule.per_class.get(tally.subject, rule.min)
        yield _accuracy_entry("class_accuracy", tally, bar, rule.judge, judging)


def slice_accuracy(rule: LeastRule, figures: Figures) -> Iterator[PolicyEntry]:
    """Judge the accuracy on every confirmed slice, on samples that it was not found on, and on every named slice."""
    yield from _no_slices("slice_accuracy", rule.min, figures)
    judging = _shared_by_slices(figures)
    for tally in figures.of(SubjectKind.SLICE, SubjectKind.NAMED):
        yield _accuracy_entry("slice_accuracy", tally, rule.min, rule.judge, judging)


def slice_gap(rule: GapRule, figures: Figures) -> Iterator[PolicyEntry]:
    """Judge the gap between every slice and the rest of its class."""
    yield from _no_slices("slice_gap", rule.max, figures)
    for tally in figures.of(SubjectKind.SLICE, SubjectKind.NAMED):
        yield _gap_entry(tally, rule, _shared_by_slices(figures))


def confirmed_slices(rule: CountRule, figures: Figures) -> Iterator[PolicyEntry]:
    """Judge the number of confirmed slices that no stronger one explains; accepted ones are left out."""
    findings = [tally for tally in figures.of(SubjectKind.SLICE) if tally.is_finding]
    counted = [tally.subject for tally in findings if tally.slice_id not in figures.accepted]
    is_kept = len(counted) <= rule.max
    listed = (
        f": {', '.join(f'“{name}”' for name in counted[:SHOWN])}{', …' if len(counted) > SHOWN else ''}"
        if counted
        else ""
    )
    left_out = (
        f" {len(findings) - len(counted)} more are accepted."
        if len(counted) < len(findings)
        else ""
    )
    n_counted = len(counted)
    verb = (
        "No slice is"
        if not counted
        else "1 slice is"
        if n_counted == 1
        else f"{n_counted} slices are"
    )
    yield PolicyEntry(
        rule="confirmed_slices",
        subject="all slices",
        verdict=Ruling.KEPT if is_kept else Ruling.VIOLATED,
        value=float(n_counted),
        bar=float(rule.max),
        sentence=f"{verb} confirmed{listed}; {rule.max or 'none'} may be.{left_out}",
    )


def failing_classes(rule: CountRule, figures: Figures) -> Iterator[PolicyEntry]:
    """Judge the number of classes that are confirmed to fail more often than the others, as a whole."""
    failing = [tally for tally in figures.of(SubjectKind.CLASS) if tally.is_finding]
    listed = ", ".join(
        f"“{one.subject}” ({one.n_failed} of {one.n_samples} wrong)" for one in failing[:SHOWN]
    )
    more = ", …" if len(failing) > SHOWN else ""
    counted = f"{len(failing) or 'No'} {'class' if len(failing) <= 1 else 'classes'}"
    verb = "is" if len(failing) <= 1 else "are"
    yield PolicyEntry(
        rule="failing_classes",
        subject="all classes",
        verdict=Ruling.KEPT if len(failing) <= rule.max else Ruling.VIOLATED,
        value=float(len(failing)),
        bar=float(rule.max),
        sentence=f"{counted} {verb} confirmed to fail as a whole{': ' if failing else ''}{listed}{more}; {rule.max or 'none'} may.",
    )


def too_few(
    rule: str,
    subject: str,
    count: int,
    judging: Judging,
    *,
    slice_id: str = "",
    bar: float | None = None,
) -> PolicyEntry:
    return PolicyEntry(
        rule=rule,
        subject=subject,
        slice_id=slice_id,
        verdict=Ruling.NOT_JUDGED,
        bar=bar,
        n_samples=count,
        sentence=f"“{subject}” has {samples(count)}, fewer than the {judging.min_samples} that are needed: not judged.",
    )


def _accuracy_entry(
    rule: str, tally: Tally, bar: float, judge: Judge, judging: Judging
) -> PolicyEntry:
    if tally.n_samples < judging.min_samples:
        return too_few(
            rule, tally.subject, tally.n_samples, judging, slice_id=tally.slice_id, bar=bar
        )
    interval = accuracy_interval(tally.n_failed, tally.n_samples, level=judging.level)
    value = tally.accuracy
    is_violated = value < bar if judge == "point" else interval.high < bar
    said = _comparison(
        is_violated=is_violated, is_beyond=value < bar, judge=judge, words=("below", "at least")
    )
    return PolicyEntry(
        rule=rule,
        subject=tally.subject,
        slice_id=tally.slice_id,
        verdict=Ruling.VIOLATED if is_violated else Ruling.KEPT,
        value=value,
        interval=interval,
        bar=bar,
        n_samples=tally.n_samples,
        sentence=f"{subject_words(tally.subject, tally.kind)} is right on {percent(value)} of {samples(tally.n_samples)} "
        f"({between(interval)}), {said} {percent(bar)}.",
    )


def _gap_entry(tally: Tally, rule: GapRule, judging: Judging) -> PolicyEntry:
    fewest = min(tally.n_samples, tally.n_outside)
    if fewest < judging.min_samples:
        return too_few(
            "slice_gap", tally.subject, fewest, judging, slice_id=tally.slice_id, bar=rule.max
        )
    table = (tally.n_failed, tally.n_samples, tally.failed_outside, tally.n_outside)
    interval = gap_interval(table, level=judging.level)
    inside, outside = tally.n_failed / tally.n_samples, tally.failed_outside / tally.n_outside
    gap = inside - outside
    is_violated = gap > rule.max if rule.judge == "point" else interval.low > rule.max
    said = _comparison(
        is_violated=is_violated,
        is_beyond=gap > rule.max,
        judge=rule.judge,
        words=("above", "at most"),
    )
    return PolicyEntry(
        rule="slice_gap",
        subject=tally.subject,
        slice_id=tally.slice_id,
        verdict=Ruling.VIOLATED if is_violated else Ruling.KEPT,
        value=gap,
        interval=interval,
        bar=rule.max,
        n_samples=tally.n_samples,
        sentence=f"“{tally.subject}” fails on {percent(inside)} of {samples(tally.n_samples)}, the rest of its class on "
        f"{percent(outside)}: a gap of {percent(gap)} ({between(interval)}), {said} {percent(rule.max)}.",
    )


def _comparison(*, is_violated: bool, is_beyond: bool, judge: Judge, words: tuple[str, str]) -> str:
    beyond, within = words
    if judge == "point":
        return beyond if is_violated else within
    if is_violated:
        return f"clearly {beyond}"
    return f"but not clearly {beyond}" if is_beyond else within


def _no_slices(rule: str, bar: float, figures: Figures) -> Iterator[PolicyEntry]:
    """Yield that the rule is kept if there is no slice."""
    if not figures.of(SubjectKind.SLICE, SubjectKind.NAMED):
        sentence = "No slice is confirmed and none is named in the policy."
        yield PolicyEntry(
            rule=rule, subject="all slices", verdict=Ruling.KEPT, bar=bar, sentence=sentence
        )


def _shared_by_slices(figures: Figures) -> Judging:
    """Return the level that an interval of a slice has: all that were tested share it, and the named ones."""
    n_confirmed, n_named = (
        len(figures.of(kind)) for kind in (SubjectKind.SLICE, SubjectKind.NAMED)
    )
    return _shared(figures.judging, max(figures.n_tested, n_confirmed) + n_named)


def _shared(judging: Judging, n_subjects: int) -> Judging:
    return judging.model_copy(update={"level": shared_level(judging.level, n_subjects)})


def _refuse_unknown(named: dict[str, float], known: Sequence[str]) -> None:
    for name in named:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"Choose one of {list(known)[:20]}."
            raise ConfigError(
                f"There is no class {name!r}.",
                where="[class_accuracy] per_class",
                given=name,
                fix=hint,
            )


def new_slices(rule: NewSliceRule, figures: Figures) -> Iterator[PolicyEntry]:
    """Judge whether the run has confirmed slices that the baseline has not; accepted ones do not count."""
    sightings = figures.sightings or ()
    fresh = [one for one in sightings if one.is_new]
    q_values = _q_values(fresh, figures.n_tested, figures.correction)
    certain = {
        one.slice_id
        for one, value in zip(fresh, q_values, strict=True)
        if value <= 1.0 - figures.judging.level
    }
    is_kept = len(certain - set(figures.accepted)) <= rule.max
    told = partial(PolicyEntry, rule="new_slices", bar=float(rule.max))
    if not sightings:
        sentence = "No slice is confirmed, so none is new."
        yield told(subject="all slices", verdict=Ruling.KEPT, sentence=sentence)
    for one in sightings:
        verdict, sentence = Ruling.KEPT, f"“{one.subject}” is known: the baseline has it"
        if not one.is_new:
            is_same = one.known_id == one.slice_id
            sentence += "." if is_same else f" as “{one.known_as}” (overlap {one.overlap:.2f})."
        elif one.slice_id not in certain:
            verdict = Ruling.NOT_JUDGED
            sentence = f"“{one.subject}” is not in the baseline, but it is certain only together with known slices: not judged."
        else:
            verdict = Ruling.KEPT if is_kept else Ruling.VIOLATED
            near = f"; the nearest overlaps by {one.overlap:.2f}" if one.overlap else ""
            may = f" {rule.max} may be new." if rule.max else ""
            sentence = f"“{one.subject}” is new: no slice of the baseline has nearly the same members{near}.{may}"
        yield told(subject=one.subject, slice_id=one.slice_id, verdict=verdict, sentence=sentence)


def _q_values(fresh: Sequence[Sighting], n_tested: int, correction: Correction) -> list[float]:
    if not fresh or correction == "fwer":
        return [one.q_value for one in fresh]
    p_values = np.ones(max(n_tested, len(fresh)))
    p_values[: len(fresh)] = [min(1.0, one.p_value / one.weight) for one in fresh]
    adjusted = adjusted_p_values(p_values, correction=correction)[: len(fresh)].tolist()
    return [max(value, one.q_value) for value, one in zip(adjusted, fresh, strict=True)]
