import numpy as np
import pytest

from weakspot.release.comparisons import new_slices, regressions
from weakspot.release.figures import PairedTally, Sighting, SubjectKind
from weakspot.release.outcome import Ruling
from weakspot.release.policy import Judging, NewSliceRule, RegressionRule

JUDGING = Judging()


def _pair(name, n_samples, gained, lost, kind=SubjectKind.SLICE):
    before = n_samples // 2 + lost
    return PairedTally(
        subject=name,
        kind=kind,
        n_samples=n_samples,
        right_before=before,
        right_now=before + gained - lost,
        gained=gained,
        lost=lost,
    )


def _sighting(name, **more):
    return Sighting(subject=name, slice_id=f"id-{name}", **{"p_value": 1e-6, "q_value": 1e-5, **more})


def _new(sightings, rule=None, *, accepted=(), n_tested=10, control="fdr"):
    found = new_slices(rule or NewSliceRule(max=0), sightings, JUDGING, n_tested=n_tested, control=control, accepted=accepted)
    return {entry.subject: entry for entry in found}


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
    (entry,) = regressions(RegressionRule(max_drop=0.0, judge=judge), [_pair("a", 100, gained, lost)], JUDGING)
    assert entry.verdict is verdict
    assert entry.value == pytest.approx((gained - lost) / 100)
    assert entry.after - entry.before == pytest.approx(entry.value)


def test_regressions__a_certain_fall_within_the_bar_is_kept():
    (entry,) = regressions(RegressionRule(max_drop=0.3), [_pair("a", 100, 0, 20)], JUDGING)
    assert entry.verdict is Ruling.KEPT


def test_regressions__only_what_is_asked_for_is_compared_and_counted():
    pairs = [
        _pair("overall", 100, 0, 6, SubjectKind.OVERALL),
        *(_pair(f"c{place}", 100, 0, 0, SubjectKind.CLASS) for place in range(50)),
    ]
    alone = list(regressions(RegressionRule(max_drop=0.0, of=("overall",)), pairs, JUDGING))
    together = list(regressions(RegressionRule(max_drop=0.0), pairs, JUDGING))
    assert [entry.subject for entry in alone] == ["overall"]
    assert (alone[0].verdict, together[0].verdict) == (Ruling.VIOLATED, Ruling.KEPT)
    assert together[0].p_value > alone[0].p_value


def test_regressions__too_few_shared_samples_are_not_judged_and_not_counted():
    small, large = regressions(RegressionRule(max_drop=0.0), [_pair("a", 5, 0, 5), _pair("b", 100, 0, 6)], JUDGING)
    assert (small.verdict, large.verdict) == (Ruling.NOT_JUDGED, Ruling.VIOLATED)


def test_regressions__two_equal_models_are_hardly_ever_called_different():
    draws, n_false = np.random.default_rng(0), 0
    for _ in range(200):
        counts = [draws.binomial(40, 0.5) for _ in range(10)]
        pairs = [_pair(str(place), 400, 40 - lost, int(lost)) for place, lost in enumerate(counts)]
        entries = regressions(RegressionRule(max_drop=0.0), pairs, JUDGING)
        n_false += any(entry.verdict is Ruling.VIOLATED for entry in entries)
    assert n_false <= 10


def test_new_slices__what_the_baseline_has_is_known():
    found = _new([_sighting("a", known_id="old", known_as="old one", overlap=0.8), _sighting("b", overlap=0.2)])
    assert (found["a"].verdict, found["b"].verdict) == (Ruling.KEPT, Ruling.VIOLATED)
    assert "as “old one” (overlap 0.80)" in found["a"].sentence
    assert "the nearest overlaps by 0.20" in found["b"].sentence


def test_new_slices__so_many_may_be_new_and_accepted_ones_do_not_count():
    two = [_sighting("a"), _sighting("b")]
    assert {entry.verdict for entry in _new(two, NewSliceRule(max=1)).values()} == {Ruling.VIOLATED}
    assert {entry.verdict for entry in _new(two, NewSliceRule(max=2)).values()} == {Ruling.KEPT}
    assert {entry.verdict for entry in _new(two, NewSliceRule(max=1), accepted=["id-a"]).values()} == {Ruling.KEPT}


def test_new_slices__one_that_is_certain_only_beside_known_ones_is_not_judged():
    doubtful = [_sighting("a", p_value=0.02, q_value=0.04)]
    assert _new(doubtful, n_tested=10)["a"].verdict is Ruling.NOT_JUDGED
    assert _new(doubtful, n_tested=2)["a"].verdict is Ruling.VIOLATED
    assert _new(doubtful, n_tested=10, control="fwer")["a"].verdict is Ruling.VIOLATED


def test_new_slices__without_findings_nothing_is_new():
    assert _new([])["all slices"].verdict is Ruling.KEPT
