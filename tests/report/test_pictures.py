import numpy as np

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.failures import FailureCriterion
from weakspot.core.rules import LinearRule
from weakspot.core.samples import SampleSet, VectorSpace
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.report.pictures import choose_pictures

TOP_1 = FailureCriterion()


def _samples(**changes):
    vectors = np.array([[0.9, 0.1], [-0.5, 1], [0.2, 1], [-0.9, 0.1], [np.nan, 1], [0.6, 1]], dtype=np.float32)
    given = {"labels": [0, 0, 0, 0, 0, 1], "predictions": np.array([1, 0, 0, 0, 1, 1])}
    dataset = dataset_from_columns(class_names=["apple", "pear"], sample_ids=list("abcdef"), **{**given, **changes})
    return SampleSet(dataset=dataset, rows=np.arange(6), spaces={"joint": VectorSpace(encoder_id="toy", vectors=vectors)})


def _found(**changes):
    rule = LinearRule(encoder_id="toy", direction=(1.0, 0.0), normalise=False)
    use = DataUse(name="given", n_samples=0, digest="given")
    return FailureSlice(**{"class_name": "apple", "rule": rule, "method": "hand", "found_on": use, **changes})


def test_choose_pictures__deepest_and_farthest_first():
    shown = choose_pictures(_found(), _samples(), TOP_1)
    assert [picture.sample_id for picture in shown.hard] == ["a", "c"]
    assert [picture.sample_id for picture in shown.easy] == ["d", "b"]
    assert [(picture.answer, picture.has_failed) for picture in shown.hard] == [("pear", True), ("apple", False)]
    assert shown.sample_ids == ("a", "c", "d", "b")


def test_choose_pictures__limited_and_none():
    assert len(choose_pictures(_found(), _samples(), TOP_1, n_pictures=1).hard) == 1
    assert choose_pictures(_found(class_name="melon"), _samples(), TOP_1).sample_ids == ()


def test_choose_pictures__multi_label_says_right_or_wrong():
    said = np.array([[False, False]] + [[True, False]] * 4 + [[False, False]])
    samples = _samples(labels=None, predictions=None, label_lists=[[0]] * 5 + [[]], predicted_matrix=said)
    shown = choose_pictures(_found(side="present"), samples, TOP_1)
    assert [picture.answer for picture in shown.hard] == ["wrong", "right"]
