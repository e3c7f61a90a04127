import numpy as np
import pytest

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.failures import FailureCriterion
from weakspot.core.rules import AllOfRule, ColumnRule, LinearRule
from weakspot.core.samples import SampleSet
from weakspot.repair.collecting import (
    kind_counts,
    learning_curve,
    rows_for,
    rows_to_match,
)

TRAINING = np.round(np.geomspace(30, 2000, 8)).astype(np.int64)
EVALUATED = 300


def _counts(seed, *, exponent, level, spread=0.0):
    """Seven kinds that fail by a power of their number of training rows; the eighth and rarest is the slice."""
    random = np.random.default_rng(seed)
    rates = level * TRAINING.astype(float) ** -exponent
    rates = np.minimum(0.9, rates * np.exp(spread * random.normal(size=len(TRAINING))))
    failed = random.binomial(EVALUATED, rates)
    others = (TRAINING[1:], np.full(len(TRAINING) - 1, EVALUATED), failed[1:])
    return others, failed[0] / EVALUATED, rates[0]


@pytest.mark.parametrize("exponent", [0.2, 0.4])
def test_learning_curve__world_of_powers__rows_within_a_factor_of_two_of_the_truth(exponent):
    """What the estimate is good for: nine of ten times within a factor of two, where its assumption holds."""
    ratios = []
    for seed in range(200):
        counts, rate, true_rate = _counts(seed, exponent=exponent, level=1.5)
        curve = learning_curve(counts)
        assert not isinstance(curve, str)
        gain = rate - counts[2].sum() / counts[1].sum()
        estimate = rows_for(gain, rate, int(TRAINING[0]), curve.exponent)
        truth = TRAINING[0] * ((true_rate / (true_rate - gain)) ** (1 / exponent) - 1)
        ratios.append(estimate / truth)
    ratios = np.array(ratios)
    assert np.mean((ratios > 0.5) & (ratios < 2.0)) >= 0.85
    assert 0.9 < np.median(ratios) < 1.1


@pytest.mark.parametrize("spread", [0.0, 0.3])
def test_learning_curve__more_rows_do_not_help__cannot_be_estimated(spread):
    found = [
        learning_curve(_counts(seed, exponent=0.0, level=0.15, spread=spread)[0])
        for seed in range(200)
    ]
    assert np.mean([isinstance(one, str) for one in found]) >= 0.93


@pytest.mark.parametrize(
    ("training", "failed", "words"),
    [
        ([10, 100, 1000], [50, 20, 5], "only 3 other kinds"),
        ([100, 110, 120, 130], [50, 20, 5, 1], "nearly the same number"),
        ([10, 50, 100, 500], [0, 0, 0, 0], "do not fail by any power"),
    ],
)
def test_learning_curve__too_few_kinds_or_no_spread__says_so(training, failed, words):
    counts = (np.array(training), np.full(len(training), 100), np.array(failed))
    assert words in learning_curve(counts)


def test_rows_to_match__share_of_evaluation():
    # 100 of 1,000 evaluated: 90 members among 900 others are a tenth.
    assert rows_to_match(40, 850, 100, 900) == 50
    assert rows_to_match(90, 900, 100, 900) == 0
    assert rows_to_match(5, 10, 7, 0) == 0


def test_rows_for__half_the_failures_by_the_power_of_a_half__four_times_the_rows():
    assert rows_for(0.1, 0.2, 100, 0.5) == 300
    assert rows_for(0.0, 0.2, 100, 0.5) is None
    assert rows_for(0.2, 0.2, 100, 0.5) is None
    assert rows_for(0.19, 0.2, 100, 0.1) is None


def _table():
    """Apples by colour: green ones are the slice, red and blue ones other kinds; wet ones cut across."""
    dataset = dataset_from_columns(
        class_names=["apple", "pear"],
        labels=[0] * 11 + [1],
        splits=["train"] * 6 + ["validation"] * 6,
        metadata={
            "green": [True, *[False] * 5, True, *[False] * 3, None, True],
            "wet": ["no", "no", "no", "yes", "yes", "no", "no", "no", "yes", "yes", "no", "no"],
        },
        predictions=np.array([0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0]),
    )
    return SampleSet(dataset=dataset, rows=np.arange(12))


def test_kind_counts__slice_itself_is_no_part_of_the_curve(make_slice):
    rule = AllOfRule(
        rules=(ColumnRule(column="green", values=(True,)), ColumnRule(column="wet", values=("no",)))
    )
    samples = _table()
    counts = kind_counts(make_slice(rule=rule), samples, FailureCriterion(), np.arange(6, 12))
    told = sorted(zip(*(one.tolist() for one in counts), strict=True))
    # Not green and dry, not green and wet, unknown and dry; green and dry is the slice.
    assert told == [(0, 1, 0), (2, 2, 1), (3, 1, 1)]


def test_kind_counts__rule_on_something_else_than_values__says_so(make_slice):
    rule = LinearRule(encoder_id="e", direction=(1.0,))
    said = kind_counts(make_slice(rule=rule), _table(), FailureCriterion(), np.arange(6, 12))
    assert "does not divide the class into kinds" in said
