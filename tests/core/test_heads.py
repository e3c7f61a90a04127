import numpy as np
import pytest
from tests import build

from weakspot.core.dataset import Task, dataset_from_columns
from weakspot.core.errors import ConfigError, DataError, ModelError, NotEnoughDataError
from weakspot.core.failures import Side
from weakspot.core.heads import (
    Head,
    RepairMaterial,
    balanced_weights,
    class_balanced_weights,
    class_groups,
    class_parts,
    cut_by_slices,
    in_slices,
    occurring_classes,
    positions_by,
    value_groups,
    with_mean_one,
)
from weakspot.core.rules import IdRule
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse, FailureSlice, SliceName


def test_probabilities__softmax_by_hand():
    head = Head(
        weights=np.array([[1.0, 0.0], [0.0, 2.0]], dtype=np.float32),
        bias=np.array([0.0, np.log(2)], dtype=np.float32),
    )
    features = np.array([[0.0, 0.0], [np.log(2), 0.0]], dtype=np.float32)
    np.testing.assert_allclose(
        head.logits(features), [[0, np.log(2)], [np.log(2), np.log(2)]], atol=1e-6
    )
    np.testing.assert_allclose(
        head.probabilities(features), [[1 / 3, 2 / 3], [0.5, 0.5]], atol=1e-6
    )


def test_probabilities__one_sigmoid_a_label():
    head = Head(
        weights=np.eye(2, dtype=np.float32),
        bias=np.zeros(2, dtype=np.float32),
        task=Task.MULTI_LABEL,
    )
    found = head.probabilities(np.array([[np.log(3), -np.log(4)]], dtype=np.float32))
    np.testing.assert_allclose(found, [[0.75, 0.2]], atol=1e-6)


@pytest.mark.parametrize("task", list(Task))
def test_probabilities__huge_logits_stay_finite(task):
    head = Head(
        weights=np.array([[1e6], [-1e6]], dtype=np.float32),
        bias=np.zeros(2, dtype=np.float32),
        task=task,
    )
    np.testing.assert_allclose(
        head.probabilities(np.array([[1.0]], dtype=np.float32)), [[1.0, 0.0]], atol=1e-6
    )


def test_cooled__divides_logits_and_predicts_the_same():
    head = Head(
        weights=np.array([[3.0], [1.0]], dtype=np.float32),
        bias=np.array([0.0, 1.0], dtype=np.float32),
    )
    cooled = head.cooled(2.0)
    np.testing.assert_allclose(cooled.logits(np.array([[2.0]], dtype=np.float32)), [[3.0, 1.5]])
    np.testing.assert_allclose(
        cooled.probabilities(np.array([[2.0]], dtype=np.float32)),
        [[0.8175745, 0.1824255]],
        atol=1e-6,
    )
    assert cooled.weights.dtype == np.float32


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan")])
def test_cooled__refuses_temperatures_that_are_none(temperature):
    head = Head(weights=np.zeros((2, 1), dtype=np.float32), bias=np.zeros(2, dtype=np.float32))
    with pytest.raises(ConfigError, match="must be positive"):
        head.cooled(temperature)


def test_reordered__cases():
    names = ("apple", "pear")
    head = Head(
        weights=np.array([[1.0], [2.0]], dtype=np.float32),
        bias=np.array([0.5, -0.5], dtype=np.float32),
    )
    assert head.reordered(names, None) is head
    assert head.reordered(names, list(names)) is head
    turned = head.reordered(names, ["pear", "apple"])
    assert (turned.weights.tolist(), turned.bias.tolist()) == ([[2.0], [1.0]], [-0.5, 0.5])
    with pytest.raises(ModelError, match="same classes"):
        head.reordered(names, ["apple", "plum"])


def test_moved__a_share_of_the_way():
    old = Head(weights=np.zeros((2, 2), np.float32), bias=np.array([1, 0], np.float32))
    new = Head(weights=np.full((2, 2), 4, np.float32), bias=np.array([0, 1], np.float32))
    part = old.moved(new, 0.25)
    np.testing.assert_array_equal(part.weights, np.ones((2, 2)))
    np.testing.assert_array_equal(part.bias, [0.75, 0.25])


USE = DataUse(name="given", n_samples=0, digest="0" * 32)


def _slice(ids, class_name="cat", contrast="", side=None):
    names = (
        (SliceName(phrase=contrast, contrast=contrast, score=1.0, describer="hand"),)
        if contrast
        else ()
    )
    rule = IdRule(sample_ids=tuple(f"s{number}" for number in ids))
    return FailureSlice(
        class_name=class_name, side=side, rule=rule, method="hand", found_on=USE, names=names
    )


@pytest.fixture
def animals():
    """Cats are rows 0 to 3, dogs 4 and 5, row 6 has no label; nobody is a fox."""
    return build.samples(
        [0, 0, 0, 0, 1, 1, -1],
        class_names=["cat", "dog", "fox"],
        sample_ids=[f"s{number}" for number in range(7)],
        metadata={
            "place": ["grass", "grass", "sand", None, "sand", "sand", "grass"],
            "length": [1.0, float("nan"), 1.0, 2.0, 2.0, 2.0, 2.0],
            "nothing": [None] * 7,
        },
        rows=np.arange(7),
        name="training",
    )


def test_labelled__leaves_out_training_rows_without_a_label(animals):
    assert RepairMaterial(training=animals).labelled.tolist() == [0, 1, 2, 3, 4, 5]
    assert RepairMaterial(training=animals.only(np.array([5, 6]))).labelled.tolist() == [5]


def test_class_parts__earlier_slices_take_their_members_first(animals):
    (cats,) = class_parts([_slice([0, 1, 4, 6]), _slice([1, 2])], animals)
    assert [rows.tolist() for rows in cats.inside] == [[0, 1], [2]]
    assert cats.outside.tolist() == [3]
    assert cats.n_members == (2, 2)
    assert [rows.tolist() for rows in cats.groups] == [[0, 1], [2], [3]]


def test_class_parts__one_entry_a_class_and_side(animals):
    parts = list(class_parts([_slice([0]), _slice([4], "dog"), _slice([3])], animals))
    assert [part.class_name for part in parts] == ["cat", "dog"]
    assert [len(part.slices) for part in parts] == [2, 1]
    assert list(class_parts([], animals)) == []


def test_cut_by_slices__says_which_slices_nothing_can_be_done_for(animals):
    slices = [
        _slice([0], contrast="wet"),
        _slice([], contrast="blue"),
        _slice([0], contrast="soaked"),
        _slice([4, 5], "dog", contrast="old"),
        _slice([0], "fox", contrast="red"),
    ]
    parts, remark = cut_by_slices(slices, animals)
    assert [part.class_name for part in parts] == ["cat", "dog", "fox"]
    assert remark == (
        " No training sample is a member of “cat: blue”; add samples from a pool or generated ones."
        " Every training member of “cat: soaked” is in an earlier slice of “cat”, and counts there."
        " All 2 training samples of “dog” are members of “dog: old”: nothing to balance it against."
        " No training sample belongs to “fox”, the class of “fox: red”; add samples from a pool or generated ones."
    )


def test_cut_by_slices__no_member_at_all_is_refused_with_advice(animals):
    with pytest.raises(
        NotEnoughDataError, match="No training sample is a member of any slice"
    ) as caught:
        cut_by_slices([_slice([], contrast="blue"), _slice([1], "fox", contrast="red")], animals)
    assert "“cat: blue”, “fox: red”" in str(caught.value)
    assert "pool" in str(caught.value)
    assert cut_by_slices([], animals) == ((), "")


def test_cut_by_slices__unknown_class_is_refused(animals):
    with pytest.raises(DataError, match="no class 'cow'"):
        cut_by_slices([_slice([0], "cow")], animals)


def test_cut_by_slices__side_that_lacks_the_label():
    dataset = dataset_from_columns(
        class_names=["cat"], label_lists=[[0], [0]], sample_ids=["s0", "s1"]
    )
    samples = SampleSet(dataset=dataset, rows=np.arange(2))
    _, remark = cut_by_slices(
        [_slice([0], side=Side.PRESENT), _slice([1], side=Side.ABSENT)], samples
    )
    assert "No training sample belongs to “no cat”" in remark


def test_in_slices__every_row_once():
    dataset = dataset_from_columns(
        class_names=["cat", "dog"], label_lists=[[0, 1], [1], []], sample_ids=["s0", "s1", "s2"]
    )
    samples = SampleSet(dataset=dataset, rows=np.arange(3))
    slices = [_slice([0, 2], side=Side.PRESENT), _slice([0, 1], "dog", side=Side.PRESENT)]
    assert in_slices(list(class_parts(slices, samples))).tolist() == [0, 1]
    assert in_slices([]).tolist() == []


def test_class_groups__labels_and_sets_of_labels(animals):
    codes, names = class_groups(animals.dataset, np.array([5, 0]))
    assert codes.tolist() == [1, 0]
    assert names == ("cat", "dog", "fox")
    several = dataset_from_columns(
        class_names=["cat", "dog"], label_lists=[[0, 1], [], [0], [1, 0]]
    )
    codes, names = class_groups(several, np.arange(4))
    assert [names[code] for code in codes] == ["cat and dog", "no label", "cat", "cat and dog"]


def test_occurring_classes__by_label_and_by_set(animals):
    assert occurring_classes(animals.dataset, np.arange(6)).tolist() == [True, True, False]
    assert occurring_classes(animals.dataset, np.zeros(0, dtype=np.int64)).tolist() == [False] * 3
    several = dataset_from_columns(class_names=["cat", "dog"], label_lists=[[], [1]])
    assert occurring_classes(several, np.arange(2)).tolist() == [False, True]


def test_value_groups__class_and_value(animals):
    codes, names = value_groups(animals.dataset, np.arange(6), "place")
    assert [names[code] if code >= 0 else None for code in codes] == [
        "cat, place grass",
        "cat, place grass",
        "cat, place sand",
        None,
        "dog, place sand",
        "dog, place sand",
    ]


def test_value_groups__numbers_that_are_none(animals):
    codes, names = value_groups(animals.dataset, np.arange(6), "length")
    assert codes.tolist().index(-1) == 1
    assert set(names) == {"cat, length 1.0", "cat, length 2.0", "dog, length 2.0"}


def test_value_groups__columns_without_use(animals):
    with pytest.raises(NotEnoughDataError, match="'colour'.*place"):
        value_groups(animals.dataset, np.arange(6), "colour")
    with pytest.raises(NotEnoughDataError, match="says nothing"):
        value_groups(animals.dataset, np.arange(6), "nothing")
    many = dataset_from_columns(
        class_names=["cat"], labels=[0] * 101, metadata={"number": np.arange(101)}
    )
    with pytest.raises(DataError, match="too many values"):
        value_groups(many, np.arange(101), "number")
    assert value_groups(many, np.arange(100), "number")[0].tolist() == list(range(100))
    bare = dataset_from_columns(class_names=["cat"], labels=[0])
    with pytest.raises(NotEnoughDataError, match="Give the data a column"):
        value_groups(bare, np.arange(1), "place")


def test_positions_by__nothing():
    assert positions_by(np.array([-1, -1])) == {}
    assert positions_by(np.zeros(0, dtype=np.int64)) == {}


def test_class_balanced_weights__every_class_weighs_the_same(animals):
    # Six samples, two classes that occur: three for the four cats, three for the two dogs.
    weights = class_balanced_weights(animals.dataset, np.arange(6))
    assert weights == pytest.approx([0.75] * 4 + [1.5] * 2)
    assert len(class_balanced_weights(animals.dataset, np.zeros(0, dtype=np.int64))) == 0


def test_class_balanced_weights__several_labels_share_a_sample():
    dataset = dataset_from_columns(
        class_names=["cat", "dog", "fox"], label_lists=[[0], [0], [0, 1], []]
    )
    weights = class_balanced_weights(dataset, np.arange(4))
    # Cats count 2.5 samples, dogs 0.5, none 1; of four samples each gets 4/3: 8/15 a cat, 8/3 a dog, 4/3 without label.
    assert weights == pytest.approx([8 / 15, 8 / 15, (8 / 15 + 8 / 3) / 2, 4 / 3])
    assert weights.mean() == pytest.approx(1.0)


def test_balanced_weights__parts_of_a_partition_weigh_the_same():
    weights = balanced_weights(np.ones(6), [[np.array([0]), np.array([1, 2, 3])]])
    assert weights == pytest.approx([2.0, 2 / 3, 2 / 3, 2 / 3, 1.0, 1.0])
    assert balanced_weights(np.ones(3), []) == pytest.approx([1.0] * 3)
    assert balanced_weights(np.ones(3), [[]]) == pytest.approx([1.0] * 3)


def test_balanced_weights__a_position_in_two_partitions_is_not_counted_twice():
    """Both partitions ask for the same two positions: they get half of the weight, not three quarters."""
    parts = [np.array([0, 1]), np.arange(2, 10)]
    once, twice = (balanced_weights(np.ones(10), [parts] * times) for times in (1, 2))
    assert twice == pytest.approx(once)
    assert once == pytest.approx([2.5] * 2 + [0.625] * 8)


def test_balanced_weights__crossing_partitions_are_all_balanced():
    first = [np.array([0, 1, 2]), np.array([3, 4, 5, 6, 7, 8])]
    second = [np.array([0, 3]), np.array([1, 2, 4, 5, 9, 10])]
    weights = balanced_weights(np.ones(12), [first, second])
    assert weights[first[0]].sum() == pytest.approx(weights[first[1]].sum(), rel=1e-5)
    assert weights[second[0]].sum() == pytest.approx(weights[second[1]].sum(), rel=1e-5)
    assert weights.mean() == pytest.approx(1.0)


def test_balanced_weights__demands_that_cannot_be_met_stay_finite():
    # The first asks that 0 weighs as much as 1, the second that it weighs as much as 1 and 2, the third as much as 2.
    demands = [
        [np.array([0]), np.array([1])],
        [np.array([0]), np.array([1, 2])],
        [np.array([0]), np.array([2])],
    ]
    weights = balanced_weights(np.ones(4), demands)
    assert np.isfinite(weights).all()
    assert (weights > 0).all()
    assert weights.mean() == pytest.approx(1.0)


def test_with_mean_one__keeps_proportions():
    assert with_mean_one(np.array([1.0, 3.0])).tolist() == [0.5, 1.5]
    assert with_mean_one(np.zeros(2)).tolist() == [0.0, 0.0]
