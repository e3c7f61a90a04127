import itertools

import numpy as np
import pytest

from weakspot.core.errors import DataError, NotEnoughDataError
from weakspot.core.evidence import Share
from weakspot.core.run import DecisionKind
from weakspot.core.statistics import wilson_interval
from weakspot.web.services.attributes import (
    attribute_samples,
    coded_attributes,
    predictions_of,
)
from weakspot.web.services.combinations import (
    MIN_SUPPORT,
    combination_slice,
    combinations,
    lower_ends,
    prove_combination,
)


def _words(workspace, name):
    return np.array(workspace.samples.dataset.metadata(name).to_pylist(), dtype=object)


def test_combinations__two_chosen__counts_are_those_of_the_columns(attributed):
    found = combinations(attributed, chosen=["colour", "size"], min_support=5)
    problem = predictions_of(attributed, None)
    colour, size = (_words(attributed, name)[problem.rows] for name in ("colour", "size"))
    assert found.combinations
    for one in found.combinations:
        inside = (colour == one.values[0].value) & (size == one.values[1].value)
        n_failed, usual = int(problem.failed[inside].sum()), problem.n_failed / len(problem.rows)
        assert one.failures == Share.of(n_failed, int(inside.sum()))
        assert one.coverage == Share.of(n_failed, problem.n_failed)
        assert one.lift == pytest.approx(one.failures.value / usual)


def test_combinations__order__by_the_lower_end_of_the_rate(attributed):
    found = combinations(attributed, chosen=["colour"], min_support=5)
    ends = [one.failures.interval.low for one in found.combinations]
    assert ends == sorted(ends, reverse=True)
    assert {one.values[0].value for one in found.combinations} == set(
        _words(attributed, "colour")[attributed.discovery.rows]
    )


def test_combinations__tiny_floor__raised_to_five(attributed):
    found = combinations(attributed, chosen=["colour", "background", "size"], min_support=1)
    assert found.min_support == MIN_SUPPORT
    assert all(one.failures.total >= MIN_SUPPORT for one in found.combinations)


def test_combinations__none_chosen__worst_of_all_without_idle_values(attributed):
    found = combinations(attributed, title="disc", min_support=5)
    rates = {
        tuple(sorted((v.attribute_id, v.value_id) for v in one.values)): one.failures
        for one in found.combinations
    }
    assert any(("colour", "green") in key for key in rates)
    usual = found.failures.value
    for key, failures in rates.items():
        assert failures.value > usual
        for dropped in range(len(key)):
            parent = rates.get(key[:dropped] + key[dropped + 1 :])
            assert parent is None or failures.interval.low > parent.value


def test_combinations__four_attributes_or_one_twice__refused(attributed):
    for chosen in (["colour", "size", "count", "kind"], ["colour", "colour"]):
        with pytest.raises(DataError):
            combinations(attributed, chosen=chosen)


def test_lower_ends__same_as_the_interval_everywhere_else():
    failed, total = np.array([0, 1, 5, 20]), np.array([5, 9, 5, 81])
    expected = [
        wilson_interval(int(one), int(all_))[0] for one, all_ in zip(failed, total, strict=True)
    ]
    assert lower_ends(failed, total) == pytest.approx(expected)


def test_attribute_samples__right_and_wrong_pages_together_are_all(attributed):
    chosen = {"colour": "green"}
    problem = attributed.problem("disc")
    inside = problem.rows[_words(attributed, "colour")[problem.rows] == "green"]
    pages = [
        attribute_samples(attributed, chosen, title="disc", result=result, offset=offset, limit=3)
        for result in ("right", "wrong")
        for offset in (0, 3, 6)
    ]
    right, wrong = (
        [one for page in half for one in page.samples] for half in (pages[:3], pages[3:])
    )
    assert sorted(one.row for one in right + wrong) == inside.tolist()
    assert {one.label for one in right + wrong} == {"disc"}
    assert all(one.is_failure for one in wrong)


def test_prove__a_combination__becomes_a_slice_with_a_verdict(attributed):
    chosen = {"colour": "green"}
    found = prove_combination(attributed, "disc", chosen, by="Ann")
    record, line = attributed.record(found.run_id), found.line
    assert record.slice_by_id(line.slice_id).method == line.method == "attributes"
    assert "green" in line.title
    rows, dataset = attributed.confirmation.rows, attributed.samples.dataset
    is_disc = dataset.labels[rows] == dataset.class_code("disc")
    assert line.inside.total == int(
        (is_disc & (_words(attributed, "colour")[rows] == "green")).sum()
    )
    (decided,) = [one for one in record.decisions if one.slice_id == line.slice_id]
    assert decided.kind is DecisionKind.ACCEPTED


def test_prove__same_values_in_another_order__the_same_slice(attributed):
    known = [one for one in coded_attributes(attributed).attributes if one.codes is not None]
    common = next(
        found
        for names in itertools.combinations([one.attribute_id for one in known], 2)
        for found in combinations(attributed, title="disc", chosen=names).combinations
    )
    pair = [(one.attribute_id, one.value_id) for one in common.values]
    assert len(pair) == 2
    found, other = (
        combination_slice(attributed, "disc", dict(each)) for each in (pair, pair[::-1])
    )
    assert found.slice_id == other.slice_id


def test_prove__hardly_any_sample__refused(attributed):
    chosen = {"colour": "green", "background": "wooden"}
    with pytest.raises((NotEnoughDataError, DataError)):
        prove_combination(attributed, "disc", chosen, by="Ann")
