import numpy as np
from tests.build import slice_of

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.heads import Head
from weakspot.core.samples import SampleSet
from weakspot.repair.bench import best_penalty, groups_of


def _head(weight):
    return Head(
        weights=np.array([[weight], [0.0]], dtype=np.float32), bias=np.zeros(2, dtype=np.float32)
    )


def test_groups_of__slices_rests_and_other_classes():
    dataset = dataset_from_columns(
        class_names=["apple", "pear", "plum"],
        labels=[0, 0, 0, 1, 1],
        metadata={"green": [True, False, False, True, False]},
    )
    groups = groups_of([slice_of("green")], SampleSet(dataset=dataset, rows=np.arange(5)))
    assert [np.flatnonzero(group).tolist() for group in groups] == [[0], [1, 2], [3, 4]]


def test_best_penalty__small_groups_count_as_much_as_large_ones():
    features = np.array([[1.0], [1.0], [1.0], [-1.0]], dtype=np.float32)
    labels = np.array([0, 0, 0, 0])
    groups = [np.array([True, True, True, False]), np.array([False, False, False, True])]
    always, never = _head(1.0), _head(-1.0)
    assert best_penalty({0.1: always, 0.2: never}, features, labels, groups) == 0.2, (
        "both serve one group: the larger penalty"
    )
    right = Head(
        weights=np.zeros((2, 1), dtype=np.float32), bias=np.array([1.0, 0.0], dtype=np.float32)
    )
    assert best_penalty({0.1: right, 0.2: never}, features, labels, groups) == 0.1
