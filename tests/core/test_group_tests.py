from itertools import combinations, permutations, product

import numpy as np
import pytest

from weakspot.core.group_tests import (
    GroupTest,
    count_groups,
    effective_number,
    group_change_interval,
    group_interval,
    group_p,
    paired_group_p,
)
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
