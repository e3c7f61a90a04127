import numpy as np
import pytest

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.errors import ConfigError, DataError, NotEnoughDataError
from weakspot.core.evidence import Share
from weakspot.core.heads import TrainingSelection
from weakspot.core.slices import DataUse
from weakspot.repair.collective import (
    RepairSet,
    applied,
    family_figures,
    over_models,
    pooled,
)

USE = DataUse(name="test samples", n_samples=8, digest="t")


def _dataset(ids):
    return dataset_from_columns(
        class_names=["apple", "pear"], labels=[0] * len(ids), sample_ids=ids
    )


def _set(ids, weights, group_objectives=()):
    return RepairSet(
        sample_ids=tuple(ids),
        weights=np.array(weights, dtype=np.float64),
        note="Chosen.",
        group_objectives=group_objectives,
    )


def _bits(text):
    return np.array([letter == "1" for letter in text])


def test_repair_set__of_a_selection_by_sample_id():
    selection = TrainingSelection(
        rows=np.array([0, 2]), weights=np.array([0.5, 1.5]), note="Chosen."
    )
    found = RepairSet.of(selection, _dataset(["a", "b", "c"]))
    assert found.sample_ids == ("a", "c")
    assert found.weights.tolist() == [0.5, 1.5]
    assert found.note == "Chosen."


def test_pooled__samples_chosen_for_more_models_count_more():
    found = pooled([_set("ab", [1.5, 0.5]), _set("bc", [1.0, 1.0])])
    assert found.sample_ids == ("a", "b", "c")
    assert found.weights == pytest.approx([9 / 8, 9 / 8, 6 / 8])
    assert found.weights.mean() == pytest.approx(1.0)
    assert (
        found.note
        == "One set for 2 models: 3 samples, 1 of them chosen for every model; weights are averaged."
    )


def test_pooled__contests_have_no_mean():
    group_objective = (np.array([0]), np.array([1]))
    with pytest.raises(ConfigError, match="cannot be pooled"):
        pooled([_set("ab", [1.0, 1.0], (group_objective,)), _set("ab", [1.0, 1.0])])


def test_pooled__nothing_in_any_set():
    with pytest.raises(NotEnoughDataError, match="No model has anything"):
        pooled([_set("", []), _set("", [])])


def test_applied__rows_of_another_model_in_their_order():
    dataset = _dataset(["x", "c", "a", "b"])
    found = applied(_set("abc", [0.6, 0.9, 1.5]), dataset, np.arange(4))
    assert found.rows.tolist() == [1, 2, 3]
    assert found.weights == pytest.approx([1.5, 0.6, 0.9])
    assert found.note == "Chosen."


def test_applied__contests_follow_their_samples():
    group_objectives = ((np.array([0, 3]), np.array([1])), (np.array([2]),))
    repair_set = _set("abcd", [1.0, 1.0, 1.0, 1.0], group_objectives)
    found = applied(repair_set, _dataset(["d", "b", "a"]), np.arange(3))
    assert found.rows.tolist() == [0, 1, 2]
    assert [
        [group.tolist() for group in group_objective] for group_objective in found.group_objectives
    ] == [[[0, 2], [1]]]


@pytest.mark.parametrize("ids", [["x", "y"], []])
def test_applied__no_sample_in_common(ids):
    with pytest.raises(NotEnoughDataError, match="None of the samples"):
        applied(_set("ab", [1.0, 1.0]), _dataset(ids), np.arange(len(ids)))


def test_family_figures__counted_by_hand():
    predictions = {
        "before": _bits("11110000"),
        "individual": _bits("11101110"),
        "collective": _bits("11111100"),
        "random": _bits("11110001"),
    }
    found = family_figures(USE, **predictions)
    counts = [getattr(found, name).count for name in predictions]
    assert counts == [4, 6, 6, 5]
    assert found.resolved_individual == Share.of(3, 4)
    assert found.resolved_collective == Share.of(2, 4)
    assert found.resolved_random == Share.of(1, 4)
    assert found.clean_individual == Share.of(3, 4)
    assert found.clean_collective == Share.of(4, 4)
    assert found.shared == Share.of(2, 3)
    assert found.shared_random == Share.of(0, 3)
    assert found.relative_accuracy == 1.0
    assert found.p_value == pytest.approx(0.5)
    assert found.p_against_random == pytest.approx(1.0)


def test_family_figures__nothing_right_has_no_relative_accuracy():
    nothing = np.zeros(3, dtype=np.bool_)
    found = family_figures(
        USE, before=nothing, individual=nothing, collective=nothing, random=nothing
    )
    assert found.relative_accuracy is None
    assert (found.shared.count, found.shared.total) == (0, 0)


def test_family_figures__other_samples_are_refused():
    three, two = np.ones(3, dtype=np.bool_), np.ones(2, dtype=np.bool_)
    with pytest.raises(DataError, match="same samples"):
        family_figures(USE, before=three, individual=three, collective=two, random=three)


def test_over_models__counts_add_up():
    assert over_models([Share.of(3, 4), Share.of(1, 6)]) == Share.of(4, 10)
    assert over_models([]) == Share.of(0, 0)


def test_family_figures__objects_seen_several_times_count_once():
    before, after = np.repeat(_bits("11110000"), 5), np.repeat(_bits("11111111"), 5)
    told, images = (
        family_figures(
            USE,
            before=before,
            individual=after,
            collective=after,
            random=before,
            groups=groups,
        )
        for groups in (np.repeat(np.arange(8), 5), None)
    )
    assert told.p_value == told.p_against_random == pytest.approx(0.125)
    assert images.p_value < 1e-4
