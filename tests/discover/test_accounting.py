import numpy as np
import pytest
from scipy.stats import hypergeom

from weakspot.core.statistics import fisher_p
from weakspot.discover.accounting import Memberships, cells_of, excess_p


def test_cells_of__the_smallest_membership_counts():
    wide, deep, other = np.arange(6) < 4, np.arange(6) < 2, np.arange(6) == 5
    assert cells_of([wide, deep, other], 6).tolist() == [2, 2, 1, 1, 0, 3]
    assert cells_of([deep, wide], 6).tolist() == [1, 1, 2, 2, 0, 0]
    assert cells_of([], 2).tolist() == [0, 0]


def test_excess_p__one_cell_is_fishers_test():
    inside, failed = np.arange(40) < 10, np.isin(np.arange(40), [0, 1, 2, 3, 4, 20, 30])
    one_cell = np.zeros(40, dtype=int)
    assert excess_p(inside, failed, one_cell) == pytest.approx(fisher_p(5, 10, 2, 30))


def test_excess_p__cells_are_compared_apart():
    draws = np.random.default_rng(0)
    cells = np.repeat([0, 1], [30, 20])
    inside, failed = draws.random(50) < 0.4, draws.random(50) < np.where(cells, 0.6, 0.2)
    laws = []
    for cell in (0, 1):
        own = cells == cell
        law = hypergeom(int(own.sum()), int(failed[own].sum()), int(inside[own].sum()))
        laws.append(law.pmf(np.arange(21)))
    expected = np.convolve(*laws)[int((inside & failed).sum()) :].sum()
    assert excess_p(inside, failed, cells) == pytest.approx(expected)


def test_excess_p__a_cell_of_members_only_says_nothing():
    inside, failed = np.arange(20) < 5, np.arange(20) < 5
    assert excess_p(inside, failed, inside.astype(int)) == 1.0


def test_excess_p__many_samples_by_the_normal_distribution():
    draws = np.random.default_rng(1)
    inside, failed = draws.random(20_000) < 0.3, draws.random(20_000) < 0.5
    found = excess_p(inside, failed, np.zeros(20_000, dtype=int))
    counts = [
        int((inside & failed).sum()),
        int(inside.sum()),
        int((~inside & failed).sum()),
        int((~inside).sum()),
    ]
    assert found == pytest.approx(fisher_p(*counts), rel=0.02)


def test_excess_p__a_group_counts_once():
    inside = np.repeat([True, False], [8, 24])
    failed, groups = inside.copy(), np.repeat(np.arange(8), 4)
    assert excess_p(inside, failed, np.zeros(32, dtype=int), groups) == pytest.approx(
        fisher_p(2, 2, 0, 6)
    )


def test_excess__a_severe_part_stands_out_of_a_broad_one_and_a_companion_does_not():
    draws = np.random.default_rng(2)
    broad, part = draws.random(5_000) < 0.2, draws.random(5_000) < 0.05
    companion = draws.random(5_000) < np.where(broad, 0.7, 0.1)
    failed = draws.random(5_000) < np.where(broad, np.where(part, 0.95, 0.5), 0.02)
    members = [np.flatnonzero(one) for one in (broad, broad & part, companion)]
    counted = Memberships(members, failed)
    alone = counted.excess(cells_of([], 5_000))
    assert alone.argmax() == 0
    assert alone.min() > 20
    beside = counted.excess(cells_of([broad], 5_000))
    assert beside[0] == 0.0
    assert beside[1] > 10
    assert beside[2] < 3
    thinned = Memberships(members, failed, step=4).excess(cells_of([broad], 5_000))
    assert thinned[1] == pytest.approx(beside[1], rel=0.5)
