"""The rule on falls of accuracy against a baseline, on the same samples."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt

from weakspot.core.arrays import DoubleArray
from weakspot.core.evidence import Interval
from weakspot.core.statistics import change_interval
from weakspot.release.bars import between, percent, samples, subject_words, too_few
from weakspot.release.fall_tests import Changes, fall_p_values, prior_shares, read_changes, shares
from weakspot.release.figures import PairedTally, SubjectKind
from weakspot.release.policy import Judging, RegressionRule
from weakspot.release.result import PolicyEntry, Ruling
from weakspot.release.sensitivity import Comparison, samples_needed, smallest_fall

COMPARED = {
    SubjectKind.OVERALL: "overall",
    SubjectKind.CLASS: "classes",
    SubjectKind.SLICE: "slices",
    SubjectKind.NAMED: "slices",
}
BORROWED_SAMPLES = 20
"""How many samples with the gains of everything that is compared are added to a subject's own gains."""


def regressions(
    rule: RegressionRule, pairs: Sequence[PairedTally], judging: Judging
) -> Iterator[PolicyEntry]:
    """Judge whether accuracy fell on the same samples; the chance of any false alarm is held over everything that is compared."""
    wanted = [pair for pair in pairs if COMPARED[pair.kind] in rule.of]
    tested = [pair for pair in wanted if pair.n_samples >= judging.min_samples]
    judged = iter(_Comparing.of(tested, rule, judging).entries())
    for pair in wanted:
        if pair.n_samples >= judging.min_samples:
            yield next(judged)
        else:
            yield too_few(
                "regressions",
                pair.subject,
                pair.n_samples,
                judging,
                slice_id=pair.slice_id,
                bar=-rule.max_drop,
            )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Comparing:
    """Everything that is compared at once."""

    rule: RegressionRule
    judging: Judging
    pairs: Sequence[PairedTally]
    changes: Changes
    prior: DoubleArray

    @classmethod
    def of(
        cls, pairs: Sequence[PairedTally], rule: RegressionRule, judging: Judging
    ) -> "_Comparing":
        prior = prior_shares([pair.kind for pair in pairs])
        return cls(
            rule=rule, judging=judging, pairs=pairs, changes=read_changes(pairs), prior=prior
        )

    @cached_property
    def weights(self) -> DoubleArray:
        return shares(self.prior, self.changes.sizes, self.changes.squares)

    @cached_property
    def _usual_gains(self) -> float:
        return sum(one.gained for one in self.pairs) / sum(one.n_samples for one in self.pairs)

    def entries(self) -> Iterator[PolicyEntry]:
        if not self.pairs:
            return
        p_values = fall_p_values(self.changes, self.weights, margin=self.rule.max_drop).tolist()
        for place, p_value in enumerate(p_values):
            yield self._entry(place, p_value)

    def _entry(self, place: int, p_value: float) -> PolicyEntry:
        pair, rule = self.pairs[place], self.rule
        before, now = pair.right_before / pair.n_samples, pair.right_now / pair.n_samples
        interval = self._interval(place)
        is_beyond = pair.lost - pair.gained > rule.max_drop * pair.n_samples
        is_certain = rule.judge == "point" or p_value <= 1.0 - self.judging.level
        is_violated = is_beyond and is_certain
        comparison = self._comparison(place)
        detectable = smallest_fall(comparison)
        entry = PolicyEntry(
            rule="regressions",
            subject=pair.subject,
            slice_id=pair.slice_id,
            verdict=Ruling.VIOLATED if is_violated else Ruling.KEPT,
            value=now - before,
            interval=interval,
            bar=-rule.max_drop,
            n_samples=pair.n_samples,
            before=before,
            after=now,
            p_value=p_value,
            detectable=detectable,
            sentence=f"{subject_words(pair.subject, pair.kind)} went from {percent(before)} to {percent(now)} on the same "
            f"{samples(pair.n_samples)}: {pair.gained} gained, {pair.lost} lost, a change of {percent(now - before)} ({between(interval)})"
            f"{_verdict(rule, is_beyond=is_beyond, is_violated=is_violated)}. {_seen(detectable)}",
        )
        return entry if is_violated else _hold_against_need(entry, comparison, rule)

    def _interval(self, place: int) -> Interval:
        """Return the interval of a change; all of them hold together, each with the share of its subject."""
        pair, level = self.pairs[place], 1.0 - (1.0 - self.judging.level) * self.weights[place]
        low, high = change_interval(pair.gained, pair.lost, pair.n_samples, level=float(level))
        middle, reach = 0.5 * (low + high), 0.5 * (high - low) * sqrt(self._inflation(place))
        return Interval(
            low=max(-1.0, middle - reach), high=min(1.0, middle + reach), level=float(level)
        )

    def _inflation(self, place: int) -> float:
        """Return how much more a fall varies because samples change in groups, at least 1."""
        pair = self.pairs[place]
        return max(1.0, float(self.changes.squares[place]) / max(pair.gained + pair.lost, 1))

    def _comparison(self, place: int) -> Comparison:
        pair, inflation = self.pairs[place], self._inflation(place)
        borrowed = BORROWED_SAMPLES * self._usual_gains
        gain_rate = (pair.gained + borrowed) / (pair.n_samples + BORROWED_SAMPLES)

        def share_of(changed: float) -> float:
            squares = self.changes.squares.copy()
            squares[place] = changed * inflation**2
            weights = shares(self.prior, self.changes.sizes, squares)
            return (1.0 - self.judging.level) * float(weights[place])

        return Comparison(
            n_samples=pair.n_samples / inflation,
            gain_rate=min(gain_rate, 0.5),
            margin=self.rule.max_drop,
            share_of=share_of,
        )


def _verdict(rule: RegressionRule, *, is_beyond: bool, is_violated: bool) -> str:
    if not is_beyond:
        return ""
    fall = f"a fall of more than {percent(rule.max_drop)}" if rule.max_drop else "a fall"
    if rule.judge == "point":
        return f", {fall}"
    return f", clearly {fall}" if is_violated else f", but not clearly {fall}"


def _seen(detectable: float | None) -> str:
    if detectable is None:
        return "No fall, however large, would be flagged in four of five cases on these samples."
    return f"A true fall of {percent(detectable)} would be flagged in four of five cases."


def _hold_against_need(
    entry: PolicyEntry, comparison: Comparison, rule: RegressionRule
) -> PolicyEntry:
    """Return an entry that is not judged if the fall that matters could neither be seen nor is ruled out."""
    needed = rule.drop_that_matters
    if needed is None or entry.interval is None:
        return entry
    if entry.interval.low > -needed:
        said = f"A fall of {percent(needed)}, which matters, is ruled out."
        return entry.model_copy(update={"sentence": f"{entry.sentence} {said}"})
    if entry.detectable is not None and entry.detectable <= needed:
        return entry
    number = samples_needed(comparison, needed)
    enough = "" if number is None else f"; about {number} would do"
    said = f"That is too few samples to see a fall of {percent(needed)}, which matters{enough}: not judged."
    return entry.model_copy(
        update={"verdict": Ruling.NOT_JUDGED, "sentence": f"{entry.sentence} {said}"}
    )
