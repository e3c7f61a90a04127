import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score as balanced_accuracy

from weakspot.core.kernels import fold_numbers
from weakspot.discover.directions import DirectionsDiscoverer, source_of
from weakspot.discover.directions_kernels import (
    accuracy_of,
    best_accuracies,
    best_cost,
    chance_shares,
    chosen_model,
    forced_regions,
    group_accuracy,
    nested_scores,
    order_within,
    two_means,
)


def plan_of(costs, *, slack=0.0):
    return DirectionsDiscoverer(costs=costs, cost_slack=slack).plan


PLAN = plan_of((0.01, 1.0))


def _class(n_rows=60, *, gap=3.0, seed=0):
    draws = np.random.default_rng(seed)
    failed = np.arange(n_rows) % 3 == 0
    embeddings = draws.normal(size=(n_rows, 8)).astype(np.float32)
    embeddings[:, 1] += gap * failed
    return embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True), failed


def _order(n_rows, seed=0):
    return np.random.default_rng(seed).permutation(n_rows)


def test_fold_numbers__every_fold_has_both_sides():
    failed = np.arange(50) < 7
    folds, n_folds = fold_numbers(failed, _order(50), 5, np.arange(50))
    assert n_folds == 5
    assert all(failed[folds == fold].sum() in (1, 2) for fold in range(5))
    assert all((~failed)[folds == fold].sum() in (8, 9) for fold in range(5))
    assert fold_numbers(np.arange(9) < 3, _order(9), 5, np.arange(9))[1] == 3
    assert fold_numbers(np.arange(9) < 1, _order(9), 5, np.arange(9))[1] == 2


def test_order_within__keeps_the_order_of_those_kept():
    assert order_within(np.array([3, 0, 2, 1]), np.array([1, 3])).tolist() == [[1, 0]]


def test_accuracy_of__is_the_mean_of_the_recalls():
    failed = np.array([True, True, True, False])
    scores = np.array([0.5, 0.0, -1.0, -0.1])
    assert accuracy_of(failed, scores, 0.0) == pytest.approx(5 / 6)
    assert accuracy_of(failed, scores, 0.0) == pytest.approx(balanced_accuracy(failed, scores >= 0))
    assert accuracy_of(failed, scores, 2.0) == pytest.approx(0.5)


def test_best_cost__slack_prefers_the_smaller_of_near_equals():
    embeddings, failed = _class()
    orders = _order(60)[None]
    assert best_cost(source_of(embeddings), failed, orders, plan_of((1e-6, 1e-5), slack=0.0)) == 0
    assert (
        best_cost(source_of(embeddings), failed, orders, plan_of((1e-6, 1.0, 100.0), slack=50.0))
        == 0
    )
    assert (
        best_cost(source_of(embeddings), np.arange(60) < 1, orders, plan_of((1e-6, 1e-3, 1.0))) == 1
    )


def test_chosen_model__takes_costs_in_ascending_order():
    embeddings, failed = _class()
    assert plan_of((1.0, 0.1)).costs.tolist() == [0.1, 1.0]
    chosen, signed, biases = chosen_model(source_of(embeddings), failed, _order(60)[None], PLAN)
    assert chosen in (0, 1)
    scores = embeddings @ (signed[0] @ embeddings) + biases[0]
    assert balanced_accuracy(failed, scores >= 0) > 0.85


def test_nested_scores__a_sample_takes_no_part_in_its_own_score():
    embeddings, failed = _class()
    order = _order(60)
    before = nested_scores(source_of(embeddings), failed, order, PLAN)
    moved = embeddings.copy()
    moved[7] = -moved[7]
    after = nested_scores(source_of(moved), failed, order, PLAN)
    folds, _ = fold_numbers(failed, order, 5, np.arange(60))
    same_fold = (folds == folds[7]) & (np.arange(60) != 7)
    assert after[same_fold] == pytest.approx(before[same_fold], abs=1e-6)
    assert np.abs(after[folds != folds[7]] - before[folds != folds[7]]).max() > 1e-4
    assert accuracy_of(failed, before, 0.0) > 0.8
    assert np.abs(before).max() < 2.0


def test_nested_scores__the_same_by_embeddings_and_by_gram_matrix():
    embeddings, failed = _class()
    by_gram = nested_scores(source_of(embeddings), failed, _order(60), PLAN)
    by_embeddings = nested_scores(source_of(embeddings, largest_gram=1), failed, _order(60), PLAN)
    assert by_gram == pytest.approx(by_embeddings, abs=5e-3)


def test_two_means__finds_two_heaps_and_the_share_they_explain():
    embeddings = np.array([[0.0, 0], [0, 1], [10, 0], [10, 1]], dtype=np.float32)
    is_first, explained, spread = two_means(embeddings @ embeddings.T, np.arange(4))
    assert is_first.tolist() in ([True, True, False, False], [False, False, True, True])
    assert spread == pytest.approx(101.0)
    assert explained == pytest.approx(100.0)
    assert two_means(np.ones((3, 3), dtype=np.float32), np.arange(3))[1] == 0.0


def test_forced_regions__others_go_to_the_nearest_group():
    embeddings = np.array([[0.0, 0], [0, 1], [10, 0], [10, 1], [9, 9], [1, 9]], dtype=np.float32)
    failed = np.array([True, True, True, True, False, False])
    regions = forced_regions(embeddings @ embeddings.T, failed, 2)
    assert regions[0] == regions[1] == regions[5]
    assert regions[2] == regions[3] == regions[4]
    assert regions[0] != regions[2]
    assert forced_regions(embeddings @ embeddings.T, failed, 1).tolist() == [0] * 6


def test_chance_shares__random_samples_fall_apart_less_than_heaps():
    draws = np.random.default_rng(0)
    embeddings = draws.normal(size=(60, 6)).astype(np.float32)
    embeddings[:20, 0] += np.where(np.arange(20) < 10, 6, -6)
    gram = embeddings @ embeddings.T
    _, explained, spread = two_means(gram, np.arange(20))
    orders = np.stack([draws.permutation(60) for _ in range(30)])
    assert (chance_shares(gram, orders, 20) < explained / spread).all()


def test_group_accuracy__dividing_chance_failures_gains_nothing():
    accuracies = []
    for seed in range(12):
        embeddings, _ = _class(gap=0.0, seed=seed)
        failed = np.random.default_rng(100 + seed).permutation(np.arange(60) < 20)
        gram = source_of(embeddings).values
        regions = forced_regions(gram, failed, 2)
        accuracies += [
            group_accuracy(source_of(embeddings), failed, regions, group, _order(60, seed), PLAN)
            for group in (0, 1)
        ]
    assert 0.4 < np.mean(accuracies) < 0.6


def test_group_accuracy__one_failure_is_too_little():
    embeddings, failed = _class()
    regions = np.zeros(60, dtype=np.int64)
    regions[0] = 1
    assert group_accuracy(source_of(embeddings), failed, regions, 1, _order(60), PLAN) == 0.5


def test_best_accuracies__one_group_is_the_nested_accuracy():
    embeddings, failed = _class()
    source, order = source_of(embeddings), _order(60)
    expected = accuracy_of(failed, nested_scores(source, failed, order, PLAN), 0.0)
    assert best_accuracies(source, failed[None], order[None], PLAN, 1).tolist() == [expected]


def _objects(seed, n_objects=40):
    """Five images of every object, alike and right or wrong together; nothing but the object tells which."""
    draws = np.random.default_rng(seed)
    objects = np.repeat(np.arange(n_objects), 5)
    embeddings = draws.normal(size=(n_objects, 12))[objects] + 0.1 * draws.normal(size=(200, 12))
    unit = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    return unit.astype(np.float32), (np.arange(n_objects) < 12)[objects], objects


def test_nested_scores__an_object_is_not_judged_by_its_own_images():
    plan = plan_of((1.0,))
    images, told = [], []
    for seed in range(8):
        embeddings, failed, objects = _objects(seed)
        order = _order(200, seed)
        for groups, found in ((None, images), (objects, told)):
            scores = nested_scores(source_of(embeddings, groups), failed, order, plan)
            found.append(accuracy_of(failed, scores, 0.0))
    assert np.mean(images) > 0.7
    assert np.mean(told) < 0.58


def test_group_accuracy__one_failing_object_is_too_little():
    embeddings, _, objects = _objects(0)
    failed, regions = objects == 3, np.zeros(200, dtype=np.int64)
    order = _order(200)
    assert group_accuracy(source_of(embeddings, objects), failed, regions, 0, order, PLAN) == 0.5
    assert group_accuracy(source_of(embeddings), failed, regions, 0, order, PLAN) > 0.8
    assert (
        best_cost(source_of(embeddings, objects), failed, order[None], plan_of((1e-6, 1e-3, 1.0)))
        == 1
    )


def test_accuracy_of__a_missing_side_counts_half():
    assert accuracy_of(np.ones(2, dtype=bool), np.array([1.0, -1.0]), 0.0) == 0.5
    assert accuracy_of(np.zeros(2, dtype=bool), np.array([-1.0, -1.0]), 0.0) == 0.75
