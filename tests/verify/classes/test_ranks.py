"""Sums of ranks."""

import numpy as np
import pytest

from weakspot.core.statistics import RankSum, midranks


def test_rank_sum__equals_the_library_with_ties():
    from scipy.stats import mannwhitneyu

    rng = np.random.default_rng(0)
    values, chosen = rng.integers(0, 9, 60).astype(float), np.arange(60) < 25
    expected = mannwhitneyu(
        values[chosen], values[~chosen], alternative="greater", method="asymptotic"
    )
    found = RankSum.of(values, chosen)
    assert found.above == expected.statistic
    assert found.p_value == pytest.approx(expected.pvalue)


def test_rank_sum__adds_up():
    values, chosen = np.arange(10.0), np.arange(10) >= 6
    both = RankSum.of(values, chosen) + RankSum.of(values, chosen)
    assert both.auc == 1.0
    assert both.p_value < RankSum.of(values, chosen).p_value


def test_midranks__differences_in_the_last_digit_are_ties():
    assert midranks(np.array([0.1 + 0.2, 0.3, 1.0])).tolist() == [1.5, 1.5, 3.0]
