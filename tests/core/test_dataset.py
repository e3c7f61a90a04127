import numpy as np
import pytest

from weakspot.core.dataset import SPLIT_ORDER, Split, Task, dataset_from_columns
from weakspot.core.errors import DataError


@pytest.fixture
def single():
    return dataset_from_columns(
        class_names=["cat", "dog"],
        labels=[0, 1, -1, 1],
        splits=["train", "test", "pool", "validation"],
        sample_ids=["a", "b", "c", "d"],
        locations=["a.png", None, "c.png", "d.png"],
        metadata={"colour": ["red", "blue", None, "red"], "age": [1, 2, 3, 4]},
    )


@pytest.fixture
def multi():
    return dataset_from_columns(class_names=["cat", "dog", "owl"], label_lists=[[0, 2], [], None, [1]])


def test_dataset__single_label_columns(single):
    assert (len(single), single.n_classes, single.task) == (4, 2, Task.SINGLE_LABEL)
    assert single.labels.tolist() == [0, 1, -1, 1]
    assert single.is_labelled.tolist() == [True, True, False, True]
    assert single.label_matrix.tolist() == [[True, False], [False, True], [False, False], [False, True]]


def test_dataset__multi_label_columns(multi):
    assert multi.task is Task.MULTI_LABEL
    assert multi.label_matrix.tolist() == [[True, False, True], [False, False, False], [False, False, False], [False, True, False]]
    # A sample with an empty list is known to have no label; one with null is unlabelled.
    assert multi.is_labelled.tolist() == [True, True, False, True]
    with pytest.raises(DataError, match="label_matrix"):
        _ = multi.labels


def test_rows_of__splits_in_order_of_rows(single):
    assert single.rows_of(Split.TRAIN).tolist() == [0]
    assert single.rows_of(Split.VALIDATION, Split.TEST).tolist() == [1, 3]
    assert [SPLIT_ORDER[code] for code in single.splits] == ["train", "test", "pool", "validation"]


def test_dataset__ids_hashes_and_locations(single):
    assert single.sample_ids() == ["a", "b", "c", "d"]
    assert single.sample_ids(np.array([3, 0])) == ["d", "a"]
    assert single.content_hashes(np.array([1])) == ["b"]
    assert single.locations() == ["a.png", None, "c.png", "d.png"]
    assert single.locations(np.array([1, 2])) == [None, "c.png"]
    assert single.has_pictures


def test_dataset__without_pictures(multi):
    assert not multi.has_pictures
    assert len(set(multi.sample_ids())) == 4


def test_metadata__by_name(single):
    assert single.metadata_names == ("colour", "age")
    assert single.metadata("colour").to_pylist() == ["red", "blue", None, "red"]
    with pytest.raises(DataError, match=r"no metadata column 'size'.*'colour', 'age'"):
        single.metadata("size")


def test_class_code__by_name(single):
    assert single.class_code("dog") == 1
    with pytest.raises(DataError, match=r"no class 'owl'.*'cat', 'dog'"):
        single.class_code("owl")


def test_with_outcomes__replaces_all_of_them(single):
    assert not single.has_outcomes
    first = single.with_outcomes(predictions=np.array([0, 0, 0, 0]))
    second = first.with_outcomes(probabilities=np.full((4, 2), 0.5, dtype=np.float32))
    assert first.has_outcomes
    assert second.predictions is None
    assert not single.has_outcomes


def test_dataset_from_columns__exactly_one_kind_of_labels():
    for arguments in ({}, {"labels": [0], "label_lists": [[0]]}):
        with pytest.raises(DataError, match="either labels"):
            dataset_from_columns(class_names=["cat"], **arguments)


def test_dataset_from_columns__no_samples():
    empty = dataset_from_columns(class_names=["cat"], labels=[])
    assert len(empty) == 0
    assert empty.label_matrix.shape == (0, 1)
    assert empty.rows_of(Split.TEST).tolist() == []
