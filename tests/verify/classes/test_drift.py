"""Failures that go with time."""

import datetime

import numpy as np
import pytest

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.failures import FailureCriterion
from weakspot.verify.classes import ClassMaterial, ask_drift, rank_test, time_columns


def _material(times, failed, *, column="date", groups=None):
    n_samples = len(times)
    dataset = dataset_from_columns(
        class_names=["owl", "gull"],
        labels=np.zeros(n_samples, dtype=np.int64),
        predictions=np.asarray(failed, dtype=np.int64),
        metadata={column: times},
        groups=groups,
    )
    return ClassMaterial.of(dataset, np.arange(n_samples), FailureCriterion())


DAYS = [f"2024-{1 + place // 28:02d}-{1 + place % 28:02d}" for place in range(90)]
LATE = np.arange(90) >= 60


@pytest.mark.parametrize(
    "times",
    [
        DAYS,
        list(range(90)),
        [datetime.date.fromisoformat(day) for day in DAYS],
        [datetime.datetime.fromisoformat(day) for day in DAYS],
    ],
)
def test_ask_drift__later_samples_fail__whatever_the_type_of_the_column(times):
    (found,) = ask_drift(_material(times, LATE))
    assert found.p_value < 1e-6
    assert (found.column, found.value) == ("date", "later")
    assert found.rate > 0.9
    assert found.reference == 0.0
    assert "the later its date" in found.sentence


def test_ask_drift__earlier_samples_fail():
    (found,) = ask_drift(_material(DAYS, ~LATE))
    assert found.value == "earlier"
    assert "up to 2024-02-03" in found.sentence


def test_ask_drift__images_of_one_group_count_once():
    groups = [f"g{place // 15}" for place in range(90)]
    assert ask_drift(_material(DAYS, LATE, groups=groups)) == []


@pytest.mark.parametrize("column", ["site", "daytime", "update"])
def test_time_columns__other_names_are_not_taken(column):
    assert time_columns(_material(DAYS, LATE, column=column).dataset) == {}


def test_time_columns__texts_that_are_no_dates_are_not_taken():
    assert time_columns(_material(["noon"] * 45 + ["night"] * 45, LATE).dataset) == {}


def test_rank_test__null__keeps_its_level():
    rng = np.random.default_rng(0)
    values = np.repeat(np.arange(12.0), 10)
    p_values = [rank_test(values, rng.permutation(120) < 15)[0] for _ in range(2000)]
    assert np.mean(np.array(p_values) <= 0.05) < 0.06
    assert np.mean(np.array(p_values) <= 0.01) < 0.015


def test_rank_test__few_failures_say_nothing():
    assert rank_test(np.arange(40.0), np.arange(40) >= 36)[0] == 1.0
