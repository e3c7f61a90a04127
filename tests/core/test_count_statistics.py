import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weakspot.core.errors import InputError
from weakspot.core.statistics import (
    fisher_p,
    fisher_ps,
    mcnemar_p,
    mcnemar_ps,
    wilson_interval,
    wilson_intervals,
)


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
