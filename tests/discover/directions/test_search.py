import numpy as np

from weakspot.discover.directions import DirectionsDiscoverer, class_data


def _search(**options):
    settings = {
        "costs": (0.1,),
        "cost_slack": 0.0,
        "n_repeats": 1,
        "n_permutations": 19,
        "n_directions": 1,
    }
    return DirectionsDiscoverer(**(settings | options))


def _objects(seed, *, failing=12, gap=0.0):
    draws = np.random.default_rng(seed)
    objects = np.repeat(np.arange(40), 5)
    middles = draws.normal(size=(40, 12))
    middles[:failing, 0] += gap
    embeddings = middles[objects] + 0.1 * draws.normal(size=(200, 12))
    return embeddings.astype(np.float32), objects < failing, objects


def _found(given, search, *, is_told, seed=0, n_null=200):
    embeddings, failed, objects = given
    draws = np.random.default_rng(seed)
    groups = objects if is_told else None
    data = class_data(embeddings, failed, groups, max_null_samples=n_null, draws=draws)
    return search.search(data, draws)[0]


def test_run__objects_seen_several_times_are_no_direction():
    search = _search()
    clear = {True: 0, False: 0}
    for seed in range(20):
        for is_told in (True, False):
            found = _found(_objects(seed), search, is_told=is_told, seed=seed)[0]
            clear[is_told] += found.strength_p is not None and found.strength_p <= 0.05
    assert clear[False] >= 15
    assert clear[True] <= 4


def test_run__a_direction_that_objects_share_is_found():
    for n_null in (200, 120):
        found = _found(_objects(0, gap=4.0), _search(), is_told=True, n_null=n_null)[0]
        assert found.strength > 0.8
        assert found.strength_p == 0.05


def test_run__one_failing_object_has_no_cut_and_no_strength():
    found = _found(_objects(0, failing=1), _search(), is_told=True)[0]
    assert found.strength == 0.5
    assert found.threshold == 0.0


def test_run__without_permutations_groups_widen_what_may_be_chance():
    """Two kinds of failing objects, told from the others about as well as chance would tell so few of them."""
    kinds = {True: 0, False: 0}
    for seed in range(12):
        embeddings, failed, objects = _objects(seed, failing=14)
        embeddings[objects < 7, 1] += 12.0
        embeddings[(objects >= 7) & (objects < 20), 2] += 12.0
        embeddings[objects >= 34, 1] += 12.0
        search = _search(n_permutations=0, n_directions=2)
        for is_told in (True, False):
            found = _found((embeddings, failed, objects), search, is_told=is_told, seed=seed)
            kinds[is_told] += len(found) > 1
    assert kinds[True] < kinds[False]


def test_run__failures_of_few_objects_are_not_of_several_kinds():
    """Six failing objects lie apart from each other, as any six do: that is no reason to divide them."""
    search = _search(n_directions=3)
    told = [_found(_objects(seed, failing=6), search, is_told=True, seed=seed) for seed in range(6)]
    images = [_found(_objects(seed, failing=6), search, is_told=False) for seed in range(6)]
    assert sum(len(found) > 1 for found in told) <= 1
    assert sum(len(found) > 1 for found in images) >= 5
