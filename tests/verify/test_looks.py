import numpy as np
import pytest

from weakspot.core.evidence import Evidence, Explanation, Interval, Verdict
from weakspot.core.slices import DataUse
from weakspot.core.statistics import fisher_p
from weakspot.verify.looks import was_tested, with_looks

NOWHERE = Interval(low=0.0, high=1.0)
USE = DataUse(name="confirmation", n_samples=60, digest="d")


def entry(name: str, p_value: float, *, verdict: Verdict = Verdict.CONFIRMED, q_value: float | None = None, **more) -> Evidence:
    values = {
        "slice_id": name,
        "verifier": "holdout",
        "measured_on": USE,
        "n_inside": 20,
        "failures_inside": 10,
        "n_outside": 40,
        "failures_outside": 5,
        "rate_inside": 0.5,
        "rate_outside": 0.125,
        "interval_inside": NOWHERE,
        "interval_outside": NOWHERE,
        "gap": 0.375,
        "p_value": p_value,
        "q_value": p_value if q_value is None else q_value,
        "n_tested": 1,
        "verdict": verdict,
    }
    return Evidence(**{**values, **more})


def test_with_looks__no_questions__changes_nothing():
    evidence = (entry("a", 0.001), entry("b", 0.4, verdict=Verdict.NOT_CONFIRMED))
    assert with_looks(evidence, [], alpha=0.05) == evidence


@pytest.mark.parametrize("control", ["fdr", "fwer", "fdr-dependent"])
def test_with_looks__more_questions__adjusted_values_only_grow(control):
    evidence = tuple(entry(name, p, control=control, weight=w) for name, p, w in (("a", 0.0004, 1.5), ("b", 0.01, 0.5)))
    before = [one.q_value for one in evidence]
    for n_looks in (1, 2, 5, 20, 200):
        found = with_looks(evidence, [0.5] * n_looks, alpha=0.05)
        assert all(new.q_value >= old for new, old in zip(found, before, strict=True))
        assert [one.n_tested for one in found] == [1 + n_looks] * 2
        before = [one.q_value for one in found]
    assert all(one.verdict is Verdict.NOT_CONFIRMED for one in found)


def test_with_looks__questions_with_small_p__help_nobody():
    evidence = (entry("a", 0.01),)
    assert with_looks(evidence, [1e-9] * 9, alpha=0.05) == with_looks(evidence, [1.0] * 9, alpha=0.05)
    assert with_looks(evidence, [1e-9] * 9, alpha=0.05)[0].q_value == pytest.approx(0.1)


def test_with_looks__not_tested__stays():
    few = entry("few", 1.0, verdict=Verdict.TOO_FEW, q_value=1.0)
    same = entry("same", 1.0, verdict=Verdict.SAME, q_value=1.0, same_as="a")
    found = with_looks((entry("a", 0.001), few, same), [0.3] * 3, alpha=0.05)
    assert found[1:] == (few, same)
    assert [was_tested(one) for one in found] == [True, False, False]


def test_with_looks__leader_lost__what_it_explained_or_stood_for_is_free_again():
    explained = Explanation(
        slice_id="a", shared_failures=0.9, n_inside=1, failures_inside=0, n_outside=1, failures_outside=0
    )  # fmt: skip
    evidence = (
        entry("a", 0.02),
        entry("b", 0.0001, explained=explained),
        entry("other turn", 0.001, verdict=Verdict.SAME, q_value=0.002, same_as="a"),
    )
    found = with_looks(evidence, [1.0] * 20, alpha=0.05, n_turns=2, among={"a", "b"})
    assert [one.verdict for one in found] == [Verdict.NOT_CONFIRMED, Verdict.CONFIRMED, Verdict.CONFIRMED]
    assert found[1].explained is None
    assert found[2].same_as is None
    assert found[2].q_value == 0.002


def test_with_looks__gap_too_small_to_publish__gives_the_others_no_rank():
    evidence = (entry("a", 0.02), entry("b", 1e-6, gap=0.01, verdict=Verdict.NOT_CONFIRMED))
    found = with_looks(evidence, [1.0], alpha=0.05, min_gap=0.05)
    assert found[0].q_value == pytest.approx(0.06)


def test_with_looks__best_of_many_null_phrases__is_confirmed_no_more_often_than_alpha():
    draws = np.random.default_rng(0)
    n_samples, n_phrases, n_trials = 80, 15, 200
    n_confirmed = {"counted": 0, "not counted": 0}
    for _ in range(n_trials):
        failed = draws.random(n_samples) < 0.3
        inside = draws.random((n_phrases, n_samples)) < 0.4
        tables = [(failed[one].sum(), one.sum(), failed[~one].sum(), (~one).sum()) for one in inside]
        p_values = sorted(fisher_p(*(int(count) for count in table)) for table in tables)
        accepted = (entry("best", p_values[0]),)
        n_confirmed["counted"] += with_looks(accepted, p_values[1:], alpha=0.05)[0].verdict is Verdict.CONFIRMED
        n_confirmed["not counted"] += p_values[0] <= 0.05
    assert n_confirmed["counted"] / n_trials <= 0.05
    assert n_confirmed["not counted"] / n_trials > 0.2
