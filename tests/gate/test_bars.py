import numpy as np
import pytest

from weakspot.core.errors import ConfigError
from weakspot.core.statistics import exact_interval
from weakspot.gate.bars import (
    accuracy_interval,
    class_accuracy,
    confirmed_slices,
    failing_classes,
    gap_interval,
    shared_level,
    slice_accuracy,
    slice_gap,
)
from weakspot.gate.figures import Figures, SubjectKind, Tally
from weakspot.gate.policy import (
    CountRule,
    GapRule,
    LeastRule,
    parse_policy,
)
from weakspot.gate.result import Ruling


def _slice(name, n_samples, n_failed, **more):
    outside = {"n_outside": 100, "failed_outside": 0, "is_finding": True, **more}
    return Tally(
        subject=name,
        kind=SubjectKind.SLICE,
        n_samples=n_samples,
        n_failed=n_failed,
        slice_id=f"id-{name}",
        **outside,
    )


def _only(entries):
    (entry,) = entries
    return entry


@pytest.mark.parametrize(
    ("n_failed", "verdict"), [(0, Ruling.KEPT), (13, Ruling.KEPT), (25, Ruling.VIOLATED)]
)
def test_slice_accuracy__by_interval_only_what_is_clearly_below_violates(n_failed, verdict):
    figures = Figures(tallies=(_slice("a", 50, n_failed),), n_tested=1)
    entry = _only(slice_accuracy(LeastRule(min=0.8), figures))
    assert entry.verdict is verdict
    assert (entry.value, entry.bar, entry.n_samples) == (1 - n_failed / 50, 0.8, 50)
    assert (entry.interval.low, entry.interval.high) == exact_interval(
        50 - n_failed, 50, level=0.95
    )


def test_slice_accuracy__the_more_was_tested_the_wider_the_interval():
    few, many = (
        _only(
            slice_accuracy(
                LeastRule(min=0.8), Figures(tallies=(_slice("a", 50, 20),), n_tested=count)
            )
        )
        for count in (1, 200)
    )
    assert (few.verdict, many.verdict) == (Ruling.VIOLATED, Ruling.KEPT)
    assert many.interval.level == pytest.approx(1 - 0.05 / 200)
    assert "but not clearly below 80 %" in many.sentence


def test_slice_accuracy__too_few_samples_are_not_judged():
    figures = Figures(tallies=(_slice("a", 9, 9),), n_tested=1)
    entry = _only(slice_accuracy(LeastRule(min=0.8), figures))
    assert entry.verdict is Ruling.NOT_JUDGED
    assert entry.sentence == "“a” has 9 samples, fewer than the 10 that are needed: not judged."


@pytest.mark.parametrize(
    ("failed", "judge", "verdict"),
    [
        (10, "interval", Ruling.KEPT),
        (13, "interval", Ruling.KEPT),
        (13, "point", Ruling.VIOLATED),
        (40, "interval", Ruling.VIOLATED),
    ],
)
def test_slice_gap__is_held_against_the_rest_of_the_class(failed, judge, verdict):
    figures = Figures(tallies=(_slice("a", 50, failed),), n_tested=1)
    entry = _only(slice_gap(GapRule(max=0.25, judge=judge), figures))
    assert entry.verdict is verdict
    assert entry.value == pytest.approx(failed / 50)
    assert entry.interval.low < entry.value < entry.interval.high


def test_slice_gap__a_slice_without_a_rest_is_not_judged():
    figures = Figures(tallies=(_slice("a", 50, 50, n_outside=3),), n_tested=1)
    assert _only(slice_gap(GapRule(max=0.25), figures)).verdict is Ruling.NOT_JUDGED


def test_class_accuracy__classes_can_have_bars_of_their_own():
    tallies = tuple(
        Tally(subject=name, kind=SubjectKind.CLASS, n_samples=100, n_failed=40)
        for name in ("apple", "pear")
    )
    policy = parse_policy(
        {"class_accuracy": {"min": 0.9, "per_class": {"pear": 0.5}}}, where="here"
    )
    verdicts = {
        entry.subject: entry.verdict
        for entry in class_accuracy(policy.class_accuracy, Figures(tallies=tallies))
    }
    assert verdicts == {"apple": Ruling.VIOLATED, "pear": Ruling.KEPT}


def test_class_accuracy__an_unknown_class_is_refused():
    tallies = (Tally(subject="pear", kind=SubjectKind.CLASS, n_samples=100, n_failed=0),)
    policy = parse_policy(
        {"class_accuracy": {"min": 0.9, "per_class": {"paer": 0.5}}}, where="here"
    )
    with pytest.raises(ConfigError, match="Did you mean 'pear'"):
        list(class_accuracy(policy.class_accuracy, Figures(tallies=tallies)))


def test_confirmed_slices__explained_and_accepted_ones_do_not_count():
    tallies = (_slice("a", 50, 30), _slice("b", 50, 30, is_finding=False), _slice("c", 50, 30))
    rule = CountRule(max=1)
    assert _only(confirmed_slices(rule, Figures(tallies=tallies))).verdict is Ruling.VIOLATED
    kept = _only(confirmed_slices(rule, Figures(tallies=tallies, accepted=("id-c",))))
    assert (kept.verdict, kept.value) == (Ruling.KEPT, 1.0)
    assert kept.sentence == "1 slice is confirmed: “a”; 1 may be. 1 more are accepted."


def test_failing_classes__only_confirmed_ones_count():
    tallies = tuple(
        Tally(
            subject=name,
            kind=SubjectKind.CLASS,
            n_samples=50,
            n_failed=40,
            is_finding=name != "crane",
        )
        for name in ("heron", "crane", "owl")
    )
    entry = _only(failing_classes(CountRule(max=1), Figures(tallies=tallies)))
    assert (entry.verdict, entry.value) == (Ruling.VIOLATED, 2.0)
    assert entry.sentence == (
        "2 classes are confirmed to fail as a whole: “heron” (40 of 50 wrong), “owl” (40 of 50 wrong); 1 may."
    )
    two = _only(failing_classes(CountRule(max=2), Figures(tallies=tallies)))
    assert two.verdict is Ruling.KEPT
    kept = _only(failing_classes(CountRule(max=0), Figures(tallies=tallies[1:2])))
    assert kept.sentence == "No class is confirmed to fail as a whole; none may."


def test_shared_level__keeps_the_chance_of_any_miss():
    assert shared_level(0.95, 10) == pytest.approx(0.995)
    assert shared_level(0.95, 0) == 0.95


def test_accuracy_interval__of_nothing_says_nothing():
    interval = accuracy_interval(0, 0, level=0.95)
    assert (interval.low, interval.high) == (0.0, 1.0)


def test_gap_interval__covers_at_least_as_often_as_it_says():
    draws, inside, outside = np.random.default_rng(1), 0.3, 0.1
    n_covered = 0
    for _ in range(400):
        table = (int(draws.binomial(30, inside)), 30, int(draws.binomial(120, outside)), 120)
        interval = gap_interval(table, level=0.95)
        n_covered += interval.low <= inside - outside <= interval.high
    assert n_covered >= 376


@pytest.mark.parametrize("table", [(0, 0, 0, 0), (5, 5, 0, 5), (0, 5, 5, 5)])
def test_gap_interval__stays_within_its_bounds(table):
    interval = gap_interval(table, level=0.99)
    assert -1.0 <= interval.low <= interval.high <= 1.0
