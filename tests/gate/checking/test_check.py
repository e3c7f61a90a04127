from datetime import date

import pytest

from weakspot.core.errors import ConfigError, DataError, StoreError
from weakspot.gate.check import CheckRequest, check
from weakspot.gate.policy import parse_policy
from weakspot.gate.result import Ruling
from weakspot.gate.runs import baseline_of, ensure_run

TODAY = date(2026, 5, 1)
GREEN = {"name": "green ones", "class": "apple", "column": "kind", "value": "green"}


def _check(project, rules, **more):
    return check(
        project, CheckRequest(policy=parse_policy(rules, where="test"), today=TODAY, **more)
    )


def _verdicts(checked):
    return {(entry.rule, entry.subject): entry.verdict for entry in checked[0].entries}


def test_check__makes_the_run_and_judges_its_slices(table_project):
    project = table_project()
    checked = _check(
        project,
        {
            "slice_accuracy": {"min": 0.9},
            "slice_gap": {"max": 0.9},
            "overall_accuracy": {"min": 0.5},
        },
    )
    assert _verdicts(checked) == {
        ("slice_accuracy", "apple: green"): Ruling.VIOLATED,
        ("slice_gap", "apple: green"): Ruling.KEPT,
        ("overall_accuracy", "overall"): Ruling.KEPT,
    }
    assert checked[0].exit_code == 1
    evidence = checked[1].published()[0][1]
    entry = next(entry for entry in checked[0].entries if entry.rule == "slice_accuracy")
    assert entry.value == pytest.approx(1 - evidence.rate_inside)
    assert entry.n_samples == evidence.n_inside


def test_check__other_settings_or_samples_make_another_run(table_project):
    project = table_project()
    rules = {"overall_accuracy": {"min": 0.5}}
    first = _check(project, rules)[1].run_id
    changed = table_project(green_right_every=1)
    assert _check(changed, rules)[1].run_id != first


def test_check__without_a_run_none_is_made_when_that_is_forbidden(table_project):
    project = table_project()
    project.ingest()
    with pytest.raises(StoreError, match="no finished run yet"):
        _check(project, {"overall_accuracy": {"min": 0.5}}, may_run=False)
    ensure_run(project)
    assert _check(project, {"overall_accuracy": {"min": 0.5}}, may_run=False)[0].is_kept


def test_check__a_run_that_was_not_verified_cannot_be_judged(table_project):
    project = table_project()
    project.ingest()
    record = project.discover()
    with pytest.raises(StoreError, match="not been measured"):
        _check(project, {"overall_accuracy": {"min": 0.5}}, run_id=record.run_id)


def test_check__named_slices_are_measured_on_the_evaluation_splits(table_project):
    checked = _check(
        table_project(), {"slice_accuracy": {"min": 0.2, "judge": "point"}, "slices": [GREEN]}
    )
    entry = next(entry for entry in checked[0].entries if entry.subject == "green ones")
    assert entry.n_samples == 80
    assert entry.value == pytest.approx(1 / 3, abs=0.03)


def test_check__a_slice_that_the_baseline_has_is_not_new(table_project):
    project = table_project()
    baseline = baseline_of(project, ensure_run(project).record)
    checked = _check(
        project, {"new_slices": {"max": 0}, "regressions": {"max_drop": 0.0}}, baseline=baseline
    )
    assert checked[0].is_kept
    changes = {entry.value for entry in checked[0].entries if entry.rule == "regressions"}
    assert changes == {0.0}


def test_check__a_new_slice_and_regressions_are_found_on_the_same_samples(table_project):
    project = table_project(green_right_every=1)
    baseline = baseline_of(project, ensure_run(project).record)
    worse = table_project(green_right_every=3)
    rules = {"new_slices": {"max": 0}, "regressions": {"max_drop": 0.05}, "slices": [GREEN]}
    checked = _check(worse, rules, baseline=baseline)
    found = _verdicts(checked)
    assert found[("new_slices", "apple: green")] is Ruling.VIOLATED
    assert found[("regressions", "green ones")] is Ruling.VIOLATED
    assert found[("regressions", "apple")] is Ruling.VIOLATED
    assert found[("regressions", "pear")] is Ruling.KEPT
    assert checked[0].notes[0].startswith("400 of 400 held-out samples")


def test_check__slices_of_the_baseline_are_measured_without_the_samples_they_were_found_on(
    table_project,
):
    project = table_project()
    record = ensure_run(project).record
    baseline = baseline_of(project, record)
    worse = table_project(green_right_every=100)
    checked = _check(worse, {"regressions": {"max_drop": 0.0}}, baseline=baseline)
    entry = next(entry for entry in checked[0].entries if entry.subject == "apple: green")
    assert entry.n_samples < 100
    assert entry.verdict is Ruling.VIOLATED


def test_check__a_rule_that_compares_needs_a_baseline(table_project):
    with pytest.raises(ConfigError, match="compares with a baseline"):
        _check(table_project(), {"new_slices": {"max": 0}})


def test_check__a_baseline_of_other_classes_is_refused(table_project):
    other = table_project("other", labels=("apple", "plum"))
    baseline = baseline_of(other, ensure_run(other).record)
    with pytest.raises(DataError, match="other classes") as caught:
        _check(table_project(), {"regressions": {"max_drop": 0.0}}, baseline=baseline)
    assert "plum" in str(caught.value)


def test_check__accepted_slices_pass_until_their_day(table_project):
    project = table_project()
    rules = {"slice_accuracy": {"min": 0.9}, "confirmed_slices": {"max": 0}}
    listed = {
        "slice": "apple: green",
        "reason": "picked by hand until summer",
        "until": date(2026, 6, 1),
    }
    kept = _check(project, {**rules, "accepted": [listed]})
    assert kept[0].is_kept
    assert (
        kept[0]
        .of(Ruling.ACCEPTED)[0]
        .sentence.endswith("Accepted until 2026-06-01: picked by hand until summer.")
    )
    over = _check(project, {**rules, "accepted": [{**listed, "until": date(2026, 4, 30)}]})
    assert {entry.rule for entry in over[0].failing} == {
        "slice_accuracy",
        "confirmed_slices",
        "accepted",
    }


def test_check__falls_are_noted_once_and_cost_nothing(table_project):
    baseline_project = table_project()
    baseline = baseline_of(baseline_project, ensure_run(baseline_project).record)
    rules = {"regressions": {"max_drop": 0.0}, "slices": [GREEN]}
    first = _check(baseline_project, rules, baseline=baseline)
    standing = baseline_project.ledger().standing()
    again = _check(baseline_project, rules, baseline=baseline)
    assert baseline_project.ledger().standing() == standing
    assert standing.n_checks == 1
    assert first[0] == again[0]
    assert "promised for each check, not for all of them together" in first[0].notes[-1]
    later = table_project(green_right_every=2)
    checked = _check(later, rules, baseline=baseline)
    assert "compared 2 pairs of a model and a baseline" in checked[0].notes[-1]
    assert later.ledger().standing().n_checks == 2


def test_check__other_models_before__a_new_one_is_judged_at_the_full_level(table_project):
    rules = {"confirmed_slices": {"max": 9}}
    records = [_check(table_project(green_right_every=every), rules)[1] for every in (2, 3, 5)]
    assert [{entry.batch for entry in record.evidence} for record in records] == [{1}] * 3
    assert table_project(green_right_every=2).ledger().standing().n_other_classifiers == 2
