import numpy as np
import pyarrow as pa
import pytest

from weakspot.core.dataset import (
    SPLIT_ORDER,
    Split,
    Task,
    dataset_from_columns,
    group_codes,
    identities,
    several_to_a_group,
)
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
    return dataset_from_columns(
        class_names=["cat", "dog", "owl"], label_lists=[[0, 2], [], None, [1]]
    )


def test_dataset__single_label_columns(single):
    assert (len(single), single.n_classes, single.task) == (4, 2, Task.SINGLE_LABEL)
    assert single.labels.tolist() == [0, 1, -1, 1]
    assert single.is_labelled.tolist() == [True, True, False, True]
    assert single.label_matrix.tolist() == [
        [True, False],
        [False, True],
        [False, False],
        [False, True],
    ]


def test_dataset__multi_label_columns(multi):
    assert multi.task is Task.MULTI_LABEL
    assert multi.label_matrix.tolist() == [
        [True, False, True],
        [False, False, False],
        [False, False, False],
        [False, True, False],
    ]
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
    assert single.has_images


def test_dataset__without_images(multi):
    assert not multi.has_images
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


def test_with_predictions__replaces_all_of_them(single):
    assert not single.has_predictions
    first = single.with_predictions(predictions=np.array([0, 0, 0, 0]))
    second = first.with_predictions(probabilities=np.full((4, 2), 0.5, dtype=np.float32))
    assert first.has_predictions
    assert second.predictions is None
    assert not single.has_predictions


def test_dataset_from_columns__exactly_one_kind_of_labels():
    for arguments in ({}, {"labels": [0], "label_lists": [[0]]}):
        with pytest.raises(DataError, match="either labels"):
            dataset_from_columns(class_names=["cat"], **arguments)


def test_dataset_from_columns__no_samples():
    empty = dataset_from_columns(class_names=["cat"], labels=[])
    assert len(empty) == 0
    assert empty.label_matrix.shape == (0, 1)
    assert empty.rows_of(Split.TEST).tolist() == []


def test_with_labels__single_label(single):
    changed = single.with_labels(np.array([2, 0]), np.array([1, -1]))
    assert changed.labels.tolist() == [-1, 1, 1, 1]
    assert changed.is_labelled.tolist() == [False, True, True, True]
    assert single.labels.tolist() == [0, 1, -1, 1]
    assert changed.table.schema == single.table.schema
    assert single.with_labels(np.array([], dtype=np.int64), []).labels.tolist() == [0, 1, -1, 1]


def test_with_labels__multi_label(multi):
    changed = multi.with_labels(np.array([0, 2, 3]), [None, [0, 2], []])
    assert changed.is_labelled.tolist() == [False, True, True, True]
    assert changed.label_matrix.tolist() == [
        [False] * 3,
        [False] * 3,
        [True, False, True],
        [False] * 3,
    ]
    assert multi.is_labelled.tolist() == [True, True, False, True]


def test_with_labels__keeps_predictions(single):
    known = single.with_predictions(predictions=np.array([0, 0, 1, 1]))
    assert known.with_labels(np.array([2]), [1]).predictions.tolist() == [0, 0, 1, 1]


def test_with_labels__refuses_what_is_no_label(single, multi):
    with pytest.raises(DataError, match="one label a row"):
        single.with_labels(np.array([1, 2]), [0])
    with pytest.raises(DataError, match="no row twice"):
        single.with_labels(np.array([1, 1]), [0, 1])
    for bad in (2, -2):
        with pytest.raises(DataError, match="no class code"):
            single.with_labels(np.array([2]), [bad])
    with pytest.raises(DataError, match="no class code"):
        multi.with_labels(np.array([2]), [[0, -1]])


def _two(first=None, second=None, **changes):
    own = {
        "class_names": ["cat", "dog"],
        "labels": [0, 1],
        "splits": ["train", "test"],
        "sample_ids": ["a", "b"],
        **(first or {}),
    }
    other = {
        "class_names": ["cat", "dog"],
        "labels": [1],
        "splits": ["synthetic"],
        "sample_ids": ["c"],
        **(second or {}),
        **changes,
    }
    return dataset_from_columns(**own), dataset_from_columns(**other)


def test_joined__rows_of_the_first_come_first_and_stay_as_they_are():
    probabilities = np.array([[0.9, 0.1], [0.3, 0.7]], dtype=np.float32)
    predictions = np.array([0, 1])
    first, second = _two(
        {"probabilities": probabilities, "predictions": predictions},
        {"probabilities": np.array([[0.2, 0.8]], dtype=np.float32), "predictions": np.array([1])},
    )
    both = first.joined(second)
    assert both.sample_ids() == ["a", "b", "c"]
    assert both.labels.tolist() == [0, 1, 1]
    assert both.rows_of(Split.SYNTHETIC).tolist() == [2]
    assert both.predictions.tolist() == [0, 1, 1]
    assert np.array_equal(both.probabilities[:2], probabilities)
    assert both.probabilities.dtype == np.float32
    assert len(first) == 2


def test_joined__predictions_that_one_lacks_are_unknown():
    first, second = _two(
        {"probabilities": np.full((2, 2), 0.5, dtype=np.float32), "predictions": np.array([0, 1])}
    )
    both = first.joined(second)
    assert both.predictions.tolist() == [0, 1, -1]
    assert np.isnan(both.probabilities[2]).all()
    assert second.joined(first).predictions.tolist() == [-1, 0, 1]
    assert not _two()[0].joined(second).has_predictions


def test_joined__free_columns_keep_the_types_of_the_first():
    first, second = _two(
        {"metadata": {"size": [1, 2], "wet": [True, False], "note": ["x", "y"]}},
        {"metadata": {"size": ["large"], "wet": [True], "note": [7], "prompt": ["a dog"]}},
    )
    both = first.joined(second)
    assert both.metadata("size").to_pylist() == [1, 2, None]
    assert both.metadata("wet").to_pylist() == [True, False, True]
    assert both.metadata("note").to_pylist() == ["x", "y", "7"]
    assert both.metadata("prompt").to_pylist() == [None, None, "a dog"]


def test_joined__several_labels():
    first = dataset_from_columns(
        class_names=["cat", "dog"], label_lists=[[0, 1], None], sample_ids=["a", "b"]
    )
    second = dataset_from_columns(
        class_names=["cat", "dog"], label_lists=[[1]], sample_ids=["c"], splits=["synthetic"]
    )
    both = first.joined(second)
    assert both.label_matrix.tolist() == [[True, True], [False, False], [False, True]]
    assert both.is_labelled.tolist() == [True, False, True]


def test_joined__other_classes_and_repeated_samples_are_refused():
    first, second = _two(class_names=["dog", "cat"])
    with pytest.raises(DataError, match="same classes"):
        first.joined(second)
    with pytest.raises(DataError, match="1 samples are in both"):
        first.joined(_two(sample_ids=["b"])[1])


def _codes(hashes, groups=None):
    named = None if groups is None else pa.chunked_array([pa.array(groups, pa.string())])
    return group_codes(pa.chunked_array([pa.array(hashes, pa.string())]), named).tolist()


@pytest.mark.parametrize(
    ("hashes", "groups", "codes"),
    [
        ("abac", None, [0, 1, 0, 2]),  # without names contents are groups
        ("abac", [None] * 4, [0, 1, 0, 2]),
        ("abcd", ["x", None, "x", None], [0, 1, 0, 2]),  # nobody's group is a sample's own
        ("abbcd", ["x", "x", "y", "y", None], [0, 0, 0, 0, 1]),  # copies join groups
        ("abbccd", ["x", "x", "y", "y", "z", "z"], [0] * 6),
        ("", [], []),
    ],
)
def test_group_codes__groups_joined_by_copies(hashes, groups, codes):
    assert _codes(list(hashes), groups) == codes


def test_several_to_a_group__none_if_all_are_single():
    assert several_to_a_group(np.array([5, 9, 2])) is None
    assert several_to_a_group(np.array([5, 9, 5])).tolist() == [0, 1, 0]


def test_dataset_groups__from_the_column_and_from_contents():
    columns = {"class_names": ["a"], "labels": [0, 0, 0], "content_hashes": ["p", "q", "q"]}
    assert dataset_from_columns(**columns).groups.tolist() == [0, 1, 1]
    dataset = dataset_from_columns(**columns, groups=["x", None, "x"])
    assert dataset.groups.tolist() == [0, 0, 0]
    assert dataset.with_groups([None, None, None]).groups.tolist() == [0, 1, 1]
    assert dataset.with_groups(["u", None, None]).groups.tolist() == [0, 1, 1]


def _dataset(places, predictions):
    return dataset_from_columns(
        class_names=["a", "b"],
        labels=[0, 0],
        sample_ids=["one", "two"],
        content_hashes=[f"hash {number} {said}" for number, said in enumerate(predictions)],
        locations=places,
        predictions=np.array(predictions),
    )


def test_identities__image__is_its_content():
    dataset = _dataset(["1.png", "2.png"], [0, 1])
    assert identities(dataset, np.array([1, 0])) == ["hash 1 1", "hash 0 0"]


def test_identities__no_image__is_its_key_whatever_was_predicted():
    first, second = (_dataset([None, "2.png"], [said, 0]) for said in (0, 1))
    rows = np.arange(2)
    assert identities(first, rows)[0] == identities(second, rows)[0]
    assert identities(first, rows)[0] != identities(first, rows)[1] == "hash 1 0"
