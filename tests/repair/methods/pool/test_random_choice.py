from weakspot.repair.strategies.pool import RandomRepairer


def test_select__seed_decides_and_larger_budgets_keep_smaller_ones(make_material, hidden, added):
    chosen = {}
    for seed in range(12):
        sizes = [make_material(budget=budget, seed=seed) for budget in (2, 5, 99)]
        small, large, everything = (
            added(RandomRepairer().select([], material), material) for material in sizes
        )
        assert (len(small), len(large), everything) == (2, 5, "abcdefgh")
        assert set(small) <= set(large)
        material = make_material(
            budget=2, seed=seed, labels=hidden, order=[13, 3, 8, 6, 1, 0, 2, 4, 5, 7, 9, 10, 12, 11]
        )
        assert added(RandomRepairer().select([], material), material) == small
        chosen[small] = seed
    assert len(chosen) > 5
