"""Slices re-measured on samples that discovery never saw, with an exact test and false-discovery control."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from weakspot.core.arrays import BoolArray
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.evidence import Evidence, Interval, Verdict
from weakspot.core.failures import ClassProblem, FailureCriterion, class_problems
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse, FailureSlice, matches
from weakspot.core.statistics import fisher_p, q_values, wilson_interval

VERIFIER = "holdout"


@dataclass(frozen=True, kw_only=True)
class HoldoutVerifier:
    """Compares the failure rate inside a slice with the rest of its class.

    A slice with too few samples inside or outside is set aside before outcomes are looked at. Sizes say nothing about outcomes
    when membership does not matter, so leaving those slices out keeps the error rate and does not make the others pay for them.

    Args:
        alpha: accepted share of false findings among all confirmed ones.
        min_support: least number of samples inside the slice.
        min_outside: least number of samples of the class outside of it.
        min_gap: least difference of failure rates for a confirmed finding.
        level: of the intervals.
    """

    alpha: float = 0.05
    min_support: int = 5
    min_outside: int = 5
    min_gap: float = 0.0
    level: float = 0.95

    def __post_init__(self) -> None:
        """Refuse settings that cannot mean anything."""
        for name in ("alpha", "level"):
            if not 0.0 < getattr(self, name) < 1.0:
                raise ConfigError(f"The setting {name} must lie between 0 and 1.", given=getattr(self, name))
        for name in ("min_support", "min_outside"):
            if getattr(self, name) < 1:
                raise ConfigError(f"The setting {name} must be at least 1.", given=getattr(self, name))

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
        counts = [_count(found, fresh, problems) for found in slices]
        is_tested = [self._has_support(count) for count in counts]
        p_values = [
            fisher_p(count.failures_inside, count.n_inside, count.failures_outside, count.n_outside)
            for count, tested in zip(counts, is_tested, strict=True)
            if tested
        ]
        adjusted = iter(zip(p_values, q_values(p_values), strict=True))
        measured_on = DataUse(name=fresh.name, n_samples=len(fresh), digest=fresh.digest())
        entries = []
        for found, count, tested in zip(slices, counts, is_tested, strict=True):
            p_value, q_value = next(adjusted) if tested else (1.0, 1.0)
            blank = self._evidence(found, count, measured_on)
            update = {"p_value": float(p_value), "q_value": float(q_value), "n_tested": len(p_values)}
            verdict = self._verdict(blank.gap, float(q_value)) if tested else Verdict.TOO_FEW
            entries.append(blank.model_copy(update={**update, "verdict": verdict}))
        return tuple(entries)

    def _has_support(self, count: "_Count") -> bool:
        return count.n_inside >= self.min_support and count.n_outside >= self.min_outside

    def _verdict(self, gap: float, q_value: float) -> Verdict:
        return Verdict.CONFIRMED if q_value <= self.alpha and gap > 0 and gap >= self.min_gap else Verdict.NOT_CONFIRMED

    def _evidence(self, found: FailureSlice, count: "_Count", measured_on: DataUse) -> Evidence:
        rate_inside = count.failures_inside / count.n_inside if count.n_inside else 0.0
        rate_outside = count.failures_outside / count.n_outside if count.n_outside else 0.0
        inside = wilson_interval(count.failures_inside, count.n_inside, level=self.level)
        outside = wilson_interval(count.failures_outside, count.n_outside, level=self.level)
        return Evidence(
            slice_id=found.slice_id,
            verifier=VERIFIER,
            measured_on=measured_on,
            n_inside=count.n_inside,
            failures_inside=count.failures_inside,
            n_outside=count.n_outside,
            failures_outside=count.failures_outside,
            rate_inside=rate_inside,
            rate_outside=rate_outside,
            interval_inside=Interval(low=inside[0], high=inside[1], level=self.level),
            interval_outside=Interval(low=outside[0], high=outside[1], level=self.level),
            gap=rate_inside - rate_outside,
            p_value=1.0,
            q_value=1.0,
            n_tested=0,
            verdict=Verdict.TOO_FEW,
        )


@dataclass(frozen=True, kw_only=True)
class _Count:
    n_inside: int = 0
    failures_inside: int = 0
    n_outside: int = 0
    failures_outside: int = 0


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


def _count(found: FailureSlice, samples: SampleSet, problems: Sequence[ClassProblem]) -> _Count:
    """Count samples and failures; samples whose membership cannot be told, for want of a vector, count nowhere."""
    problem = next((one for one in problems if matches(found, one)), None)
    if problem is None:
        return _Count()
    inside = found.inside(samples, problem)
    outside: BoolArray = ~inside & np.isfinite(found.rule.scores(samples, problem.rows))
    return _Count(
        n_inside=int(inside.sum()),
        failures_inside=int(problem.failed[inside].sum()),
        n_outside=int(outside.sum()),
        failures_outside=int(problem.failed[outside].sum()),
    )
