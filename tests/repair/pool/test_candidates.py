from dataclasses import replace

import numpy as np
import pytest

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.errors import NotEnoughDataError
from weakspot.core.samples import SampleSet
from weakspot.core.training_sets import RepairMaterial
from weakspot.repair.pool.candidates import by_id, open_pool


def test_open_pool__refuses_without_a_pool_or_a_budget(make_material):
    with pytest.raises(NotEnoughDataError, match="pool-margin needs a pool"):
        open_pool(make_material(pool=None), "pool-margin")
    empty = make_material()
    with pytest.raises(NotEnoughDataError, match="needs a pool"):
        open_pool(replace(empty, pool=empty.pool.only(empty.pool.rows[:0])), "pool-margin")
    with pytest.raises(NotEnoughDataError, match=r"Set \[repair\] budget"):
        open_pool(make_material(budget=0), "pool-margin")


def test_open_pool__hides_the_labels_of_the_pool_and_keeps_those_of_training(make_material):
    opened = open_pool(make_material(), "pool-margin")
    assert opened.samples.dataset.labels.tolist() == [0, 0, 1, 1, 2, 2, -1, -1, -1, -1, -1, -1, -1, -1]
    assert make_material().pool.dataset.labels.tolist()[6:] == [0, 0, 0, 1, 1, 0, 0, 0]


def test_open_pool__hides_label_lists_too():
    dataset = dataset_from_columns(class_names=["cat", "dog"], label_lists=[[0], [1], []], splits=["train", "pool", "pool"])
    samples = SampleSet(dataset=dataset, rows=np.array([0]))
    opened = open_pool(RepairMaterial(training=samples, pool=samples.only(np.array([1, 2])), budget=1), "pool-random")
    assert opened.samples.dataset.is_labelled.tolist() == [True, False, False]


def test_open_pool__every_picture_once_and_none_that_is_trained_on():
    dataset = dataset_from_columns(
        class_names=["cat", "dog"],
        labels=[0, -1, -1, 1, -1],
        splits=["train", "pool", "pool", "pool", "pool"],
        sample_ids=["t", "d", "c", "b", "a"],
        content_hashes=["one", "two", "one", "two", "three"],
    )
    samples = SampleSet(dataset=dataset, rows=np.array([0]))
    opened = open_pool(RepairMaterial(training=samples, pool=samples.only(np.array([1, 2, 3, 4])), budget=1), "pool-random")
    assert dataset.sample_ids(opened.rows) == ["a", "b"]


def test_by_id__does_not_depend_on_the_order_of_rows(make_material):
    material = make_material(order=[13, 3, 8, 6, 1, 0, 2, 4, 5, 7, 9, 10, 12, 11])
    rows = by_id(material.pool, material.pool.rows)
    assert material.pool.dataset.sample_ids(rows) == list("abcdefgh")


def test_candidates__whole_pool_or_only_slices(make_material, make_slice):
    opened = open_pool(make_material(budget=9), "pool-random")
    names = opened.samples.dataset.sample_ids
    assert names(opened.candidates([], "pool")) == list("abcdefgh")
    # Of the samples inside only d has plum among its two likeliest classes.
    assert names(opened.candidates([make_slice("plum")], "slices")) == ["d"]
    assert names(opened.candidates([make_slice("plum"), make_slice("apple", threshold=0.75)], "slices")) == ["a", "d", "e"]
    assert len(opened.candidates([], "slices")) == 0
    with pytest.raises(NotEnoughDataError, match="None of the 8 pool samples is inside a slice"):
        opened.candidates([make_slice(threshold=2.0)], "slices")
