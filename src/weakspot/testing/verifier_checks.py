"""Checks of verifiers."""

from collections.abc import Sequence

import numpy as np

from weakspot.core.dataset import Split
from weakspot.core.evidence import Evidence, Verdict
from weakspot.core.failures import class_problems
from weakspot.core.roles import Verifier
from weakspot.core.rules import LinearRule, PredictionRule
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice, matches
from weakspot.testing import material
from weakspot.testing.part_checks import (
    ANY_METHOD,
    Factory,
    expect,
    expect_no_global_randomness,
    expect_refusal,
    role_checks,
)

TOLERANCE = 1e-9


def _evidence(
    factory: Factory,
    confirmation: SampleSet | None = None,
    slices: Sequence[FailureSlice] | None = None,
) -> tuple[Evidence, ...]:
    part: Verifier = factory()
    discovery = material.sample_set(Split.VALIDATION)
    return part.verify(
        material.slices_of(discovery) if slices is None else slices,
        discovery=discovery,
        confirmation=material.sample_set(Split.TEST) if confirmation is None else confirmation,
        criterion=material.CRITERION,
    )


def one_entry_a_slice(factory: Factory) -> None:
    """Evidence comes in the order of the slices."""
    given = material.slices_of(material.sample_set(Split.VALIDATION))
    expect(
        [entry.slice_id for entry in _evidence(factory)] == [found.slice_id for found in given],
        "Not one entry a slice, in order.",
    )
    expect(
        all(entry.verifier for entry in _evidence(factory)), "An entry does not name its verifier."
    )


def counts_are_right(factory: Factory) -> None:
    """Numbers are those of the class's confirmation samples inside and outside the slice."""
    confirmation = material.sample_set(Split.TEST)
    problems = class_problems(confirmation.dataset, confirmation.rows, material.CRITERION)
    given = material.slices_of(material.sample_set(Split.VALIDATION))
    for found, entry in zip(given, _evidence(factory, confirmation), strict=True):
        problem = next(one for one in problems if matches(found, one))
        inside = found.inside(confirmation, problem)
        wanted = (
            inside.sum(),
            problem.failed[inside].sum(),
            (~inside).sum(),
            problem.failed[~inside].sum(),
        )
        counted = (entry.n_inside, entry.failures_inside, entry.n_outside, entry.failures_outside)
        expect(
            counted == wanted,
            f"Counts {counted} should be {tuple(int(number) for number in wanted)}.",
        )
        expect(
            entry.measured_on.digest == confirmation.digest(),
            "measured_on is not the confirmation samples.",
        )


def figures_agree(factory: Factory) -> None:
    """Rates, gap, intervals, p and q follow from each other."""
    for entry in _evidence(factory):
        rate = entry.failures_inside / entry.n_inside
        expect(
            abs(entry.rate_inside - rate) < TOLERANCE,
            "rate_inside is not failures_inside / n_inside.",
        )
        expect(
            abs(entry.gap - (entry.rate_inside - entry.rate_outside)) < TOLERANCE,
            "gap is not rate_inside - rate_outside.",
        )
        expect(
            entry.interval_inside.low <= rate <= entry.interval_inside.high,
            "The interval does not hold its rate.",
        )
        expect(0.0 <= entry.p_value <= entry.q_value <= 1.0, "Not 0 <= p <= q <= 1.")


def the_planted_slice_is_confirmed(factory: Factory) -> None:
    """A slice that fails far more often is confirmed."""
    entry = _evidence(factory)[0]
    expect(
        entry.verdict == Verdict.CONFIRMED,
        f"The planted slice (gap {entry.gap:.2f}, p {entry.p_value:.1e}) was not confirmed.",
    )


def an_empty_slice_is_not_confirmed(factory: Factory) -> None:
    """A slice without members proves nothing."""
    found = material.slices_of(material.sample_set(Split.VALIDATION))[0]
    rule = (
        found.rule.model_copy(update={"threshold": 9.0})
        if isinstance(found.rule, LinearRule)
        else found.rule
    )
    entry = _evidence(factory, slices=[found.model_copy(update={"rule": rule})])[0]
    expect(
        entry.n_inside == 0 and entry.verdict != Verdict.CONFIRMED,
        "A slice without members was confirmed.",
    )


def a_slice_by_predictions_is_not_confirmed(factory: Factory) -> None:
    """That samples with a high loss fail is true by definition and proves nothing."""
    found = material.slices_of(material.sample_set(Split.VALIDATION))[0]
    by_loss = found.model_copy(update={"rule": PredictionRule(measure="loss", threshold=0.5)})
    entry = _evidence(factory, slices=[by_loss])[0]
    expect(
        entry.verdict != Verdict.CONFIRMED,
        "A slice that is defined by what the classifier said was confirmed.",
    )


def seen_samples_are_refused(factory: Factory) -> None:
    """Confirmation on samples that discovery saw is no confirmation."""
    discovery = material.sample_set(Split.VALIDATION)
    with expect_refusal("The discovery samples were given for confirmation"):
        _evidence(factory, discovery)
    mixed = discovery.only(
        np.sort(np.concatenate([discovery.rows[:1], discovery.dataset.rows_of(Split.TEST)]))
    )
    with expect_refusal("One sample was in both sets"):
        _evidence(factory, mixed)


def same_result_twice(factory: Factory) -> None:
    """Two fresh parts say the same, and a used part says what a fresh one says."""
    first = _evidence(factory)
    expect(first == _evidence(factory), "The same slices got other evidence.")
    part = factory()
    _evidence(
        lambda: part,
        slices=material.slices_of(
            material.sample_set(Split.VALIDATION), phrases=("a white square",)
        ),
    )
    expect(_evidence(lambda: part) == first, "The result depends on an earlier call.")


def input_stays_as_it_is(factory: Factory) -> None:
    """No array of the samples is changed."""
    samples = material.sample_set(Split.TEST)
    before = material.contents(samples)
    _evidence(factory, samples)
    expect(material.contents(samples) == before, "An array of the given samples was changed.")


def no_global_randomness(factory: Factory) -> None:
    """Nothing is left to chance."""
    expect_no_global_randomness(lambda: _evidence(factory))


def no_slices_give_none(factory: Factory) -> None:
    expect(_evidence(factory, slices=()) == (), "Evidence came out of nothing.")


CHECKS = role_checks(
    Verifier,
    ANY_METHOD,
    one_entry_a_slice,
    counts_are_right,
    figures_agree,
    the_planted_slice_is_confirmed,
    an_empty_slice_is_not_confirmed,
    a_slice_by_predictions_is_not_confirmed,
    seen_samples_are_refused,
    same_result_twice,
    input_stays_as_it_is,
    no_global_randomness,
    no_slices_give_none,
)
