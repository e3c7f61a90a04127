"""The rule on falls of accuracy against a baseline: paired tests on the same samples, and what they could have seen."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, sqrt

import numpy as np

from weakspot.core.arrays import DoubleArray, IntArray, generator
from weakspot.core.evidence import Interval
from weakspot.core.statistics import change_interval
from weakspot.gate.bars import between, percent, samples, subject_words, too_few
from weakspot.gate.figures import Figures, PairedTally, SubjectKind
from weakspot.gate.policy import Judging, RegressionRule
from weakspot.gate.result import PolicyEntry, Ruling

N_FLIPS = 20_000
MIN_FLIPS = 4_000
MAX_DRAWS = 40_000_000
AT_ONCE = 2_000_000
SLICES_SHARE = 2.0 / 3.0
KEPT_EQUAL = 0.3
STEEPNESS = 1.2
MAX_EXCESS = 3.0
ADDED_NOISE = 1.0
NEGLIGIBLE = 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class Changes:
    """What changed hands in every subject.

    Args:
        sizes: samples of every subject [k].
        squares: sum over units of the squared net loss [k]; the number of samples that changed if every sample is its own unit.
        falls: samples lost minus samples gained [k].
        patterns: different units, as their net loss in every subject [a, k]; a unit and its mirror image are the same.
        counts: how many units are like each pattern [a].
    """

    sizes: DoubleArray
    squares: DoubleArray
    falls: DoubleArray
    patterns: DoubleArray
    counts: IntArray


def read_changes(pairs: Sequence[PairedTally]) -> Changes:
    """Return what changed in some subjects; a subject that does not say which units changed has units of its own."""
    units = [_units(pair, place) for place, pair in enumerate(pairs)]
    names, place_of = np.unique(
        np.concatenate([codes for codes, _ in units]) if units else np.zeros(0), return_inverse=True
    )
    nets = np.zeros((len(names), len(pairs)))
    start = 0
    for subject, (codes, net) in enumerate(units):
        np.add.at(nets[:, subject], place_of[start : start + len(codes)], net)
        start += len(codes)
    nets = nets[np.any(nets != 0, axis=1)]
    first = np.argmax(nets != 0, axis=1)
    mirrored = nets * np.sign(nets[np.arange(len(nets)), first])[:, None]
    patterns, counts = np.unique(mirrored, axis=0, return_counts=True)
    return Changes(
        sizes=np.array([pair.n_samples for pair in pairs], dtype=np.float64),
        squares=np.asarray((nets**2).sum(axis=0)),
        falls=np.asarray(nets.sum(axis=0)),
        patterns=patterns,
        counts=np.asarray(counts, dtype=np.int64),
    )


def prior_shares(kinds: Sequence[SubjectKind]) -> DoubleArray:
    """Return the shares of the error rate that subjects begin with [k], in sum 1: slices get two thirds, however many classes there are.

    >>> prior_shares([SubjectKind.OVERALL, SubjectKind.NAMED, SubjectKind.NAMED]).round(2).tolist()
    [0.33, 0.33, 0.33]
    """
    is_slice = np.array(
        [kind in (SubjectKind.SLICE, SubjectKind.NAMED) for kind in kinds], dtype=np.bool_
    )
    if is_slice.all() or not is_slice.any():
        return np.full(len(kinds), 1.0 / max(len(kinds), 1))
    slices, others = SLICES_SHARE / is_slice.sum(), (1.0 - SLICES_SHARE) / (~is_slice).sum()
    return np.asarray(np.where(is_slice, slices, others), dtype=np.float64)


def shares(prior: DoubleArray, sizes: DoubleArray, squares: DoubleArray) -> DoubleArray:
    """Return which share of the error rate every subject gets [k], in sum 1.

    Part of it is as it was beforehand, the rest follows how much more changed in a subject than in the middle one. Only numbers enter
    that stay the same when the two models swap places, so the direction of a change knows nothing of the shares.

    >>> shares(np.full(3, 1 / 3), np.full(3, 100.0), np.array([20.0, 8.0, 8.0])).round(2).tolist()
    [0.76, 0.12, 0.12]
    """
    expected = np.maximum(sizes * np.median(squares / np.maximum(sizes, 1.0)), 1.0)
    excess = np.clip((squares - expected) / np.sqrt(expected), -MAX_EXCESS, MAX_EXCESS)
    tilted = prior * np.exp(STEEPNESS * excess)
    return np.asarray(KEPT_EQUAL * prior + (1.0 - KEPT_EQUAL) * tilted / tilted.sum())


def fall_p_values(changes: Changes, weights: DoubleArray, *, margin: float) -> DoubleArray:
    """Return for every subject the one-sided p-value of a fall beyond the margin, adjusted over all subjects [k].

    A margin is taken off what was lost. At the margin more is lost than gained, which flips cannot show; noise of the size of the
    margin stands in for it.

    Args:
        changes: what changed.
        weights: shares of the error rate.
        margin: the fall that is let pass, as a share of samples.
    """
    noise = np.sqrt(ADDED_NOISE * margin * changes.sizes)
    spread = np.sqrt(np.maximum(changes.squares + noise**2, 1.0))
    observed = _surprise((changes.falls - margin * changes.sizes) / spread, weights)
    order = np.argsort(observed, kind="stable")
    beaten, n_flips = np.zeros(len(order)), 0
    for flipped in _flips(changes, noise):
        least = _surprise(flipped / spread, weights)[:, order]
        least = np.minimum.accumulate(least[:, ::-1], axis=1)[:, ::-1]
        beaten += (least <= observed[order] + NEGLIGIBLE).sum(axis=0)
        n_flips += len(flipped)
    adjusted = np.empty(len(order))
    adjusted[order] = np.maximum.accumulate((1.0 + beaten) / (1.0 + n_flips))
    return adjusted


def _flips(changes: Changes, noise: DoubleArray) -> Iterator[DoubleArray]:
    """Yield the falls that the same units give with signs by chance, in parts [n, k]; the data decide the chance."""
    n_patterns = max(len(changes.counts), 1)
    n_flips = int(np.clip(MAX_DRAWS // n_patterns, MIN_FLIPS, N_FLIPS))
    at_once = max(AT_ONCE // n_patterns, 1)
    content = np.ascontiguousarray(changes.patterns).tobytes() + changes.counts.tobytes()
    random = generator(0, "regressions", hashlib.sha256(content).hexdigest())
    for start in range(0, n_flips, at_once):
        size = min(at_once, n_flips - start)
        signs = 2.0 * random.binomial(changes.counts, 0.5, size=(size, len(changes.counts)))
        flipped = (signs - changes.counts) @ changes.patterns
        yield np.asarray(flipped + noise * random.normal(size=flipped.shape))


def _surprise(scores: DoubleArray, weights: DoubleArray) -> DoubleArray:
    from scipy.special import log_ndtr

    return np.asarray(log_ndtr(-scores) - np.log(weights))


def _units(pair: PairedTally, place: int) -> tuple[IntArray, IntArray]:
    if pair.units is not None and pair.nets is not None:
        return pair.units, pair.nets
    own = np.repeat(np.array([1, -1]), [pair.lost, pair.gained])
    return -1 - place - np.arange(len(own)) * 1_000_003, own


POWER = 0.8
HALVINGS = 14
REACH = 6.0
MAX_SAMPLES = 10_000_000


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One subject, as far as it decides what can be seen.

    Args:
        n_samples: that count on their own.
        gain_rate: share of samples that are gained whether or not accuracy falls.
        margin: the fall that is let pass.
        share_of: the part of the error rate that the subject has if so many samples changed.
    """

    n_samples: float
    gain_rate: float
    margin: float
    share_of: Callable[[float], float]


def fall_power(one: Comparison, fall: float) -> float:
    """Return how often a fall of this size would be flagged on such samples.

    >>> fixed = Comparison(n_samples=100, gain_rate=0.05, margin=0.0, share_of=lambda changed: 0.05)
    >>> round(fall_power(fixed, 0.1), 2)
    0.74
    """
    from scipy.special import betainc, gammaln, ndtri, xlogy

    n_samples = round(one.n_samples)
    lost = min(one.gain_rate + fall, 1.0 - one.gain_rate)
    changing = one.gain_rate + lost
    if n_samples < 1 or changing <= 0.0:
        return 0.0
    counts = _likely_counts(n_samples, changing)
    level = float(np.clip(one.share_of(n_samples * changing), 1e-12, 0.5))
    allowance = one.margin * n_samples
    least = allowance - float(ndtri(level)) * np.sqrt(
        np.maximum(counts + ADDED_NOISE * allowance, 1.0)
    )
    needed = np.maximum(np.ceil((counts + least) / 2.0 - 1e-9), 1.0)
    seen = betainc(needed, np.maximum(counts - needed, 0.0) + 1.0, lost / changing)
    seen = np.where(needed > counts, 0.0, seen)
    chances = np.exp(
        gammaln(n_samples + 1.0)
        - gammaln(counts + 1.0)
        - gammaln(n_samples - counts + 1.0)
        + xlogy(counts, changing)
        + xlogy(n_samples - counts, 1.0 - changing)
    )
    return float(np.sum(chances * seen))


def smallest_fall(one: Comparison, *, power: float = POWER) -> float | None:
    """Return the smallest fall that would be flagged with this power; None if these samples show none at all."""
    low, high = one.margin, 1.0 - one.gain_rate
    if fall_power(one, high) < power:
        return None
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if fall_power(one, middle) >= power else (middle, high)
    return high


def samples_needed(one: Comparison, fall: float, *, power: float = POWER) -> int | None:
    """Return about how many samples would show a fall of this size with this power; None if it lies within the margin."""
    if fall <= one.margin:
        return None
    level = one.share_of(one.n_samples * (2.0 * one.gain_rate + fall))
    low, high = 0, 1
    while high < MAX_SAMPLES and not _shows(one, high, level, fall, power):
        low, high = high, 2 * high
    if high >= MAX_SAMPLES:
        return None
    while high - low > max(1, high // 100):
        middle = (low + high) // 2
        low, high = (low, middle) if _shows(one, middle, level, fall, power) else (middle, high)
    return ceil(high / 10) * 10


def _shows(one: Comparison, n_samples: int, level: float, fall: float, power: float) -> bool:
    larger = Comparison(
        n_samples=n_samples,
        gain_rate=one.gain_rate,
        margin=one.margin,
        share_of=lambda changed: level if changed >= 0 else 0.0,
    )
    return fall_power(larger, fall) >= power


def _likely_counts(n_samples: int, changing: float) -> DoubleArray:
    middle = n_samples * changing
    reach = REACH * sqrt(max(middle, 1.0))
    return np.arange(
        max(0.0, np.floor(middle - reach)), min(float(n_samples), np.ceil(middle + reach)) + 1.0
    )


COMPARED = {
    SubjectKind.OVERALL: "overall",
    SubjectKind.CLASS: "classes",
    SubjectKind.SLICE: "slices",
    SubjectKind.NAMED: "slices",
}
BORROWED_SAMPLES = 20
"""How many samples with the gains of everything that is compared are added to a subject's own gains."""


def regressions(rule: RegressionRule, figures: Figures) -> Iterator[PolicyEntry]:
    """Judge whether accuracy fell on the same samples; the chance of any false alarm is held over everything that is compared."""
    judging = figures.judging
    wanted = [pair for pair in figures.pairs or () if COMPARED[pair.kind] in rule.of]
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
