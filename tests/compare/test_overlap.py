import numpy as np
import pytest

from weakspot.compare.overlap import failure_iou, families
from weakspot.core.errors import DataError


def test_failure_iou__counts_by_hand():
    first = np.array([True, True, True, False, False])
    second = np.array([False, True, True, True, False])
    third = np.zeros(5, dtype=bool)
    found = failure_iou([first, second, third])
    assert found.tolist() == [[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]]


def test_failure_iou__different_samples_are_refused():
    with pytest.raises(DataError, match="same samples"):
        failure_iou([np.array([True]), np.array([True, False])])


def test_families__groups_by_mean_overlap():
    overlaps = np.array([[1.0, 0.8, 0.1], [0.8, 1.0, 0.2], [0.1, 0.2, 1.0]])
    assert families(("a", "b", "c"), overlaps) == (("a", "b"), ("c",))
    assert families(("a", "b", "c"), overlaps, least=0.1) == (("a", "b", "c"),)
    assert families(("a",), np.ones((1, 1))) == (("a",),)
