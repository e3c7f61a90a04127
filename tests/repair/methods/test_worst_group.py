import numpy as np
import pytest

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.errors import ConfigError, NotEnoughDataError
from weakspot.core.failures import Side
from weakspot.core.heads import RepairMaterial
from weakspot.core.samples import SampleSet
from weakspot.repair.strategies.groups import (
    GroupDroRepairer,
    WorstClassRepairer,
    WorstSliceRepairer,
)


def _group_objectives(selection):
    return [
        [group.tolist() for group in group_objective]
        for group_objective in selection.group_objectives
    ]


def _samples(**columns):
    dataset = dataset_from_columns(class_names=["apple", "pear"], **columns)
    return RepairMaterial(training=SampleSet(dataset=dataset, rows=np.arange(len(dataset))))


def test_worst_slice__one_contest_a_class_over_its_parts(training, make_slice):
    chosen = WorstSliceRepairer().select(
        [make_slice(), make_slice("wet")], RepairMaterial(training=training)
    )
    assert chosen.rows.tolist() == list(range(12))
    assert chosen.weights.tolist() == [1.0] * 12
    assert _group_objectives(chosen) == [[[0, 1], [6, 7], [2, 3, 4, 5]]]
    assert "1 group objectives among 3 parts." in chosen.note


def test_worst_slice__multi_label_rows_join_the_first_contest_that_wants_them(make_slice):
    given = _samples(
        label_lists=[[0, 1], [0], [1], [1], [0, 1]],
        metadata={"green": [True, False, True, False, False]},
    )
    slices = [make_slice(side=Side.PRESENT), make_slice(class_name="pear", side=Side.PRESENT)]
    assert _group_objectives(WorstSliceRepairer().select(slices, given)) == [
        [[0], [1, 4]],
        [[2], [3]],
    ]


def test_worst_slice__says_whose_samples_are_taken(make_slice):
    given = _samples(label_lists=[[0, 1], [0], [0, 1]], metadata={"green": [True, False, False]})
    slices = [make_slice(side=Side.PRESENT), make_slice(class_name="pear", side=Side.PRESENT)]
    chosen = WorstSliceRepairer().select(slices, given)
    assert _group_objectives(chosen) == [[[0], [1, 2]]]
    assert (
        "The samples of “pear” are in the group objectives of other labels already." in chosen.note
    )


def test_worst_class__one_contest_over_all_classes(training, make_slice):
    chosen = WorstClassRepairer().select([make_slice()], RepairMaterial(training=training))
    assert _group_objectives(chosen) == [[list(range(8)), [8, 9, 10, 11]]]
    assert chosen.note == "Only the class with the largest loss counts: 2 classes."


def test_worst_class__missing_classes():
    given = _samples(labels=[0, 0, -1])
    with pytest.raises(NotEnoughDataError, match="Fewer than two classes"):
        WorstClassRepairer().select([], given)
    dataset = dataset_from_columns(class_names=["apple", "pear", "fig"], labels=[0, 2])
    chosen = WorstClassRepairer().select(
        [], RepairMaterial(training=SampleSet(dataset=dataset, rows=np.arange(2)))
    )
    assert "No training sample has the label “pear”." in chosen.note


def test_worst_class__sets_of_labels():
    chosen = WorstClassRepairer().select([], _samples(label_lists=[[0, 1], [0], [], [1, 0]]))
    assert sorted(_group_objectives(chosen)[0]) == [[0, 3], [1], [2]]


def test_group_dro__class_and_value(make_slice):
    given = _samples(
        labels=[0, 0, 0, 1, 1, 1],
        metadata={"place": ["sand", "grass", "sand", "sand", None, "sand"]},
    )
    chosen = GroupDroRepairer(column="place").select([make_slice()], given)
    assert sorted(_group_objectives(chosen)[0]) == [[0, 2], [1], [3, 5]]
    assert chosen.weights.tolist() == [1.0] * 6
    assert chosen.rows.tolist() == list(range(6))
    assert (
        chosen.note
        == "Only the group with the largest loss counts: 3 groups by class and place. 1 samples are in no group."
    )


def test_group_dro__small_groups_take_no_part():
    given = _samples(
        labels=[0, 0, 0, 1, 1], metadata={"place": ["sand", "grass", "sand", "sand", "sand"]}
    )
    chosen = GroupDroRepairer(column="place", least=2).select([], given)
    assert sorted(_group_objectives(chosen)[0]) == [[0, 2], [3, 4]]
    assert "1 smaller groups take no part" in chosen.note
    with pytest.raises(NotEnoughDataError, match="at least 3"):
        GroupDroRepairer(column="place", least=3).select([], given)


def test_group_dro__columns_that_are_not_there():
    with pytest.raises(NotEnoughDataError, match="no metadata column 'place'"):
        GroupDroRepairer(column="place").select([], _samples(labels=[0, 1]))
    with pytest.raises(ConfigError, match="column"):
        GroupDroRepairer(column="")
    with pytest.raises(ConfigError, match="least"):
        GroupDroRepairer(column="place", least=0)
    with pytest.raises(TypeError):
        GroupDroRepairer()
