"""A policy put to what was measured."""

from collections.abc import Iterator
from datetime import date

from weakspot.core.errors import ConfigError
from weakspot.release.acceptance import Acceptances
from weakspot.release.bars import class_accuracy, confirmed_slices, overall_accuracy, slice_accuracy, slice_gap
from weakspot.release.comparisons import new_slices, regressions
from weakspot.release.figures import Figures
from weakspot.release.outcome import PolicyEntry
from weakspot.release.policy import Policy


def judged(policy: Policy, figures: Figures, *, today: date) -> tuple[PolicyEntry, ...]:
    """Return one entry a rule and subject.

    Args:
        policy: the rules.
        figures: what was measured.
        today: decides whether slices are still accepted.

    Raises:
        ConfigError: if a rule needs a baseline and there is none, or names a class that there is not.
    """
    _refuse_without_baseline(policy, figures)
    acceptances = Acceptances(policy.accepted, figures, today)
    entries = [*_single(policy, figures, acceptances), *_compared(policy, figures, acceptances)]
    return (*map(acceptances.applied, entries), *acceptances.entries())


def _single(policy: Policy, figures: Figures, acceptances: Acceptances) -> Iterator[PolicyEntry]:
    if policy.overall_accuracy is not None:
        yield from overall_accuracy(policy.overall_accuracy, figures, policy.judging)
    yield from class_accuracy(policy, figures)
    if policy.slice_accuracy is not None:
        yield from slice_accuracy(policy.slice_accuracy, figures, policy.judging)
    if policy.slice_gap is not None:
        yield from slice_gap(policy.slice_gap, figures, policy.judging)
    if policy.confirmed_slices is not None:
        yield confirmed_slices(policy.confirmed_slices, figures, acceptances.ids)


def _compared(policy: Policy, figures: Figures, acceptances: Acceptances) -> Iterator[PolicyEntry]:
    if policy.new_slices is not None:
        yield from new_slices(
            policy.new_slices,
            figures.sightings or (),
            policy.judging,
            n_tested=figures.n_tested,
            control=figures.control,
            accepted=acceptances.ids,
        )
    if policy.regressions is not None:
        yield from regressions(policy.regressions, figures.pairs or (), policy.judging)


def _refuse_without_baseline(policy: Policy, figures: Figures) -> None:
    wanted = [("new_slices", policy.new_slices, figures.sightings), ("regressions", policy.regressions, figures.pairs)]
    lacking = [name for name, rule, found in wanted if rule is not None and found is None]
    if lacking:
        raise ConfigError(
            f"The policy compares with a baseline ({', '.join(lacking)}), and there is none with what that needs.",
            fix="Give --baseline a project or a file that `weakspot check --write-baseline` wrote.",
        )
