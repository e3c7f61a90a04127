import pytest
from repair_results.arms import Workshop, training_methods
from repair_results.proving import GivenSlices
from repair_results.strategies import arm_figures, selecting, strategy_figures, words_figures

from weakspot.repair.bench import GROUP_METHODS
from weakspot.repair.controls import MATCHED_CONTROLS


@pytest.fixture(scope="module")
def shop(correlation, true_slices):
    return Workshop(case=correlation, given=true_slices, penalties=(0.01,))


@pytest.fixture(scope="module")
def figures(shop):
    return {
        one.arm: one for one in strategy_figures(shop, "world", with_controls=("slice-balanced",))
    }


def test_strategy_figures__every_strategy_reference_and_twin(figures):
    controls = {f"slice-balanced, {kind} matched control" for kind in MATCHED_CONTROLS}
    assert set(figures) == {"plain", *training_methods(), *GROUP_METHODS, *controls}
    assert all(one.values for one in figures.values()), [
        one.note for one in figures.values() if not one.values
    ]


def test_strategy_figures__the_slice_gains_more_than_its_twins(figures):
    gains = {arm: one.values["slice change"] for arm, one in figures.items()}
    assert gains["slice-balanced"] > gains["plain"] + 0.1
    assert all(
        gains["slice-balanced"] > gains[f"slice-balanced, {kind} matched control"] + 0.05
        for kind in MATCHED_CONTROLS
    )


def test_strategy_figures__group_labels_only_beside_the_truth(shop):
    found = GivenSlices(source="directions", slices=shop.given.slices, evidence=shop.given.evidence)
    other = Workshop(case=shop.case, given=found, penalties=(0.01,))
    assert not {one.arm for one in strategy_figures(other, "world", with_controls=())} & set(
        GROUP_METHODS
    )


def test_arm_figures__what_cannot_be_done_is_a_note(shop):
    found = arm_figures(shop, "world", "pool-random", selecting(shop, "pool-random"))
    assert found.values == {}
    assert "needs a pool" in found.note


def test_words_figures__class_names_alone_know_nothing_of_the_cue(shop):
    values = words_figures(shop, "world").values
    assert values["slice after"] > values["slice before"], (
        "the planted encoder of words was not trained on the cue"
    )
    assert 0.0 <= values["overall after"] <= 1.0
