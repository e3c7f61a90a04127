"""A policy put to what was measured."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date

from weakspot.core.errors import ConfigError
from weakspot.release.bars import (
    class_accuracy,
    confirmed_slices,
    failing_classes,
    overall_accuracy,
    slice_accuracy,
    slice_gap,
)
from weakspot.release.comparisons import new_slices
from weakspot.release.figures import Figures, SubjectKind
from weakspot.release.policy import AcceptedSlice, Policy
from weakspot.release.regressions import regressions
from weakspot.release.result import PolicyEntry, Ruling

RULE = "accepted"


class Acceptances:
    """The accepted slices of a policy on a day.

    Args:
        listed: the list.
        figures: what was measured; tells which slices there are and which of the baseline's they are.
        today: the day.
    """

    def __init__(self, listed: Sequence[AcceptedSlice], figures: Figures, today: date) -> None:
        self._listed = listed
        self._today = today
        self._names = _names(figures)

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(
            slice_id
            for slice_id in self._names
            if (one := self._of(slice_id)) is not None and not self._is_over(one)
        )

    def applied(self, entry: PolicyEntry) -> PolicyEntry:
        if entry.verdict is not Ruling.VIOLATED:
            return entry
        one = self._of(entry.slice_id) if entry.slice_id else self._by_name({entry.subject})
        if one is None:
            return entry
        if self._is_over(one):
            said = f"It was accepted until {one.until.isoformat()}, which is over ({one.reason})."
            return entry.model_copy(update={"sentence": f"{entry.sentence} {said}"})
        said = f"Accepted until {one.until.isoformat()}: {one.reason}."
        return entry.model_copy(
            update={
                "verdict": Ruling.ACCEPTED,
                "sentence": f"{entry.sentence} {said.replace('..', '.')}",
            }
        )

    def entries(self) -> Iterator[PolicyEntry]:
        """Yield one entry a listed slice: violated once its day is over while the slice is still there."""
        for one in self._listed:
            is_there = any(one.slice in names for names in self._names.values())
            day = one.until.isoformat()
            if not is_there:
                verdict, sentence = (
                    Ruling.KEPT,
                    f"No slice is called “{one.slice}” any more; the entry can be removed.",
                )
            elif self._is_over(one):
                verdict = Ruling.VIOLATED
                sentence = f"“{one.slice}” was accepted until {day}, which is over: repair it, or decide anew ({one.reason})."
            else:
                verdict, sentence = (
                    Ruling.KEPT,
                    f"“{one.slice}” is accepted until {day}: {one.reason}.",
                )
            yield PolicyEntry(
                rule=RULE, subject=one.slice, verdict=verdict, sentence=sentence.replace("..", ".")
            )

    def _of(self, slice_id: str) -> AcceptedSlice | None:
        return self._by_name(self._names.get(slice_id, {slice_id}))

    def _by_name(self, names: set[str]) -> AcceptedSlice | None:
        return next((one for one in self._listed if one.slice in names), None)

    def _is_over(self, one: AcceptedSlice) -> bool:
        return self._today > one.until


def _names(figures: Figures) -> Mapping[str, set[str]]:
    """Return by slice id (named slices: by name) all names that a slice goes by."""
    names: dict[str, set[str]] = {}
    for tally in figures.of(SubjectKind.SLICE, SubjectKind.NAMED):
        key = tally.slice_id or tally.subject
        names.setdefault(key, {key}).update({tally.subject, tally.also_called} - {""})
    for pair in figures.pairs or ():
        if pair.slice_id:
            names.setdefault(pair.slice_id, {pair.slice_id}).add(pair.subject)
    for one in figures.sightings or ():
        names.setdefault(one.slice_id, {one.slice_id}).update(
            {one.subject, one.known_id, one.known_as} - {""}
        )
    return names


def judge_policy(policy: Policy, figures: Figures, *, today: date) -> tuple[PolicyEntry, ...]:
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
    entries = [*_single(policy, figures, acceptances), *_compare(policy, figures, acceptances)]
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
    if policy.failing_classes is not None:
        yield failing_classes(policy.failing_classes, figures)


def _compare(policy: Policy, figures: Figures, acceptances: Acceptances) -> Iterator[PolicyEntry]:
    if policy.new_slices is not None:
        yield from new_slices(
            policy.new_slices,
            figures.sightings or (),
            policy.judging,
            n_tested=figures.n_tested,
            correction=figures.correction,
            accepted=acceptances.ids,
        )
    if policy.regressions is not None:
        yield from regressions(policy.regressions, figures.pairs or (), policy.judging)


def _refuse_without_baseline(policy: Policy, figures: Figures) -> None:
    wanted = [
        ("new_slices", policy.new_slices, figures.sightings),
        ("regressions", policy.regressions, figures.pairs),
    ]
    lacking = [name for name, rule, found in wanted if rule is not None and found is None]
    if lacking:
        raise ConfigError(
            f"The policy compares with a baseline ({', '.join(lacking)}), and there is none with what that needs.",
            fix="Give --baseline a project or a file that `weakspot check --write-baseline` wrote.",
        )
