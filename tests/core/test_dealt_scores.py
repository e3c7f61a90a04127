import numpy as np
import pytest
from scipy.stats import hypergeom

from weakspot.core import group_tests
from weakspot.core.group_tests import DealtScores


def _sums(scores, bins, members, n_draws=20_000, seed=0):
    dealt = DealtScores(np.array(scores), bins, np.array(members, dtype=np.float64))
    return np.concatenate(list(dealt.sums(n_draws, np.random.default_rng(seed))))


def test_sums__failures_inside_are_as_often_as_when_drawn_from_an_urn():
    members = [np.arange(12) < 5, np.arange(12) % 3 == 0]
    sums = _sums(np.arange(12) < 4, [np.arange(12)], members)
    for place, n_inside in enumerate((5, 4)):
        expected = hypergeom(12, 4, n_inside).pmf(np.arange(5))
        counts = np.bincount(sums[:, place].astype(int), minlength=5) / len(sums)
        assert np.abs(counts - expected).max() < 4 * np.sqrt(0.25 / len(sums))


def test_sums__memberships_of_one_draw_belong_together():
    inside = np.arange(12) < 5
    sums = _sums(np.arange(12) < 4, [np.arange(12)], [inside, ~inside], n_draws=500)
    assert (sums.sum(axis=1) == 4).all()


def test_sums__scores_stay_in_their_bin_and_shares_count():
    bins = [np.array([0, 2, 4]), np.array([1, 3])]
    sums = _sums([3, 7, 0, 0, 0], bins, [[1, 0, 1, 0, 1], [0, 0.5, 0, 0.5, 0]], n_draws=200)
    assert sums.tolist() == [[3.0, 3.5]] * 200


def test_sums__same_seed_same_sums_however_many_at_once(monkeypatch):
    scores, members = np.arange(30) < 9, [np.arange(30) < 10]
    whole = _sums(scores, [np.arange(30)], members, n_draws=700)
    monkeypatch.setattr(group_tests, "MAX_NUMBERS", 50)
    assert _sums(scores, [np.arange(30)], members, n_draws=700).tolist() == whole.tolist()


@pytest.mark.parametrize("scores", [[0, 0, 0], [1, 1, 1]])
def test_sums__nothing_to_deal_out(scores):
    assert set(_sums(scores, [np.arange(3)], [[1, 1, 0]], n_draws=9)[:, 0]) == {2.0 * scores[0]}
