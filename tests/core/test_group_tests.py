from itertools import combinations, permutations, product

import numpy as np
import pytest
from scipy.stats import hypergeom

from weakspot.core import group_tests
from weakspot.core.group_tests import (
    DealtScores,
    GroupTest,
    count_groups,
    deal_anew,
    deal_folds,
    dealt_first,
    effective_number,
    group_change_interval,
    group_interval,
    group_p,
    paired_group_p,
    size_bins,
)
from weakspot.core.kernels import count_sides, fold_numbers
from weakspot.core.statistics import change_interval, fisher_p, mcnemar_p, wilson_interval


def _world(random, *, size, n_samples=300, rate=0.15, gain=0.0, together=1.0):
    """Draw groups of one size; a group is inside as a whole, and its outcome is shared by the part `together`."""
    groups = np.repeat(np.arange(n_samples // size), size)
    is_inside = random.random(n_samples // size) < 0.2
    rates = np.where(is_inside, rate + gain, rate)
    shared = random.random(n_samples // size) < rates
    own = random.random(len(groups)) < rates[groups]
    failed = np.where(random.random(len(groups)) < together, shared[groups], own)
    return is_inside[groups], failed, groups


def _fisher(inside, failed):
    return fisher_p(
        int(failed[inside].sum()),
        int(inside.sum()),
        int(failed[~inside].sum()),
        int((~inside).sum()),
    )


@pytest.mark.parametrize("groups", [None, np.arange(40)[::-1]])
def test_group_p__single_samples_are_fishers_test(groups):
    random = np.random.default_rng(5)
    for _ in range(20):
        inside, failed = random.random(40) < 0.3, random.random(40) < 0.4
        assert group_p(inside, failed, groups) == _fisher(inside, failed)


def test_group_p__shared_outcomes_are_fishers_test_of_groups():
    inside, failed, groups = _world(np.random.default_rng(6), size=5)
    firsts = np.arange(0, 300, 5)
    expected = _fisher(inside[firsts], failed[firsts])
    assert group_p(inside, failed, groups) == pytest.approx(expected, rel=1e-9)


def test_group_p__mixed_groups_by_going_through_all_choices():
    # Six pairs with 2, 1, 0, 2, 0, 1 failures, of which the first and the fourth are inside.
    failed = np.array([1, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 1], dtype=bool)
    groups = np.repeat(np.arange(6), 2)
    scores = [2, 1, 0, 2, 0, 1]
    sums = [sum(scores[one] for one in chosen) for chosen in combinations(range(6), 2)]
    expected = np.mean([one >= 4 for one in sums])
    assert group_p(np.isin(groups, [0, 3]), failed, groups) == pytest.approx(expected)


def test_group_p__sizes_are_permuted_among_themselves():
    # Five singles and five pairs: all singles fail, no pair does. Being single explains it, not being inside.
    groups = np.array([0, 1, 2, 3, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9])
    failed = groups < 5
    assert group_p(groups < 5, failed, groups) == 1.0


def test_group_p__partly_inside_by_going_through_all_permutations():
    failed = np.array([1, 1, 0, 0, 1, 0, 0, 0, 0, 0], dtype=bool)
    groups = np.repeat(np.arange(5), 2)
    inside = np.array([1, 1, 1, 0, 1, 0, 0, 0, 0, 0], dtype=bool)
    members, scores = np.array([1, 0.5, 0.5, 0, 0]), np.array([1, 0, 0.5, 0, 0])
    reached = [
        members @ scores[list(order)] >= members @ scores for order in permutations(range(5))
    ]
    assert group_p(inside, failed, groups) == pytest.approx(np.mean(reached), abs=0.01)


def test_group_p__drawn_values_are_the_same_every_time():
    random = np.random.default_rng(3)
    groups = np.repeat(np.arange(30), 4)
    test = GroupTest(random.random(120) < 0.3, groups)
    inside = [random.random(120) < 0.4 for _ in range(3)]
    assert test.p_values(inside) == test.p_values(inside)
    assert test.p_values(inside)[1] == test.p_value(inside[1])


def test_group_p__nobody_or_everybody_inside():
    groups = np.repeat(np.arange(5), 2)
    failed = np.arange(10) < 4
    assert group_p(np.zeros(10, dtype=bool), failed, groups) == 1.0
    assert group_p(np.ones(10, dtype=bool), failed, groups) == 1.0
    assert group_p(np.arange(10) < 4, np.zeros(10, dtype=bool), groups) == 1.0


@pytest.mark.parametrize("size", [2, 5])
@pytest.mark.parametrize("together", [1.0, 0.5])
def test_group_p__level_holds_where_outcomes_are_shared(size, together):
    random = np.random.default_rng([11, size])
    worlds = [_world(random, size=size, together=together) for _ in range(600)]
    rejected = np.mean([group_p(*one) <= 0.05 for one in worlds])
    assert rejected <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 600)
    if together == 1.0:
        assert np.mean([_fisher(*one[:2]) <= 0.05 for one in worlds]) > 0.08


def test_group_p__power_is_kept_where_outcomes_are_independent():
    random = np.random.default_rng(12)
    worlds = [_world(random, size=2, gain=0.2, together=0.0) for _ in range(150)]
    power = np.mean([group_p(*one) <= 0.05 for one in worlds])
    assert power >= np.mean([_fisher(*one[:2]) <= 0.05 for one in worlds]) - 0.05


def test_group_p__very_many_groups_are_tested_by_one_image_each():
    random = np.random.default_rng(8)
    groups = np.repeat(np.arange(5000), 2)
    inside = random.random(10_000) < 0.1
    failed = random.random(5000)[groups] < 0.1
    p_null = group_p(inside, failed, groups)
    p_real = group_p(inside, failed | (inside & (random.random(10_000) < 0.2)), groups)
    assert p_real < 1e-6
    assert p_null > 0.001


def test_count_groups__and_what_they_are_worth():
    groups = np.array([0, 0, 0, 1, 2])
    chosen = np.array([1, 1, 1, 1, 0], dtype=bool)
    assert count_groups(groups, chosen) == 2
    assert count_groups(None, chosen) == 4
    assert effective_number(groups, chosen) == 16 / 10
    assert effective_number(None, chosen) == 4.0
    assert effective_number(groups, ~chosen & False) == 0.0


def test_group_interval__wider_by_what_groups_are_worth():
    assert group_interval(3, 10, 10.0) == wilson_interval(3, 10)
    assert group_interval(4, 10, 5.0) == pytest.approx(wilson_interval(2, 5))
    assert group_interval(10, 10, 10 / 3)[1] == 1.0
    assert group_interval(0, 0, 0.0) == (0.0, 1.0)


def test_paired_group_p__single_samples_are_mcnemars_test():
    gained, lost = np.arange(20) < 9, np.arange(20) > 17
    assert paired_group_p(gained, lost, None) == mcnemar_p(9, 2)
    assert paired_group_p(gained, lost, np.arange(20)) == mcnemar_p(9, 2)


def test_paired_group_p__by_going_through_all_signs():
    # Net changes of the groups: +3, +1, -2, 0, +1.
    groups = np.array([0, 0, 0, 1, 2, 2, 3, 3, 4])
    gained = np.array([1, 1, 1, 1, 0, 0, 1, 0, 1], dtype=bool)
    lost = np.array([0, 0, 0, 0, 1, 1, 0, 1, 0], dtype=bool)
    sums = [np.dot(signs, [3, 1, 2, 1]) for signs in product([-1, 1], repeat=4)]
    up, down = np.mean(np.array(sums) >= 3), np.mean(np.array(sums) <= 3)
    assert paired_group_p(gained, lost, groups, alternative="gained") == pytest.approx(up)
    assert paired_group_p(gained, lost, groups, alternative="lost") == pytest.approx(down)
    assert paired_group_p(gained, lost, groups) == pytest.approx(min(1, 2 * min(up, down)))
    assert paired_group_p(lost, gained, groups, alternative="lost") == pytest.approx(up)


def test_paired_group_p__nothing_changed():
    nobody = np.zeros(4, dtype=bool)
    assert paired_group_p(nobody, nobody, np.array([0, 0, 1, 1])) == 1.0


def test_group_change_interval__counts_groups():
    gained, lost = np.arange(20) < 6, np.arange(20) > 18
    assert group_change_interval(gained, lost, None) == change_interval(6, 1, 20)
    pairs = group_change_interval(gained, lost, np.repeat(np.arange(10), 2))
    assert pairs == pytest.approx(change_interval(3, 0.5, 10))
    assert group_change_interval(np.ones(3, bool), np.zeros(3, bool), np.array([0, 0, 0]))[1] == 1.0


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
