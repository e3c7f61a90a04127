import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weakspot.core.errors import InputError
from weakspot.core.statistics import (
    IMPOSSIBLE,
    RankSum,
    adjusted_p_values,
    association,
    bootstrap_interval,
    calibration_error,
    change_interval,
    cohens_h,
    exact_interval,
    fisher_p,
    fisher_ps,
    log_chances,
    log_ratios,
    mcnemar_p,
    mcnemar_ps,
    midranks,
    overlap,
    paired_draws,
    permutation_p,
    q_values,
    risk_ratio_interval,
    wilson_interval,
    wilson_intervals,
)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        (8, 10, 0.490162, 0.943318),
        (0, 10, 0.0, 0.277533),
        (10, 10, 0.722467, 1.0),
        (1, 2, 0.094531, 0.905469),
    ],
)
def test_wilson_interval__known_values(successes, trials, low, high):
    assert wilson_interval(successes, trials) == pytest.approx((low, high), abs=1e-6)


def test_wilson_interval__other_level_and_no_trials():
    assert wilson_interval(50, 100, level=0.9) == pytest.approx((0.418848, 0.581152), abs=1e-6)
    assert wilson_interval(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(0, 10, 0.0, 0.308497), (5, 10, 0.187086, 0.812914), (10, 10, 0.691503, 1.0)],
)
def test_exact_interval__known_values(successes, trials, low, high):
    assert exact_interval(successes, trials) == pytest.approx((low, high), abs=1e-6)


def test_intervals__refuse_impossible_counts_and_levels():
    with pytest.raises(InputError, match="0 <= successes <= trials"):
        wilson_interval(3, 2)
    with pytest.raises(InputError, match="0 <= successes <= trials"):
        exact_interval(-1, 2)
    with pytest.raises(InputError, match="level"):
        wilson_interval(1, 2, level=95)


def test_intervals__cover_the_true_rate_as_often_as_they_say():
    # The chance that the interval holds the true rate, summed exactly over all predictions of 40 trials at rate 0.3.
    chances = [1.0]
    for _ in range(40):
        chances = [
            0.7 * keep + 0.3 * add
            for keep, add in zip([*chances, 0.0], [0.0, *chances], strict=True)
        ]
    covered = {
        interval.__name__: sum(
            chance
            for count, chance in enumerate(chances)
            if interval(count, 40)[0] <= 0.3 <= interval(count, 40)[1]
        )
        for interval in (wilson_interval, exact_interval)
    }
    assert 0.93 < covered["wilson_interval"] < 0.97
    assert covered["exact_interval"] >= 0.95


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ((3, 4, 1, 4), 17 / 70),  # (C(4,3)C(4,1) + C(4,4)C(4,0)) / C(8,4)
        ((4, 4, 0, 4), 1 / 70),
        ((0, 4, 4, 4), 1.0),
        ((2, 2, 0, 3), 1 / 10),
        ((0, 0, 3, 4), 1.0),
        ((2, 4, 0, 0), 1.0),
        ((0, 5, 0, 5), 1.0),
    ],
)
def test_fisher_p__counted_by_hand(table, expected):
    assert fisher_p(*table) == pytest.approx(expected, rel=1e-12)


def test_fisher_p__large_counts_and_tiny_values():
    # All 1,000 failures among the 1,000 inside of 2,000,000: 1 / C(2000000, 1000), about 10 ** -3733.
    assert fisher_p(1_000, 1_000, 0, 1_999_000) == 0.0
    # Ten failures, all inside half of the samples: C(1000000, 10) / C(2000000, 10), a little under 2 ** -10.
    assert fisher_p(10, 1_000_000, 0, 1_000_000) == pytest.approx(0.000976540, rel=1e-5)
    assert fisher_p(50_000, 1_000_000, 50_000, 1_000_000) == pytest.approx(0.5, abs=0.002)


def test_fisher_p__keeps_its_level_when_there_is_nothing():
    draws = np.random.default_rng(7)
    inside, outside = draws.binomial(30, 0.2, 4_000), draws.binomial(90, 0.2, 4_000)
    p_values = np.array(
        [
            fisher_p(int(left), 30, int(right), 90)
            for left, right in zip(inside, outside, strict=True)
        ]
    )
    for level in (0.01, 0.05, 0.2):
        assert np.mean(p_values <= level) <= level
    assert np.mean(p_values <= 0.2) > 0.08


@pytest.mark.parametrize(
    ("gained", "lost", "expected"),
    [(5, 0, 0.0625), (0, 5, 0.0625), (8, 2, 0.109375), (3, 3, 1.0), (0, 0, 1.0)],
)
def test_mcnemar_p__counted_by_hand(gained, lost, expected):
    assert mcnemar_p(gained, lost) == pytest.approx(expected, rel=1e-12)


def test_change_interval__counted_by_hand():
    # (6 + 1) / 94 - (0 + 1) / 94 = 0.0638, with a deviation of sqrt((0.0851 - 0.0041) / 94) = 0.0294.
    assert change_interval(6, 0, 92) == pytest.approx((0.0063, 0.1214), abs=5e-5)
    assert change_interval(0, 6, 92) == pytest.approx((-0.1214, -0.0063), abs=5e-5)
    assert change_interval(0, 0, 0) == (-1.0, 1.0)


def test_change_interval__more_changes_than_samples():
    with pytest.raises(InputError, match="Counts"):
        change_interval(3, 3, 5)


def test_q_values__unsorted_input_keeps_its_places():
    # Sorted 0.01 0.02 0.03 0.5 times 4/rank: 0.04 0.04 0.04 0.5.
    assert q_values([0.5, 0.01, 0.03, 0.02]) == pytest.approx([0.5, 0.04, 0.04, 0.04])
    assert q_values([0.9, 0.8]) == pytest.approx([0.9, 0.9])
    assert q_values([]).tolist() == []


def test_q_values__refuse_what_is_no_probability():
    with pytest.raises(InputError, match="p-value"):
        q_values([0.2, float("nan")])


def test_q_values__a_larger_one_carries_a_smaller_one():
    # 0.03 > 0.05 * 1/2 alone, but 0.04 <= 0.05 * 2/2 accepts both.
    assert (q_values([0.04, 0.03]) <= 0.05).tolist() == [True, True]
    assert (q_values([0.06, 0.03]) <= 0.05).tolist() == [False, False]


def test_q_values__false_discovery_rate_holds_in_simulated_screens():
    draws = np.random.default_rng(3)
    false_shares, n_found = [], 0
    for _ in range(400):
        is_real = np.arange(20) < 5
        inside = draws.binomial(40, np.where(is_real, 0.5, 0.15))
        outside = draws.binomial(80, 0.15, 20)
        p_values = [
            fisher_p(int(left), 40, int(right), 80)
            for left, right in zip(inside, outside, strict=True)
        ]
        accepted = q_values(p_values) <= 0.1
        false_shares.append(np.sum(accepted & ~is_real) / max(1, accepted.sum()))
        n_found += int(np.sum(accepted & is_real))
    assert np.mean(false_shares) <= 0.1
    assert n_found / (400 * 5) > 0.9


def test_permutation_p__counts_the_observed_value_too():
    assert permutation_p(0.9, [0.1] * 19) == pytest.approx(0.05)
    assert permutation_p(0.1, [0.1, 0.1]) == 1.0
    assert permutation_p(0.5, []) == 1.0


def test_association__signs_and_constants():
    yes_no = np.array([True, False, True, False])
    assert association(yes_no, yes_no) == pytest.approx(1.0)
    assert association(yes_no, ~yes_no) == pytest.approx(-1.0)
    assert association(yes_no, np.ones(4, dtype=bool)) == 0.0


@pytest.mark.parametrize(
    ("p_values", "correction", "options", "expected"),
    [
        # Sorted 0.01 0.02 0.03 0.5 times 4 3 2 1: 0.04 0.06 0.06 0.5.
        ([0.5, 0.01, 0.03, 0.02], "fwer", {}, [0.5, 0.04, 0.06, 0.06]),
        # 0.01 0.02 0.025 times 3 2 1: 0.03 0.04 0.025, and the last must not fall below the one before.
        ([0.01, 0.02, 0.025], "fwer", {}, [0.03, 0.04, 0.04]),
        # Benjamini and Hochberg's 0.04 0.04 0.04 0.5 times 1 + 1/2 + 1/3 + 1/4 = 25/12.
        ([0.5, 0.01, 0.03, 0.02], "fdr-dependent", {}, [1.0, 25 / 300, 25 / 300, 25 / 300]),
        # Weights 3 and 1 become 1.5 and 0.5; p / weight is 0.02 and 0.08, times 2 / rank: 0.04 and 0.08.
        ([0.03, 0.04], "fdr", {"weights": [3, 1]}, [0.04, 0.08]),
        # Holm: 0.02 * (1.5 + 0.5) and 0.08 * 0.5, which must not fall below the first.
        ([0.03, 0.04], "fwer", {"weights": [3, 1]}, [0.04, 0.04]),
        # p / weight is 0.02 for the first and tiny for the second: never below the p-value, so not 0.02.
        ([0.036, 1e-6], "fdr", {"weights": [9, 1]}, [0.036, 1e-5]),
        # Step up over 2 tests: 0.02 * 2 / (0.5 * (3 + 2)) for the larger, and it is smaller than 0.01 * 2 / (0.5 * (3 + 1)).
        ([0.01, 0.02], "fdr", {"share": 0.5, "earlier": 3}, [0.01, 0.02]),
        ([0.01, 0.02], "fdr", {"share": 0.1, "earlier": 3}, [0.05, 0.08]),
        ([0.01, 0.02], "fwer", {"share": 0.5, "earlier": 3}, [0.04, 0.04]),
    ],
)
def test_adjusted_p_values__by_hand(p_values, correction, options, expected):
    found = adjusted_p_values(p_values, correction=correction, **options)
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"weights": [1.0]}, "weight"),
        ({"weights": [1.0, 0.0]}, "weight"),
        ({"share": 0.0}, "share"),
        ({"earlier": -1}, "earlier"),
    ],
)
def test_adjusted_p_values__refuse_bad_options(options, says):
    with pytest.raises(InputError, match=says):
        adjusted_p_values([0.1, 0.2], correction="fdr", **options)


@pytest.mark.parametrize("correction", ["fdr", "fwer", "fdr-dependent"])
def test_adjusted_p_values__error_rate_holds_when_nothing_is_there(correction):
    draws = np.random.default_rng(5)
    p_values = draws.random((1_500, 30))
    weights = draws.exponential(1.0, (1_500, 30)) + 0.01
    found = [
        bool((adjusted_p_values(values, correction=correction, weights=shares) <= 0.1).any())
        for values, shares in zip(p_values, weights, strict=True)
    ]
    assert np.mean(found) <= 0.1 + 2 * 0.3 / np.sqrt(1_500)


def test_cohens_h__signs_and_ends():
    assert cohens_h(0.5, 0.5) == 0.0
    assert cohens_h(1.0, 0.0) == pytest.approx(np.pi)
    assert cohens_h(0.1, 0.3) == -cohens_h(0.3, 0.1)


def test_risk_ratio_interval__zeros_and_coverage():
    low, high = risk_ratio_interval(5, 10, 0, 20)
    assert 1.0 < low < high < 1_000
    draws = np.random.default_rng(2)
    inside, outside = draws.binomial(40, 0.3, 2_000), draws.binomial(120, 0.1, 2_000)
    intervals = [
        risk_ratio_interval(int(left), 40, int(right), 120)
        for left, right in zip(inside, outside, strict=True)
    ]
    assert 0.93 < np.mean([low <= 3.0 <= high for low, high in intervals]) < 0.98


def test_overlap__common_over_all():
    assert overlap(np.array([True, True, True, False]), np.array([True, True, False, True])) == 0.5
    assert overlap(np.zeros(3, dtype=bool), np.zeros(3, dtype=bool)) == 0.0


def test_paired_draws__keeps_sizes_and_pairs():
    # First stratum: two wrong, three gained, one lost, four right both times; second: nobody; third: only lost ones.
    tables = np.array([[2, 3, 1, 4], [0, 0, 0, 0], [0, 0, 5, 0]])
    before, after = paired_draws(tables, n_draws=4000, random=np.random.default_rng(1))
    assert before.shape == after.shape == (4000, 3)
    assert (before[:, 0] <= 10).all()
    assert (after[:, 1] == 0).all()
    assert (before[:, 2] == 5).all()
    assert (after[:, 2] == 0).all()
    assert before[:, 0].mean() == pytest.approx(5.0, abs=0.1)
    assert after[:, 0].mean() == pytest.approx(7.0, abs=0.1)
    # The change of ten pairs with three up and one down has the variance 10 * (0.4 - 0.2 ** 2).
    assert np.var(after[:, 0] - before[:, 0]) == pytest.approx(3.6, rel=0.1)


def test_bootstrap_interval__middle_of_the_draws_or_moved():
    assert bootstrap_interval(500.0, np.arange(1001)) == pytest.approx((25.0, 975.0), abs=0.1)
    # With 84.13 % of the draws below, the estimate is one deviation up; so the interval runs from 0.04 to 3.96 deviations.
    moved = bootstrap_interval(841.3, np.arange(1001))
    assert moved == pytest.approx((516.0, 1000.0), abs=2.0)
    assert bootstrap_interval(3.0, np.full(10, 3.0)) == (3.0, 3.0)
    with pytest.raises(InputError, match="level"):
        bootstrap_interval(1.0, np.arange(3), level=1.0)


def test_calibration_error__bins_of_equal_mass():
    # Two bins: confidences 0.6 and 0.7 with none right, 0.8 and 0.9 with both right.
    confidence = np.array([0.8, 0.6, 0.9, 0.7], dtype=np.float32)
    probabilities = np.column_stack([confidence, 1 - confidence])
    targets = np.array([0, 1, 0, 1])
    # In sums: |1.3 - 0| + |1.7 - 2| over four samples.
    assert calibration_error(
        probabilities, targets, task="single-label", n_bins=2
    ) == pytest.approx(1.6 / 4)
    assert calibration_error(
        probabilities, targets, task="single-label", n_bins=1
    ) == pytest.approx(1.0 / 4)
    matrix = np.eye(2, dtype=np.bool_)[targets]
    assert calibration_error(probabilities, matrix, task="single-label", n_bins=2) == pytest.approx(
        1.6 / 4
    )


def test_calibration_error__order_of_equal_confidences_does_not_matter():
    probabilities = np.tile(np.array([[0.75, 0.25]], dtype=np.float32), (8, 1))
    for targets in ([0] * 6 + [1] * 2, [1, 0, 0, 0, 1, 0, 0, 0]):
        assert calibration_error(
            probabilities, np.array(targets), task="single-label", n_bins=4
        ) == pytest.approx(0.0)


def test_calibration_error__labels_are_averaged():
    probabilities = np.array([[0.5, 0.9], [0.5, 0.9]], dtype=np.float32)
    truth = np.array([[True, False], [False, False]])
    # The first label is right on average, the second is off by 0.9.
    assert calibration_error(probabilities, truth, task="multi-label") == pytest.approx(0.45)


def test_calibration_error__more_labels_than_fit_at_once_and_nobody():
    probabilities = np.full((3, 130), 0.5, dtype=np.float32)
    probabilities[:, 129] = 0.0
    truth = np.zeros((3, 130), dtype=np.bool_)
    assert calibration_error(probabilities, truth, task="multi-label") == pytest.approx(
        0.5 * 129 / 130
    )
    assert np.isnan(calibration_error(probabilities[:0], truth[:0], task="multi-label"))


@st.composite
def _table(draw):
    n_inside, n_outside = draw(st.integers(0, 400)), draw(st.integers(0, 400))
    return draw(st.integers(0, n_inside)), n_inside, draw(st.integers(0, n_outside)), n_outside


@settings(max_examples=200, deadline=None)
@given(st.lists(_table(), min_size=1, max_size=20))
def test_fisher_ps__equals_the_single_test_for_any_tables(tables):
    found = fisher_ps(*np.array(tables).T)
    assert found == pytest.approx([fisher_p(*table) for table in tables], rel=1e-9, abs=1e-290)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 60), st.integers(1, 60), st.data())
def test_fisher_ps__equals_the_single_test_for_every_table_of_a_class(n_samples, n_failed, data):
    n_failed = min(n_failed, n_samples)
    sizes = data.draw(st.lists(st.integers(0, n_samples), min_size=1, max_size=30))
    inside = [
        data.draw(st.integers(max(0, n_failed - (n_samples - size)), min(size, n_failed)))
        for size in sizes
    ]
    inside, sizes = np.array(inside), np.array(sizes)
    found = fisher_ps(inside, sizes, n_failed - inside, n_samples - sizes)
    expected = [
        fisher_p(*map(int, table))
        for table in zip(inside, sizes, n_failed - inside, n_samples - sizes, strict=True)
    ]
    assert found == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize(
    "table",
    [
        (3, 4, 1, 4),
        (900, 1_000, 100, 100_000),
        (400, 400, 0, 1_600),
        (20_000, 300_000, 90_000, 1_700_000),
        (7, 5_000, 0, 2_000_000),
    ],
)
def test_fisher_ps__keeps_its_digits_far_out_and_for_large_counts(table):
    assert fisher_ps(*map(np.array, table))[0] == pytest.approx(
        fisher_p(*table), rel=1e-6, abs=1e-300
    )


def test_fisher_ps__known_values_and_edges():
    found = fisher_ps(
        np.array([3, 4, 0, 0, 5, 2]),
        np.array([4, 4, 0, 5, 5, 2]),
        np.array([1, 0, 3, 2, 0, 2]),
        np.array([4, 4, 9, 5, 0, 2]),
    )
    assert found == pytest.approx([17 / 70, 1 / 70, 1.0, 1.0, 1.0, 1.0])
    assert fisher_ps(np.zeros(0, int), 0, 0, 0).shape == (0,)
    # More than a million standard deviations out there is nothing left that a number could hold.
    assert fisher_ps(np.array(5_000), 5_000, 0, 5_000).tolist() == [0.0]


def test_fisher_ps__does_not_depend_on_the_company():
    draws = np.random.default_rng(0)
    sizes = draws.integers(10, 200, 500)
    inside = draws.binomial(sizes, 0.2)
    together = fisher_ps(inside, sizes, 2_000 - inside, 10_000 - sizes)
    order = draws.permutation(500)
    again = fisher_ps(inside[order], sizes[order], 2_000 - inside[order], 10_000 - sizes[order])
    assert again == pytest.approx(together[order], rel=1e-13)


@settings(max_examples=200, deadline=None)
@given(st.lists(_table(), min_size=1, max_size=20), st.sampled_from([0.5, 0.9, 0.95, 0.999]))
def test_wilson_intervals__equal_the_single_interval(tables, level):
    counts, totals = np.array(tables)[:, :2].T
    lows, highs = wilson_intervals(counts, totals, level=level)
    expected = np.array(
        [
            wilson_interval(int(count), int(total), level=level)
            for count, total in zip(counts, totals, strict=True)
        ]
    )
    assert lows == pytest.approx(expected[:, 0], rel=1e-12, abs=1e-15)
    assert highs == pytest.approx(expected[:, 1], rel=1e-12)


def test_wilson_intervals__without_trials_all_is_possible():
    lows, highs = wilson_intervals(np.array([0, 0, 10]), np.array([0, 10, 10]))
    assert lows[:2].tolist() == [0.0, 0.0]
    assert highs[[0, 2]].tolist() == [1.0, 1.0]


@pytest.mark.parametrize(("counts", "totals"), [([5], [4]), ([-1], [4])])
def test_statistics__impossible_counts_are_refused(counts, totals):
    with pytest.raises(InputError, match="0 <= successes <= trials"):
        wilson_intervals(np.array(counts), np.array(totals))
    with pytest.raises(InputError, match="0 <= successes <= trials"):
        fisher_ps(np.array([1]), np.array([2]), np.array(counts), np.array(totals))
    with pytest.raises(InputError, match="level"):
        wilson_intervals(np.array([1]), np.array([2]), level=1.0)


@pytest.mark.parametrize(("gained", "lost"), [(0, 0), (5, 0), (0, 5), (7, 3), (40, 12), (1, 1)])
def test_mcnemar_ps__equals_the_single_test(gained, lost):
    found = mcnemar_ps(np.array([gained, 2]), np.array([lost, 9]))
    assert found[0] == pytest.approx(mcnemar_p(gained, lost), rel=1e-12)
    assert found[1] == pytest.approx(0.065430, abs=1e-6)


def test_mcnemar_ps__refuses_negative_counts():
    with pytest.raises(InputError, match="Counts"):
        mcnemar_ps(np.array([3]), np.array([-1]))


@pytest.mark.parametrize(("n_samples", "n_failed"), [(100, 10), (60, 55), (3000, 700)])
def test_log_ratios__one_on_average_where_failures_fall_by_lot(n_samples, n_failed):
    sizes = np.array([5, 20, n_samples // 2])
    ratios = log_ratios(sizes, n_samples, n_failed)
    counts = np.arange(ratios.shape[1])[None, :]
    chances = np.exp(log_chances(sizes[:, None], counts, n_samples, n_failed))
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    np.testing.assert_allclose((chances * np.exp(ratios)).sum(axis=1), 1.0)
    assert (ratios[chances == 0] == IMPOSSIBLE).all()


def test_log_ratios__more_failures_inside_say_more():
    ratios = log_ratios(np.array([30]), 300, 40)[0]
    assert (np.diff(ratios) > 0).all()
    assert ratios[0] < 0 < ratios[12]


def test_log_ratios__of_two_that_are_as_rare_by_lot__the_one_in_which_a_gap_would_show():
    tiny, large = log_ratios(np.array([3, 30]), 300, 40)
    chances = np.exp(log_chances(np.array([[3], [30]]), np.arange(31)[None, :], 300, 40))
    tails = np.cumsum(chances[:, ::-1], axis=1)[:, ::-1]
    assert tails[0, 3] < tails[1, 10]
    assert tiny[3] < large[10]


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
