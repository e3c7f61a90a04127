"""Slices re-measured on samples that discovery never saw, with an exact test and a correction for all that was tested.

Also on samples that took no part in finding or testing them: does a finding hold there, too?
And gaps of confirmed slices without the winner's curse: each allows for the limit that it had to pass.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weakspot.core.arrays import BoolArray, DoubleArray, IntArray
from weakspot.core.bounds import Count, Level, PositiveFraction, check_bounds
from weakspot.core.errors import DataError
from weakspot.core.evidence import (
    Evidence,
    Interval,
    Measurement,
    Share,
    SliceSides,
    Verdict,
    effect_size,
    sides_of,
    sides_p,
)
from weakspot.core.failures import FailureCriterion, class_problems
from weakspot.core.group_tests import group_interval
from weakspot.core.questions import QuestionKeys
from weakspot.core.rules import single_rules
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.core.statistics import Correction, adjusted_p_values, overlap, wilson_interval

VERIFIER = "holdout"
MAX_WEIGHT = 300.0
EQUAL_PART = 0.2
NOTHING = (0, 0, 0, 0)


@dataclass(frozen=True, kw_only=True)
class HoldoutVerifier:
    """Compares the failure rate inside a slice with the rest of its class.

    Before predictions are looked at, slices with too few samples inside or outside are set aside, and of slices with nearly the
    same members only the one that did best on the discovery samples is tested. Sizes and members say nothing about predictions when
    membership does not matter, so leaving slices out this way keeps the error rate and does not make the others pay for them.

    Args:
        alpha: accepted error rate, of the kind `correction` says.
        correction: `fdr` the share of false findings among all confirmed ones (Benjamini and Hochberg); `fwer` the chance of any
            false finding (Holm); `fdr-dependent` as `fdr`, however the slices depend on each other (Benjamini and Yekutieli).
        weights: `discovery` tests weigh more that stood out on the discovery samples, compared with others of the same method;
            `equal` all weigh the same.
        min_support: least number of samples inside the slice.
        min_outside: least number of samples of the class outside of it.
        min_gap: least difference of failure rates for a confirmed finding.
        same_at: slices of a class whose members overlap at least so much (Jaccard) count as one.
        level: of the intervals.

    >>> from weakspot.testing.examples import CRITERION, confirmation_samples, discovery_samples, example_slices
    >>> evidence = HoldoutVerifier().verify(
    ...     example_slices(),
    ...     discovery=discovery_samples(),
    ...     confirmation=confirmation_samples(),
    ...     criterion=CRITERION,
    ... )
    >>> [one.verdict.value for one in evidence]
    ['confirmed', 'not confirmed']
    """

    alpha: Level = 0.05
    correction: Correction = "fdr"
    weights: Literal["discovery", "equal"] = "discovery"
    min_support: Count = 5
    min_outside: Count = 5
    min_gap: float = 0.0
    same_at: PositiveFraction = 0.8
    level: Level = 0.95

    def __post_init__(self) -> None:
        check_bounds(self)

    def verify(
        self,
        slices: Sequence[FailureSlice],
        *,
        discovery: SampleSet,
        confirmation: SampleSet,
        criterion: FailureCriterion,
    ) -> tuple[Evidence, ...]:
        """Return one entry a slice; images that discovery saw under another row are left out and counted in the name."""
        fresh = fresh_samples(slices, discovery=discovery, confirmation=confirmation)
        problems = class_problems(fresh.dataset, fresh.rows, criterion) if len(fresh) else ()
        candidates = [
            _Candidate(
                found=found,
                sides=None if found.rule.reads_predictions else sides_of(found, fresh, problems),
                discovery_p=p_value,
            )
            for found, p_value in zip(
                slices, _discovery_p(slices, discovery, criterion), strict=True
            )
        ]
        same_as = self._same_as(candidates)
        tested = [
            place
            for place, one in enumerate(candidates)
            if self._has_support(one) and same_as[place] is None
        ]
        results = self._results([candidates[place] for place in tested])
        by_place = dict(zip(tested, results, strict=True))
        use, keys = DataUse.of(fresh), QuestionKeys(fresh.dataset)
        return tuple(
            self._evidence(
                one, use, by_place.get(place), same_as[place], n_tested=len(tested)
            ).model_copy(update={"question": _question(one, keys)})
            for place, one in enumerate(candidates)
        )

    def _has_support(self, candidate: "_Candidate") -> bool:
        n_inside, n_outside = candidate.units
        return n_inside >= self.min_support and n_outside >= self.min_outside

    def _same_as(self, candidates: Sequence["_Candidate"]) -> list[str | None]:
        """Return for every candidate the slice that is tested in its place, None for those that stand for themselves."""
        found: list[str | None] = [None] * len(candidates)
        leaders: dict[tuple[str, str | None], list[_Candidate]] = defaultdict(list)
        for place in sorted(
            range(len(candidates)), key=lambda place: (*candidates[place].order, place)
        ):
            one = candidates[place]
            if not self._has_support(one):
                continue
            group = leaders[one.found.class_name, one.found.side]
            leader = next(
                (other for other in group if overlap(one.inside, other.inside) >= self.same_at),
                None,
            )
            if leader is None:
                group.append(one)
            else:
                found[place] = leader.found.slice_id
        return found

    def _results(self, tested: Sequence["_Candidate"]) -> list[tuple[float, float, float]]:
        """Return p-value, adjusted value and weight of all tests together."""
        p_values = sides_p([one.sides for one in tested if one.sides is not None])
        # A gap that would not be published counts as p = 1 before adjusting: dropping findings afterwards could raise their share.
        counted = [
            p_value if self._is_wide(one) else 1.0
            for one, p_value in zip(tested, p_values, strict=True)
        ]
        weights = _weights(tested) if self.weights == "discovery" else np.ones(len(tested))
        adjusted = adjusted_p_values(counted, correction=self.correction, weights=weights)
        return list(zip(p_values, adjusted.tolist(), weights.tolist(), strict=True))

    def _is_wide(self, candidate: "_Candidate") -> bool:
        failures_inside, n_inside, failures_outside, n_outside = candidate.table
        gap = failures_inside / n_inside - failures_outside / n_outside
        return gap > 0 and gap >= self.min_gap

    def _evidence(
        self,
        candidate: "_Candidate",
        use: DataUse,
        result: tuple[float, float, float] | None,
        same_as: str | None,
        *,
        n_tested: int,
    ) -> Evidence:
        p_value, q_value, weight = result or (1.0, 1.0, 1.0)
        failures_inside, n_inside, failures_outside, n_outside = candidate.table
        rate_inside = failures_inside / n_inside if n_inside else 0.0
        rate_outside = failures_outside / n_outside if n_outside else 0.0
        worth = candidate.effective
        inside = group_interval(failures_inside, n_inside, worth[0], level=self.level)
        outside = group_interval(failures_outside, n_outside, worth[1], level=self.level)
        has_groups = candidate.sides is not None and candidate.sides.has_groups
        groups_inside, groups_outside = candidate.units if has_groups else (0, 0)
        return Evidence(
            slice_id=candidate.found.slice_id,
            verifier=VERIFIER,
            measured_on=use,
            n_inside=n_inside,
            failures_inside=failures_inside,
            n_outside=n_outside,
            failures_outside=failures_outside,
            rate_inside=rate_inside,
            rate_outside=rate_outside,
            interval_inside=Interval(low=inside[0], high=inside[1], level=self.level),
            interval_outside=Interval(low=outside[0], high=outside[1], level=self.level),
            gap=rate_inside - rate_outside,
            p_value=p_value,
            q_value=q_value,
            n_tested=n_tested,
            verdict=self._verdict(candidate, same_as, None if result is None else q_value),
            correction=self.correction,
            weight=weight,
            same_as=same_as,
            effect=effect_size(candidate.table, level=self.level, effective=worth),
            groups_inside=groups_inside,
            groups_outside=groups_outside,
        )

    def _verdict(
        self, candidate: "_Candidate", same_as: str | None, q_value: float | None
    ) -> Verdict:
        if candidate.sides is None:
            return Verdict.CIRCULAR
        if same_as is not None:
            return Verdict.SAME
        if q_value is None:
            return Verdict.TOO_FEW
        is_confirmed = q_value <= self.alpha and self._is_wide(candidate)
        return Verdict.CONFIRMED if is_confirmed else Verdict.NOT_CONFIRMED


@dataclass(frozen=True, kw_only=True, eq=False)
class _Candidate:
    """A slice with its sides among the confirmation samples; without sides if its rule reads predictions."""

    found: FailureSlice
    sides: SliceSides | None
    discovery_p: float

    @property
    def table(self) -> tuple[int, int, int, int]:
        return NOTHING if self.sides is None else self.sides.table

    @property
    def units(self) -> tuple[int, int]:
        """Return the groups inside and outside."""
        return (0, 0) if self.sides is None else self.sides.units

    @property
    def effective(self) -> tuple[float, float]:
        """Return how many independent samples those inside and outside are worth."""
        return (0.0, 0.0) if self.sides is None else self.sides.effective

    @property
    def inside(self) -> BoolArray:
        return np.zeros(0, dtype=np.bool_) if self.sides is None else self.sides.inside

    @property
    def order(self) -> tuple[float, int, int, str]:
        """Return what decides which of several alike slices is tested: smallest first."""
        rules = single_rules(self.found.rule)
        return (
            self.discovery_p,
            len(rules),
            max((rule.complexity for rule in rules), default=0),
            self.found.slice_id,
        )


def _question(candidate: _Candidate, keys: QuestionKeys) -> str:
    """Return the name of what is asked about a slice; empty if nothing can be."""
    sides = candidate.sides
    if sides is None or sides.problem is None:
        return ""
    asked = sides.inside | sides.outside
    problem = sides.problem
    return keys.key(
        problem.title,
        problem.rows[asked],
        sides.inside[asked],
        problem.failed[asked],
        groups=None if problem.groups is None else problem.groups[asked],
    )


def _discovery_p(
    slices: Sequence[FailureSlice], discovery: SampleSet, criterion: FailureCriterion
) -> list[float]:
    """Return p-values on the discovery samples: too small for rules that were fitted there, so good for ordering only."""
    problems = (
        class_problems(discovery.dataset, discovery.rows, criterion)
        if len(discovery) and slices
        else ()
    )
    can_be_tested = [place for place, one in enumerate(slices) if not one.rule.reads_predictions]
    p_values = [1.0] * len(slices)
    measured = sides_p([sides_of(slices[place], discovery, problems) for place in can_be_tested])
    for place, p_value in zip(can_be_tested, measured, strict=True):
        p_values[place] = p_value
    return p_values


def _weights(tested: Sequence[_Candidate]) -> DoubleArray:
    """Return weights with mean one within every method.

    A method that fits its rules closely has tiny p-values on the discovery samples, real or not; it must not take weight from
    the others, so slices only compete with those of the same method. One slice that stands out by far must not take all weight
    of its method either, so the weight is bounded and a part of it is equal for all.
    """
    raw = np.maximum([one.discovery_p for one in tested], MAX_WEIGHT**-2.0) ** -0.5
    methods = np.array([one.found.method for one in tested])
    weights = np.ones(len(tested))
    for method in set(methods.tolist()):
        own = methods == method
        weights[own] = EQUAL_PART + (1.0 - EQUAL_PART) * raw[own] / raw[own].mean()
    return weights


def fresh_samples(
    slices: Sequence[FailureSlice], *, discovery: SampleSet, confirmation: SampleSet
) -> SampleSet:
    """Return the confirmation samples without repeated images and without images or groups that discovery saw.

    Raises:
        DataError: if the same samples were given for discovery and confirmation.
    """
    digest = confirmation.digest()
    if len(confirmation) and any(found.found_on.digest == digest for found in slices):
        raise DataError(
            "A slice cannot be confirmed on the samples it was found on.",
            where=confirmation.name,
            fix="Hold samples back.",
        )
    shared = set(discovery.dataset.sample_ids(discovery.rows)) & set(
        confirmation.dataset.sample_ids(confirmation.rows)
    )
    if shared:
        raise DataError(
            f"{len(shared)} samples are in both the discovery and the confirmation set.",
            where=f"{discovery.name} / {confirmation.name}",
            given=sorted(shared)[:3],
            fix="Give disjoint sets; weakspot.verify.halves makes them.",
        )
    dataset = confirmation.dataset
    contents = _first_numbers(discovery, confirmation)
    is_new = np.zeros(len(confirmation), dtype=np.bool_)
    is_new[np.unique(contents, return_index=True)[1]] = True
    is_new &= contents >= 0
    n_repeated = int(np.sum(~is_new))
    others = np.zeros(len(confirmation), dtype=np.bool_)
    if dataset is discovery.dataset:
        others = is_new & np.isin(dataset.groups[confirmation.rows], dataset.groups[discovery.rows])
    if not n_repeated and not others.any():
        return confirmation
    left_out = [f"repeated images left out: {n_repeated}"] * bool(n_repeated)
    left_out += [f"images of groups seen before left out: {int(others.sum())}"] * bool(others.any())
    name = f"{confirmation.name} ({', '.join(left_out)})"
    return replace(confirmation, rows=confirmation.rows[is_new & ~others], name=name)


def _first_numbers(discovery: SampleSet, confirmation: SampleSet) -> IntArray:
    """Return a number for the content of every confirmation sample, -1 if discovery saw it."""
    seen = pa.array(discovery.dataset.content_hashes(discovery.rows), pa.string())
    own = pa.array(confirmation.dataset.content_hashes(confirmation.rows), pa.string())
    codes = np.asarray(own.dictionary_encode().indices).astype(np.int64)
    return np.where(np.asarray(pc.is_in(own, value_set=seen)), -1, codes)


def measured_elsewhere(
    slices: Sequence[FailureSlice],
    samples_by_name: Mapping[str, SampleSet],
    criterion: FailureCriterion,
    *,
    seen: SampleSet | None = None,
    level: float = 0.95,
) -> dict[str, tuple[Measurement, ...]]:
    """Return for every slice id the failures inside and outside on each of the sets that have labels and predictions.

    Nothing is decided by these figures, so looking at the test split here does not use it up.

    Args:
        slices: usually the confirmed ones.
        samples_by_name: for example the pool and the test split, by the name that reports show.
        criterion: what counts as a failure.
        seen: samples whose images, and others of their groups, are left out; those that slices were found and tested on.
        level: of the intervals.
    """
    found: dict[str, list[Measurement]] = {one.slice_id: [] for one in slices}
    for name, given in samples_by_name.items():
        samples = given if seen is None else _without(given, seen)
        problems = (
            class_problems(samples.dataset, samples.rows, criterion)
            if slices and len(samples)
            else ()
        )
        if not problems:
            continue
        use = DataUse(name=name, n_samples=len(samples), digest=samples.digest())
        for one in slices:
            sides = sides_of(one, samples, problems)
            failures_inside, n_inside, failures_outside, n_outside = sides.table
            worth = sides.effective
            inside = Share.of(failures_inside, n_inside, level=level, effective=worth[0])
            outside = Share.of(failures_outside, n_outside, level=level, effective=worth[1])
            measured = Measurement(
                measured_on=use, inside=inside, outside=outside, gap=inside.value - outside.value
            )
            found[one.slice_id].append(measured)
    return {slice_id: tuple(measurements) for slice_id, measurements in found.items()}


def with_elsewhere(
    slices: Sequence[FailureSlice],
    evidence: Sequence[Evidence],
    samples_by_name: Mapping[str, SampleSet],
    criterion: FailureCriterion,
    *,
    seen: SampleSet | None = None,
) -> tuple[Evidence, ...]:
    """Return the same evidence, in the same order, with measurements of every confirmed slice on other samples."""
    confirmed = {entry.slice_id for entry in evidence if entry.verdict is Verdict.CONFIRMED}
    measured = measured_elsewhere(
        [one for one in slices if one.slice_id in confirmed], samples_by_name, criterion, seen=seen
    )
    return tuple(
        entry.model_copy(update={"elsewhere": measured[entry.slice_id]})
        if entry.slice_id in measured
        else entry
        for entry in evidence
    )


def _without(samples: SampleSet, seen: SampleSet) -> SampleSet:
    dataset = samples.dataset
    if dataset is seen.dataset:
        return samples.only(
            samples.rows[~np.isin(dataset.groups[samples.rows], dataset.groups[seen.rows])]
        )
    contents = set(seen.dataset.content_hashes(seen.rows))
    is_new = [content not in contents for content in dataset.content_hashes(samples.rows)]
    return samples.only(samples.rows[np.array(is_new, dtype=np.bool_)])


GRID = 400


def adjust_gap(
    table: tuple[int, int, int, int],
    *,
    largest_p: float,
    least_gap: float = 0.0,
    level: float = 0.95,
) -> tuple[float, float, float]:
    """Return the gap of a slice that is published only if Fisher's p-value is at most `largest_p`, and the ends of its interval.

    The gap is the mean over all gaps from zero up, weighed by how likely they make what was seen. The interval covers the true gap at
    least with `level`, given that the slice was published and the gap is not below zero; selection can only have raised the gap, so
    its upper end is that of an ordinary interval.

    Args:
        table: failures and samples inside, failures and samples outside; a positive gap, no side empty.
        largest_p: p-value up to which it would have been published.
        least_gap: gap from which on it would have been published.
        level: of the interval.

    >>> gap, _, _ = adjust_gap((6, 10, 14, 140), largest_p=0.01)
    >>> round(6 / 10 - 14 / 140, 2), round(gap, 2)
    (0.5, 0.38)
    """
    seen, n_inside, failures_outside, n_outside = table
    failures, n_all = seen + failures_outside, n_inside + n_outside
    counts, chances = _central(failures, n_inside, n_outside)
    tails = np.cumsum(np.exp(chances - chances.max())[::-1])[::-1]
    wide = counts / n_inside - (failures - counts) / n_outside >= least_gap
    reaching = counts[wide & (tails <= largest_p * tails[0] * (1 + 1e-9))]
    limit = min(seen, int(reaching[0])) if len(reaching) else seen
    kept = counts >= limit
    highest = min(failures / n_inside, (n_all - failures) / n_outside)
    gaps = np.linspace(0.0, highest, GRID + 2)[1:-1]
    outside = (failures - n_inside * gaps) / n_all
    inside = outside + gaps
    odds = np.log(inside) - np.log1p(-inside) - np.log(outside) + np.log1p(-outside)
    upper, own = _tails(counts[kept], chances[kept], odds, seen)
    tail = (1 - level) / 2
    low = 0.0 if upper[0] > tail else float(gaps[np.argmax(upper > tail)])
    return float(np.sum(own * gaps) / np.sum(own)), low, _plain_upper_end(table, level)


def _plain_upper_end(table: tuple[int, int, int, int], level: float) -> float:
    """Return the upper end of Newcombe's interval of a difference of rates."""
    failures_inside, n_inside, failures_outside, n_outside = table
    rate, other = failures_inside / n_inside, failures_outside / n_outside
    _, high = wilson_interval(failures_inside, n_inside, level=level)
    low, _ = wilson_interval(failures_outside, n_outside, level=level)
    return min(1.0, rate - other + float(np.hypot(high - rate, other - low)))


def _central(failures: int, n_inside: int, n_outside: int) -> tuple[IntArray, DoubleArray]:
    """Return possible numbers of failures inside, and the logarithm of their chances up to a constant, if membership did not matter."""
    from scipy.special import gammaln

    counts = np.arange(max(0, failures - n_outside), min(failures, n_inside) + 1)
    parts = (counts, n_inside - counts, failures - counts, n_outside - failures + counts)
    return counts, -np.sum([gammaln(part + 1.0) for part in parts], axis=0)


def _tails(
    counts: IntArray, chances: DoubleArray, odds: DoubleArray, seen: int
) -> tuple[DoubleArray, DoubleArray]:
    """Return for every logarithm of an odds ratio the chance of at least, and of exactly, what was seen."""
    upper, own = np.empty(len(odds)), np.empty(len(odds))
    for place, shift in enumerate(odds):
        terms = chances + counts * shift
        weights = np.exp(terms - terms.max())
        upper[place] = weights[counts >= seen].sum() / weights.sum()
        own[place] = weights[counts == seen].sum() / weights.sum()
    return upper, own


def with_adjusted_gaps(
    evidence: Sequence[Evidence], *, alpha: float, min_gap: float = 0.0
) -> tuple[Evidence, ...]:
    """Return the same evidence; confirmed slices have a gap that allows for their selection.

    Args:
        evidence: with the verdicts that are published.
        alpha: error rate up to which a slice is confirmed.
        min_gap: least gap of a confirmed slice.
    """
    batches: dict[tuple[int, str], list[Evidence]] = defaultdict(list)
    for entry in evidence:
        if entry.verdict is Verdict.CONFIRMED:
            batches[entry.batch, entry.measured_on.digest].append(entry)
    limits = {key: _limit(entries, alpha) for key, entries in batches.items()}
    return tuple(
        _adjust(entry, limits[entry.batch, entry.measured_on.digest], min_gap)
        if entry.verdict is Verdict.CONFIRMED
        else entry
        for entry in evidence
    )


def _limit(confirmed: Iterable[Evidence], alpha: float) -> float:
    """Return the largest p-value of weight one that would have been confirmed among these.

    The last one that was accepted has q = p / weight times what everything tested together costs; the limit is where that is alpha.
    """
    last = max(confirmed, key=lambda entry: entry.p_value / entry.weight)
    cost = last.q_value * last.weight / last.p_value if last.p_value > 0 else 1.0
    return alpha / max(cost, 1e-12)


def _adjust(entry: Evidence, limit: float, min_gap: float) -> Evidence:
    table = _in_groups(entry)
    if not table[1] or not table[3] or table[0] * table[3] <= table[2] * table[1]:
        return entry
    level = entry.interval_inside.level
    gap, low, high = adjust_gap(
        table,
        largest_p=max(entry.p_value, min(1.0, limit * entry.weight)) / entry.n_compared,
        least_gap=min_gap,
        level=level,
    )
    return entry.model_copy(
        update={
            "adjusted_gap": gap,
            "adjusted_interval": Interval(low=low, high=high, level=level),
        }
    )


def _in_groups(entry: Evidence) -> tuple[int, int, int, int]:
    """Return failures and samples inside and outside; where images form groups, as many as there are groups."""
    sides = (
        (entry.failures_inside, entry.n_inside, entry.groups_inside),
        (entry.failures_outside, entry.n_outside, entry.groups_outside),
    )
    (failures, total), (others, rest) = (
        (round(count * groups / size), groups) if groups else (count, size)
        for count, size, groups in sides
    )
    return failures, total, others, rest
