import numpy as np
import pytest

from weakspot.core.statistics import IMPOSSIBLE, log_chances, log_ratios


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
