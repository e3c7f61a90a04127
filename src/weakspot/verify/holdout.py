"""Slices re-measured on samples that discovery never saw, with an exact test and control of false findings."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.evidence import Evidence, Interval, SliceSides, Verdict, effect_size, sides_of
from weakspot.core.failures import FailureCriterion, class_problems
from weakspot.core.rules import single_rules
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.core.statistics import CONTROLS, Control, adjusted_p_values, fisher_p, overlap, wilson_interval

VERIFIER = "holdout"
SIMPLEST_FIRST = ("column", "ids", "nearest", "linear", "ball", "mixture", "outcome")
LARGEST_WEIGHT = 300.0
EQUAL_PART = 0.2
NOTHING = (0, 0, 0, 0)


@dataclass(frozen=True, kw_only=True)
class HoldoutVerifier:
    """Compares the failure rate inside a slice with the rest of its class.

    Before outcomes are looked at, slices with too few samples inside or outside are set aside, and of slices with nearly the
    same members only the one that did best on the discovery samples is tested. Sizes and members say nothing about outcomes when
    membership does not matter, so leaving slices out this way keeps the error rate and does not make the others pay for them.

    Args:
        alpha: accepted error rate, of the kind `control` says.
        control: `fdr` the share of false findings among all confirmed ones (Benjamini and Hochberg); `fwer` the chance of any
            false finding (Holm); `fdr-dependent` as `fdr`, however the slices depend on each other (Benjamini and Yekutieli).
        weights: `discovery` tests weigh more that stood out on the discovery samples, compared with others of the same method;
            `equal` all weigh the same.
        min_support: least number of samples inside the slice.
        min_outside: least number of samples of the class outside of it.
        min_gap: least difference of failure rates for a confirmed finding.
        same_at: slices of a class whose members overlap at least so much (Jaccard) count as one.
        level: of the intervals.
    """

    alpha: float = 0.05
    control: Control = "fdr"
    weights: Literal["discovery", "equal"] = "discovery"
    min_support: int = 5
    min_outside: int = 5
    min_gap: float = 0.0
    same_at: float = 0.8
    level: float = 0.95

    def __post_init__(self) -> None:
        """Refuse settings that cannot mean anything."""
        for name in ("alpha", "level"):
            if not 0.0 < getattr(self, name) < 1.0:
                raise ConfigError(f"The setting {name} must lie between 0 and 1.", given=getattr(self, name))
        for name in ("min_support", "min_outside"):
            if getattr(self, name) < 1:
                raise ConfigError(f"The setting {name} must be at least 1.", given=getattr(self, name))
        for name, known in (("control", CONTROLS), ("weights", ("discovery", "equal"))):
            if getattr(self, name) not in known:
                raise ConfigError(f"The setting {name} must be one of {', '.join(known)}.", given=getattr(self, name))
        if not 0.0 < self.same_at <= 1.0:
            raise ConfigError("The setting same_at must lie in (0, 1].", given=self.same_at)

    def verify(
        self,
        slices: Sequence[FailureSlice],
        *,
        discovery: SampleSet,
        confirmation: SampleSet,
        criterion: FailureCriterion,
    ) -> tuple[Evidence, ...]:
        """Return one entry a slice; pictures that discovery saw under another row are left out and counted in the name."""
        fresh = fresh_samples(slices, discovery=discovery, confirmation=confirmation)
        problems = class_problems(fresh.dataset, fresh.rows, criterion) if len(fresh) else ()
        candidates = [
            _Candidate(
                found=found,
                sides=None if found.rule.reads_outcomes else sides_of(found, fresh, problems),
                discovery_p=p_value,
            )
            for found, p_value in zip(slices, _discovery_p(slices, discovery, criterion), strict=True)
        ]
        same_as = self._same_as(candidates)
        tested = [place for place, one in enumerate(candidates) if self._has_support(one) and same_as[place] is None]
        results = self._results([candidates[place] for place in tested])
        by_place = dict(zip(tested, results, strict=True))
        use = DataUse.of(fresh)
        return tuple(
            self._evidence(one, use, by_place.get(place), same_as[place], n_tested=len(tested))
            for place, one in enumerate(candidates)
        )

    def _has_support(self, candidate: "_Candidate") -> bool:
        _, n_inside, _, n_outside = candidate.table
        return n_inside >= self.min_support and n_outside >= self.min_outside

    def _same_as(self, candidates: Sequence["_Candidate"]) -> list[str | None]:
        """Return for every candidate the slice that is tested in its place, None for those that stand for themselves."""
        found: list[str | None] = [None] * len(candidates)
        leaders: dict[tuple[str, str | None], list[_Candidate]] = defaultdict(list)
        for place in sorted(range(len(candidates)), key=lambda place: (*candidates[place].order, place)):
            one = candidates[place]
            if not self._has_support(one):
                continue
            group = leaders[one.found.class_name, one.found.side]
            leader = next((other for other in group if overlap(one.inside, other.inside) >= self.same_at), None)
            if leader is None:
                group.append(one)
            else:
                found[place] = leader.found.slice_id
        return found

    def _results(self, tested: Sequence["_Candidate"]) -> list["_Result"]:
        """Return p-value, adjusted value and weight of all tests together."""
        p_values = [fisher_p(*one.table) for one in tested]
        # A gap that would not be published counts as p = 1 before adjusting: dropping findings afterwards could raise their share.
        counted = [p_value if self._is_wide(one) else 1.0 for one, p_value in zip(tested, p_values, strict=True)]
        weights = _weights(tested) if self.weights == "discovery" else np.ones(len(tested))
        adjusted = adjusted_p_values(counted, control=self.control, weights=weights)
        return [
            _Result(p_value=p_value, q_value=float(q_value), weight=float(weight))
            for p_value, q_value, weight in zip(p_values, adjusted, weights, strict=True)
        ]

    def _is_wide(self, candidate: "_Candidate") -> bool:
        failures_inside, n_inside, failures_outside, n_outside = candidate.table
        gap = failures_inside / n_inside - failures_outside / n_outside
        return gap > 0 and gap >= self.min_gap

    def _evidence(
        self, candidate: "_Candidate", use: DataUse, result: "_Result | None", same_as: str | None, *, n_tested: int
    ) -> Evidence:
        failures_inside, n_inside, failures_outside, n_outside = candidate.table
        rate_inside = failures_inside / n_inside if n_inside else 0.0
        rate_outside = failures_outside / n_outside if n_outside else 0.0
        inside = wilson_interval(failures_inside, n_inside, level=self.level)
        outside = wilson_interval(failures_outside, n_outside, level=self.level)
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
            p_value=1.0 if result is None else result.p_value,
            q_value=1.0 if result is None else result.q_value,
            n_tested=n_tested,
            verdict=self._verdict(candidate, result, same_as),
            control=self.control,
            weight=1.0 if result is None else result.weight,
            same_as=same_as,
            effect=effect_size(candidate.table, level=self.level),
        )

    def _verdict(self, candidate: "_Candidate", result: "_Result | None", same_as: str | None) -> Verdict:
        if candidate.sides is None:
            return Verdict.CIRCULAR
        if same_as is not None:
            return Verdict.SAME
        if result is None:
            return Verdict.TOO_FEW
        return Verdict.CONFIRMED if result.q_value <= self.alpha and self._is_wide(candidate) else Verdict.NOT_CONFIRMED


@dataclass(frozen=True, kw_only=True)
class _Result:
    p_value: float
    q_value: float
    weight: float


@dataclass(frozen=True, kw_only=True, eq=False)
class _Candidate:
    """A slice with its sides among the confirmation samples; without sides if its rule reads outcomes."""

    found: FailureSlice
    sides: SliceSides | None
    discovery_p: float

    @property
    def table(self) -> tuple[int, int, int, int]:
        return NOTHING if self.sides is None else self.sides.table

    @property
    def inside(self) -> BoolArray:
        return np.zeros(0, dtype=np.bool_) if self.sides is None else self.sides.inside

    @property
    def order(self) -> tuple[float, int, int, str]:
        """Return what decides which of several alike slices is tested: smallest first."""
        kinds = [part.kind for part in single_rules(self.found.rule)]
        return self.discovery_p, len(kinds), max((SIMPLEST_FIRST.index(kind) for kind in kinds), default=0), self.found.slice_id


def _discovery_p(slices: Sequence[FailureSlice], discovery: SampleSet, criterion: FailureCriterion) -> list[float]:
    """Return p-values on the discovery samples: too small for rules that were fitted there, so good for ordering only."""
    problems = class_problems(discovery.dataset, discovery.rows, criterion) if len(discovery) and slices else ()
    return [1.0 if found.rule.reads_outcomes else fisher_p(*sides_of(found, discovery, problems).table) for found in slices]


def _weights(tested: Sequence[_Candidate]) -> DoubleArray:
    """Return weights with mean one within every method.

    A method that fits its rules closely has tiny p-values on the discovery samples, real or not; it must not take weight from
    the others, so slices only compete with those of the same method. One slice that stands out by far must not take all weight
    of its method either, so the weight is bounded and a part of it is equal for all.
    """
    raw = np.maximum([one.discovery_p for one in tested], LARGEST_WEIGHT**-2.0) ** -0.5
    methods = np.array([one.found.method for one in tested])
    weights = np.ones(len(tested))
    for method in set(methods.tolist()):
        own = methods == method
        weights[own] = EQUAL_PART + (1.0 - EQUAL_PART) * raw[own] / raw[own].mean()
    return weights


def fresh_samples(slices: Sequence[FailureSlice], *, discovery: SampleSet, confirmation: SampleSet) -> SampleSet:
    """Return the confirmation samples without repeated pictures and without pictures that discovery saw.

    Raises:
        DataError: if the same samples were given for discovery and confirmation.
    """
    digest = confirmation.digest()
    if len(confirmation) and any(found.found_on.digest == digest for found in slices):
        raise DataError(
            "A slice cannot be confirmed on the samples it was found on.", where=confirmation.name, fix="Hold samples back."
        )
    shared = set(discovery.dataset.sample_ids(discovery.rows)) & set(confirmation.dataset.sample_ids(confirmation.rows))
    if shared:
        raise DataError(
            f"{len(shared)} samples are in both the discovery and the confirmation set.",
            where=f"{discovery.name} / {confirmation.name}",
            given=sorted(shared)[:3],
            fix="Give disjoint sets; weakspot.verify.halves makes them.",
        )
    seen = set(discovery.dataset.content_hashes(discovery.rows))
    kept, n_repeated = [], 0
    for row, content in zip(confirmation.rows, confirmation.dataset.content_hashes(confirmation.rows), strict=True):
        n_repeated += content in seen
        if content not in seen:
            kept.append(row)
            seen.add(content)
    if not n_repeated:
        return confirmation
    name = f"{confirmation.name} (repeated pictures left out: {n_repeated})"
    return replace(confirmation, rows=np.array(kept, dtype=np.int64), name=name)
