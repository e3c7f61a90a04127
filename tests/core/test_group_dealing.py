import numpy as np
import pytest

from weakspot.core.group_tests import deal_anew, deal_folds, dealt_first, size_bins
from weakspot.core.kernels import count_sides, fold_numbers

FIVES = np.repeat(np.arange(40), 5)


def _shares(dealt, groups):
    return np.stack([np.bincount(groups, weights=one) / np.bincount(groups) for one in dealt])


def test_deal_anew__shares_of_groups_of_one_size_are_permuted():
    draws = np.random.default_rng(0)
    failed = draws.random(200) < np.repeat(draws.random(40), 5)
    dealt = deal_anew(failed, FIVES, 30, np.random.default_rng(1))
    own = np.sort(_shares(failed[None], FIVES)[0])
    assert dealt.shape == (30, 200)
    assert np.array_equal(np.sort(_shares(dealt, FIVES), axis=1), np.tile(own, (30, 1)))
    assert len(np.unique(dealt, axis=0)) == 30


def test_deal_anew__every_image_of_a_group_fails_as_often():
    failed = np.arange(200) % 5 == 0
    dealt = deal_anew(failed, FIVES, 2_000, np.random.default_rng(0))
    assert dealt.mean(axis=0) == pytest.approx(0.2, abs=0.05)


@pytest.mark.parametrize("seed", range(5))
def test_deal_anew__the_number_of_failures_stays_where_sizes_differ(seed):
    draws = np.random.default_rng(seed)
    groups = np.repeat(np.arange(60), draws.integers(1, 9, 60))
    failed = (draws.random(60) < 0.3)[groups]
    dealt = deal_anew(failed, groups, 200, np.random.default_rng(seed))
    assert (dealt.sum(axis=1) == failed.sum()).all()
    shares = _shares(dealt, groups)
    # Only the one group that makes up the number fails in part.
    assert (((shares > 0) & (shares < 1)).sum(axis=1) <= 1).all()


def test_deal_anew__how_a_table_numbers_groups_does_not_matter():
    failed = np.arange(200) < 50
    other = np.random.default_rng(3).permutation(40)[FIVES]
    first, second = (deal_anew(failed, one, 5, np.random.default_rng(0)) for one in (FIVES, other))
    assert np.array_equal(first, second)


def test_deal_anew__many_draws_are_made_in_parts(monkeypatch):
    failed = np.arange(200) < 50
    monkeypatch.setattr("weakspot.core.group_tests.MAX_BLOCK", 600)
    dealt = deal_anew(failed, FIVES, 10, np.random.default_rng(0))
    assert dealt.shape == (10, 200)
    assert (dealt.sum(axis=1) == 50).all()


def test_deal_folds__groups_stay_whole_and_folds_are_even():
    folds = deal_folds(FIVES, 5, np.random.default_rng(0))
    by_group = folds.reshape(40, 5)
    assert (by_group == by_group[:, :1]).all()
    assert np.bincount(by_group[:, 0]).tolist() == [8] * 5


def test_dealt_first__failures_come_first_group_by_group():
    failed = np.arange(200) < 50
    dealt = deal_anew(failed, FIVES, 8, np.random.default_rng(0))
    orders = dealt_first(dealt, FIVES, np.random.default_rng(1))
    for order, one in zip(orders, dealt, strict=True):
        assert one[order[:50]].all()
        assert sorted(order.tolist()) == list(range(200))
        assert (np.diff(FIVES[order[:50]]) != 0).sum() == 9


def test_size_bins__few_groups_join_the_next_smaller_ones():
    sizes = np.array([1] * 6 + [2] * 6 + [4] * 2)
    assert [len(one) for one in size_bins(sizes)] == [6, 8]


def _dealt_one_by_one(failed, order, n_folds):
    """What folds were before there were groups."""
    n_failed = int(failed.sum())
    n_possible = max(2, min(n_folds, n_failed, len(failed) - n_failed))
    found, dealt = np.empty(len(failed), dtype=np.int64), [0, 0]
    for place in order:
        found[place] = dealt[int(failed[place])] % n_possible
        dealt[int(failed[place])] += 1
    return found, n_possible


@pytest.mark.parametrize("seed", range(20))
def test_fold_numbers__without_groups_samples_are_dealt_out_one_by_one(seed):
    draws = np.random.default_rng(seed)
    failed = draws.random(int(draws.integers(4, 90))) < draws.random()
    order = draws.permutation(len(failed))
    folds, n_folds = fold_numbers(failed, order, 5, np.arange(len(failed)))
    expected, n_expected = _dealt_one_by_one(failed, order, 5)
    assert n_folds == n_expected
    assert np.array_equal(folds, expected)


@pytest.mark.parametrize("seed", range(20))
def test_fold_numbers__groups_stay_whole_and_both_sides_remain_to_fit_on(seed):
    draws = np.random.default_rng(seed)
    groups = draws.permutation(np.repeat(np.arange(30), draws.integers(1, 9, 30)))
    rates = draws.choice([0.0, 0.3, 1.0], 30, p=draws.dirichlet([1.0, 1.0, 1.0]))
    failed = draws.random(len(groups)) < rates[groups]
    n_failing, n_right = count_sides(failed, groups)
    assert n_failing == len(np.unique(groups[failed]))
    assert n_right == len(np.unique(groups[~failed]))
    if min(n_failing, n_right) < 2:
        return
    folds, n_folds = fold_numbers(failed, draws.permutation(len(failed)), 5, groups)
    assert all(len(np.unique(folds[groups == one])) == 1 for one in np.unique(groups))
    for fold in range(n_folds):
        assert failed[folds != fold].any()
        assert (~failed[folds != fold]).any()
