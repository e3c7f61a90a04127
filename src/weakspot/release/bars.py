"""Rules that hold one model against a bar: accuracy overall, by class and on slices, gaps, and the number of slices."""

import difflib
from collections.abc import Iterator, Sequence

from weakspot.core.errors import ConfigError
from weakspot.release.figures import Figures, SubjectKind, Tally
from weakspot.release.intervals import accuracy_interval, gap_interval, shared_level
from weakspot.release.outcome import PolicyEntry, Ruling
from weakspot.release.policy import CountRule, GapRule, Judge, Judging, LeastRule, Policy
from weakspot.release.wording import between, percent, samples, subject_words

SHOWN = 5


def overall_accuracy(rule: LeastRule, figures: Figures, judging: Judging) -> Iterator[PolicyEntry]:
    """Judge the accuracy on all samples of the evaluation splits."""
    for tally in figures.of(SubjectKind.OVERALL):
        yield _accuracy_entry("overall_accuracy", tally, rule.min, rule.judge, judging, n_subjects=1)


def class_accuracy(policy: Policy, figures: Figures) -> Iterator[PolicyEntry]:
    """Judge the accuracy of every class on the evaluation splits."""
    rule, tallies = policy.class_accuracy, figures.of(SubjectKind.CLASS)
    if rule is None:
        return
    _refuse_unknown(rule.per_class, [tally.subject for tally in tallies])
    for tally in tallies:
        bar = rule.per_class.get(tally.subject, rule.min)
        yield _accuracy_entry("class_accuracy", tally, bar, rule.judge, policy.judging, n_subjects=len(tallies))


def slice_accuracy(rule: LeastRule, figures: Figures, judging: Judging) -> Iterator[PolicyEntry]:
    """Judge the accuracy on every confirmed slice, on samples that it was not found on, and on every named slice."""
    tallies = figures.of(SubjectKind.SLICE, SubjectKind.NAMED)
    if not tallies:
        yield _nothing("slice_accuracy", rule.min)
    for tally in tallies:
        yield _accuracy_entry("slice_accuracy", tally, rule.min, rule.judge, judging, n_subjects=_n_subjects(figures))


def slice_gap(rule: GapRule, figures: Figures, judging: Judging) -> Iterator[PolicyEntry]:
    """Judge the gap between every slice and the rest of its class."""
    tallies = figures.of(SubjectKind.SLICE, SubjectKind.NAMED)
    if not tallies:
        yield _nothing("slice_gap", rule.max)
    for tally in tallies:
        yield _gap_entry(tally, rule, judging, n_subjects=_n_subjects(figures))


def confirmed_slices(rule: CountRule, figures: Figures, accepted: Sequence[str]) -> PolicyEntry:
    """Judge the number of confirmed slices that no stronger one explains; accepted ones are left out."""
    findings = [tally for tally in figures.of(SubjectKind.SLICE) if tally.is_finding]
    counted = [tally.subject for tally in findings if tally.slice_id not in accepted]
    is_kept = len(counted) <= rule.max
    listed = f": {', '.join(f'“{name}”' for name in counted[:SHOWN])}{', …' if len(counted) > SHOWN else ''}" if counted else ""
    left_out = f" {len(findings) - len(counted)} more are accepted." if len(counted) < len(findings) else ""
    return PolicyEntry(
        rule="confirmed_slices",
        subject="all slices",
        verdict=Ruling.KEPT if is_kept else Ruling.VIOLATED,
        value=float(len(counted)),
        bar=float(rule.max),
        sentence=f"{_slices(len(counted))} confirmed{listed}; {rule.max or 'none'} may be.{left_out}",
    )


def too_few(rule: str, subject: str, count: int, judging: Judging, *, slice_id: str = "", bar: float | None = None) -> PolicyEntry:
    """Return the entry of a subject that has too few samples to be judged."""
    return PolicyEntry(
        rule=rule,
        subject=subject,
        slice_id=slice_id,
        verdict=Ruling.NOT_JUDGED,
        bar=bar,
        n_samples=count,
        sentence=f"“{subject}” has {samples(count)}, fewer than the {judging.min_samples} that are needed: not judged.",
    )


def _accuracy_entry(rule: str, tally: Tally, bar: float, judge: Judge, judging: Judging, *, n_subjects: int) -> PolicyEntry:
    if tally.n_samples < judging.min_samples:
        return too_few(rule, tally.subject, tally.n_samples, judging, slice_id=tally.slice_id, bar=bar)
    interval = accuracy_interval(tally.n_failed, tally.n_samples, level=shared_level(judging.level, n_subjects))
    value = tally.accuracy
    is_violated = value < bar if judge == "point" else interval.high < bar
    said = _comparison(is_violated=is_violated, is_beyond=value < bar, judge=judge, words=("below", "at least"))
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


def _gap_entry(tally: Tally, rule: GapRule, judging: Judging, *, n_subjects: int) -> PolicyEntry:
    fewest = min(tally.n_samples, tally.n_outside)
    if fewest < judging.min_samples:
        return too_few("slice_gap", tally.subject, fewest, judging, slice_id=tally.slice_id, bar=rule.max)
    table = (tally.n_failed, tally.n_samples, tally.failed_outside, tally.n_outside)
    interval = gap_interval(table, level=shared_level(judging.level, n_subjects))
    inside, outside = tally.n_failed / tally.n_samples, tally.failed_outside / tally.n_outside
    gap = inside - outside
    is_violated = gap > rule.max if rule.judge == "point" else interval.low > rule.max
    said = _comparison(is_violated=is_violated, is_beyond=gap > rule.max, judge=rule.judge, words=("above", "at most"))
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


def _nothing(rule: str, bar: float) -> PolicyEntry:
    sentence = "No slice is confirmed and none is named in the policy."
    return PolicyEntry(rule=rule, subject="all slices", verdict=Ruling.KEPT, bar=bar, sentence=sentence)


def _n_subjects(figures: Figures) -> int:
    """Return how many slices an interval shares its level with: all that were tested, and the named ones."""
    return max(figures.n_tested, len(figures.of(SubjectKind.SLICE))) + len(figures.of(SubjectKind.NAMED))


def _refuse_unknown(named: dict[str, float], known: Sequence[str]) -> None:
    for name in named:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"Choose one of {list(known)[:20]}."
            raise ConfigError(f"There is no class {name!r}.", where="[class_accuracy] per_class", given=name, fix=hint)


def _slices(count: int) -> str:
    return "No slice is" if count == 0 else "1 slice is" if count == 1 else f"{count} slices are"
