import numpy as np
import pytest

from weakspot.gate import regressions as fall_tests
from weakspot.gate.figures import Figures, PairedTally, SubjectKind
from weakspot.gate.policy import RegressionRule
from weakspot.gate.result import Ruling


def regressions(rule, pairs):
    return fall_tests.regressions(rule, Figures(tallies=(), pairs=tuple(pairs)))


def _pair(name, n_samples, gained, lost, kind=SubjectKind.SLICE, **more):
    before = n_samples // 2 + lost
    return PairedTally(
        subject=name,
        kind=kind,
        n_samples=n_samples,
        right_before=before,
        right_now=before + gained - lost,
        gained=gained,
        lost=lost,
        **more,
    )


def _drawn(random, n_slices, *, drop=0.0, churn=0.05, margin=0.0):
    """Return named slices of 100 with random churn both ways; the first loses more."""
    lost = [churn + margin + (drop if place == 0 else 0.0) for place in range(n_slices)]
    tables = [random.multinomial(100, [one, churn, 1 - one - churn]) for one in lost]
    return [
        _pair(str(place), 100, int(table[1]), int(table[0]), SubjectKind.NAMED)
        for place, table in enumerate(tables)
    ]


@pytest.fixture
def few_flips(monkeypatch):
    monkeypatch.setattr(fall_tests, "N_FLIPS", 1500)
    monkeypatch.setattr(fall_tests, "MIN_FLIPS", 1500)


@pytest.mark.parametrize(
    ("gained", "lost", "judge", "verdict"),
    [
        (0, 0, "interval", Ruling.KEPT),
        (0, 3, "interval", Ruling.KEPT),
        (0, 3, "point", Ruling.VIOLATED),
        (0, 20, "interval", Ruling.VIOLATED),
        (20, 0, "interval", Ruling.KEPT),
    ],
)
def test_regressions__by_interval_only_a_certain_fall_violates(gained, lost, judge, verdict):
    (entry,) = regressions(
        RegressionRule(max_drop=0.0, judge=judge), [_pair("a", 100, gained, lost)]
    )
    assert entry.verdict is verdict
    assert entry.value == pytest.approx((gained - lost) / 100)
    assert entry.after - entry.before == pytest.approx(entry.value)


def test_regressions__the_question_is_one_sided():
    # Five lost of five is one chance in 32; two-sided it would be one in 16.
    (entry,) = regressions(RegressionRule(max_drop=0.0), [_pair("a", 100, 0, 5)])
    assert entry.p_value == pytest.approx(1 / 32, abs=0.005)
    assert entry.verdict is Ruling.VIOLATED


def test_regressions__a_certain_fall_within_the_bar_is_kept():
    (entry,) = regressions(RegressionRule(max_drop=0.3), [_pair("a", 100, 0, 20)])
    assert entry.verdict is Ruling.KEPT


def test_regressions__only_what_is_asked_for_is_compared():
    pairs = [
        _pair("overall", 100, 0, 6, SubjectKind.OVERALL),
        *(_pair(f"c{place}", 100, 4, 4, SubjectKind.CLASS) for place in range(50)),
    ]
    alone = list(regressions(RegressionRule(max_drop=0.0, of=("overall",)), pairs))
    together = list(regressions(RegressionRule(max_drop=0.0), pairs))
    assert [entry.subject for entry in alone] == ["overall"]
    assert (alone[0].verdict, together[0].verdict) == (Ruling.VIOLATED, Ruling.KEPT)
    assert together[0].p_value > alone[0].p_value


def test_regressions__subjects_in_which_nothing_changed_cost_nothing():
    pairs = [_pair("a", 100, 0, 6), *(_pair(f"c{place}", 100, 0, 0) for place in range(50))]
    entry = next(iter(regressions(RegressionRule(max_drop=0.0), pairs)))
    assert entry.p_value == pytest.approx(1 / 64, abs=0.004)


def test_regressions__too_few_shared_samples_are_not_judged_and_not_counted():
    small, large = regressions(
        RegressionRule(max_drop=0.0), [_pair("a", 5, 0, 5), _pair("b", 100, 0, 6)]
    )
    assert (small.verdict, large.verdict) == (Ruling.NOT_JUDGED, Ruling.VIOLATED)


def test_regressions__a_group_that_is_lost_as_one_counts_once():
    units, nets = np.arange(2), np.array([5, 5])
    grouped = _pair("a", 100, 0, 10, units=units, nets=nets)
    (entry,) = regressions(RegressionRule(max_drop=0.0), [grouped])
    (single,) = regressions(RegressionRule(max_drop=0.0), [_pair("a", 100, 0, 10)])
    assert (entry.verdict, single.verdict) == (Ruling.KEPT, Ruling.VIOLATED)
    assert entry.p_value == pytest.approx(0.25, abs=0.02)
    assert entry.interval.low < single.interval.low
    assert entry.detectable is None or entry.detectable > single.detectable


@pytest.mark.parametrize("margin", [0.0, 0.02])
def test_regressions__models_that_do_not_fall_too_far_are_hardly_ever_flagged(few_flips, margin):
    random, rule = np.random.default_rng(11), RegressionRule(max_drop=margin)
    n_false = sum(
        any(
            entry.verdict is Ruling.VIOLATED
            for entry in regressions(rule, _drawn(random, 7, margin=margin))
        )
        for _ in range(200)
    )
    assert n_false <= 10


def test_regressions__ten_points_on_one_of_seven_named_slices_of_100_are_mostly_flagged(few_flips):
    random, rule = np.random.default_rng(12), RegressionRule(max_drop=0.0)
    found = [next(iter(regressions(rule, _drawn(random, 7, drop=0.1)))) for _ in range(200)]
    assert sum(entry.verdict is Ruling.VIOLATED for entry in found) >= 110


def test_regressions__what_is_called_detectable_is_flagged_in_four_of_five_cases(few_flips):
    random, rule = np.random.default_rng(13), RegressionRule(max_drop=0.0)
    promised = [next(iter(regressions(rule, _drawn(random, 7)))) for _ in range(20)]
    drop = float(np.median([entry.detectable for entry in promised]))
    found = [next(iter(regressions(rule, _drawn(random, 7, drop=drop)))) for _ in range(150)]
    assert 110 <= sum(entry.verdict is Ruling.VIOLATED for entry in found) <= 141
    assert f"{round(100 * promised[0].detectable, 1):g} %" in promised[0].sentence


def test_regressions__too_few_samples_for_the_drop_that_matters_are_not_judged():
    few, many = (
        next(
            iter(
                regressions(
                    RegressionRule(max_drop=0.0, drop_that_matters=0.05),
                    [_pair("a", n, n // 20, n // 20)],
                )
            )
        )
        for n in (60, 2000)
    )
    assert (few.verdict, many.verdict) == (Ruling.NOT_JUDGED, Ruling.KEPT)
    assert "too few samples to see a fall of 5 %" in few.sentence
    assert "is ruled out" in many.sentence


def test_regressions__subjects_on_the_same_samples_share_their_chance():
    # The same ten units under two names cost what one name costs.
    units, nets = np.arange(10), np.array([1] * 9 + [-1])
    once = [_pair("a", 100, 1, 9, units=units, nets=nets)]
    twice = [*once, _pair("b", 100, 1, 9, units=units, nets=nets)]
    alone, together = (
        next(iter(regressions(RegressionRule(max_drop=0.0), pairs))) for pairs in (once, twice)
    )
    assert together.p_value == pytest.approx(alone.p_value, abs=0.004)
