"""The samples of all classes side by side."""

import numpy as np

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.failures import FailureCriterion
from weakspot.verify.classes import ClassMaterial


def test_of__counts_samples_and_failures_of_every_class(make_material, birds):
    material = make_material(birds)
    assert material.sizes.tolist() == [52, 52, 52, 52]
    assert material.failures.tolist() == [48, 6, 8, 6]


def test_of__multi_label__a_sample_is_there_for_every_label_it_has():
    dataset = dataset_from_columns(
        class_names=["a", "b"],
        label_lists=[[0, 1], [1], []],
        predicted_matrix=np.array([[True, False], [False, True], [True, True]]),
    )
    material = ClassMaterial.of(dataset, np.arange(3), FailureCriterion())
    assert sorted(zip(material.rows.tolist(), material.codes.tolist(), strict=True)) == [
        (0, 0),
        (0, 1),
        (1, 1),
    ]
    assert material.predicted is None
    assert material.failures.tolist() == [0, 1]


def test_one_of_each_group__keeps_every_group_once(make_material):
    groups = [f"g{place // 3}" for place in range(12)]
    material = make_material({"a": {"a": 6}, "b": {"b": 6}}, groups=groups)
    single = material.one_of_each_group()
    assert len(single) == 4
    assert single.groups is None


def test_question__is_the_same_in_another_order_and_another_for_other_answers(make_material):
    first = make_material({"a": {"a": 5, "b": 3}, "b": {"b": 8}})
    ids = first.dataset.sample_ids()
    order = np.random.default_rng(0).permutation(len(ids))
    shuffled = dataset_from_columns(
        class_names=["b", "a"],
        labels=1 - first.dataset.labels[order],
        predictions=1 - first.dataset.predictions[order],
        sample_ids=[ids[place] for place in order],
    )
    same = ClassMaterial.of(shuffled, np.arange(len(ids)), FailureCriterion())
    assert same.question("whole", "a") == first.question("whole", "a")
    other = make_material({"a": {"a": 4, "b": 4}, "b": {"b": 8}})
    assert other.question("whole", "a") != first.question("whole", "a")
    assert first.question("whole", "a") != first.question("whole", "b")


def test_question__groups_matter(make_material):
    answers = {"a": {"a": 5, "b": 3}, "b": {"b": 8}}
    plain = make_material(answers)
    grouped = make_material(answers, groups=["x", "x", *[None] * 14])
    assert plain.question("whole", "a") != grouped.question("whole", "a")
