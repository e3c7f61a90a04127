import numpy as np
import pytest
from repair_results.arms import Workshop, accuracies, pool_methods, training_methods

from weakspot.core.heads import RepairMaterial
from weakspot.repair.bench import GROUP_METHODS, groups_of
from weakspot.repair.strategies.reweighting import PlainRepairer, SliceBalancedRepairer


@pytest.fixture(scope="module")
def shop(correlation, true_slices):
    return Workshop(case=correlation, given=true_slices)


def test_methods__every_kind_is_told_apart():
    assert {"slice-balanced", "worst-slice", "up-weight", "class-balanced", "worst-class"} <= set(
        training_methods()
    )
    assert {"pool-random", "pool-deepest", "pool-budgeted"} <= set(pool_methods())
    assert not {"plain", "synthetic", *GROUP_METHODS} & {*training_methods(), *pool_methods()}


def test_groups_of__slices_rests_and_other_classes_share_all_samples(shop):
    groups = groups_of(shop.given.slices, shop.case.validation)
    assert len(groups) == 6
    assert np.sum(groups, axis=0).tolist() == [1] * len(shop.case.validation)


def test_material__a_pool_only_with_a_budget(correlation, true_slices, shop):
    assert isinstance(shop.material, RepairMaterial)
    assert shop.material.pool is None
    assert len(Workshop(case=correlation, given=true_slices, budget=5).material.pool) == len(
        correlation.pool
    )


def test_trained__the_penalty_is_the_best_on_validation_groups(shop):
    selection = SliceBalancedRepairer().select(shop.given.slices, shop.material)
    _, chosen = shop.trained(selection)
    scores = {}
    for penalty in shop.penalties:
        head, _ = Workshop(case=shop.case, given=shop.given, penalties=(penalty,)).trained(
            selection
        )
        rows, dataset = shop.case.validation.rows, shop.case.samples.dataset
        right = (
            head.probabilities(shop.case.samples.embeddings("features", rows)).argmax(axis=1)
            == dataset.labels[rows]
        )
        scores[penalty] = np.mean(
            [right[group].mean() for group in groups_of(shop.given.slices, shop.case.validation)]
        )
    assert scores[chosen] == max(scores.values())


def test_accuracies__agree_with_counting_by_hand(shop):
    selection = PlainRepairer().select(shop.given.slices, shop.material)
    head, _ = shop.trained(selection)
    found = accuracies(shop.answered("plain", head, n_trained=len(selection.rows)), shop.case)
    dataset, rows = shop.case.samples.dataset, shop.case.test.rows
    after = (
        head.probabilities(shop.case.samples.embeddings("features", rows)).argmax(axis=1)
        == dataset.labels[rows]
    )
    before = dataset.predictions[rows] == dataset.labels[rows]
    hidden = np.array(
        [value == "hidden" for value in dataset.metadata("true kind").take(rows).to_pylist()]
    )
    groups = groups_of(shop.case.truths, shop.case.test)
    trained_on = groups_of(shop.case.truths, shop.case.training)
    shares = np.array([group.sum() for group in trained_on]) / len(shop.case.training)
    assert found["slice before"] == pytest.approx(before[hidden].mean())
    assert found["slice after"] == pytest.approx(after[hidden].mean())
    assert found["overall change"] == pytest.approx(after.mean() - before.mean())
    assert found["worst after"] == pytest.approx(min(after[group].mean() for group in groups))
    assert found["training mix after"] == pytest.approx(
        sum(share * after[group].mean() for share, group in zip(shares, groups, strict=True))
    )


def test_measured__balance_raises_the_slice(shop):
    plain, _ = shop.measured("plain", PlainRepairer().select(shop.given.slices, shop.material))
    balanced, _ = shop.measured(
        "slice-balanced", SliceBalancedRepairer().select(shop.given.slices, shop.material)
    )
    gain = (
        accuracies(balanced, shop.case)["slice after"] - accuracies(plain, shop.case)["slice after"]
    )
    assert gain > 0.1
