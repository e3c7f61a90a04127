import numpy as np
import pytest

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.failures import FailureCriterion, class_problems
from weakspot.core.samples import (
    EmbeddingSpace,
    SampleSet,
    obstacle,
    separating_cut,
    with_embeddings,
)


def _problem():
    dataset = dataset_from_columns(
        class_names=["cat"],
        labels=[0, 0, 0, 0],
        predictions=np.array([0, 0, 0, 0]),
        sample_ids=["d", "b", "c", "a"],
    )
    embeddings = np.array([[4.0], [2.0], [np.nan], [1.0]], dtype=np.float32)
    samples = SampleSet(
        dataset=dataset,
        rows=np.arange(4),
        spaces={"clip": EmbeddingSpace(encoder_id="toy", embeddings=embeddings)},
    )
    return samples, class_problems(dataset, samples.rows, FailureCriterion())[0]


def test_with_embeddings__leaves_out_rows_without_and_orders_by_id():
    samples, problem = _problem()
    known, embeddings = with_embeddings(samples, problem, "clip")
    assert known.rows.tolist() == [3, 1, 0]
    assert embeddings.tolist() == [[1.0], [2.0], [4.0]]
    assert len(known.failed) == len(known.confidence) == 3


def test_obstacle__says_what_is_missing():
    _, problem = _problem()
    assert "0 of 4 samples failed, at least 2" in obstacle(problem, min_failures=2, min_right=2)
    assert "1 samples have no embedding" in obstacle(
        problem, min_failures=2, min_right=2, n_without=1
    )
    assert "5 right ones" in obstacle(problem, min_failures=0, min_right=5)
    assert obstacle(problem, min_failures=0, min_right=4) == ""


def test_separating_cut__lies_between_failures_and_others():
    failed = np.array([False, True, False, True, False])
    assert separating_cut(np.array([0.1, 0.8, 0.3, 0.6, 0.2]), failed) == pytest.approx(0.45)


def test_separating_cut__weighs_a_pure_top_against_one_that_holds_all():
    scores = np.array([6.0, 5.0, 4.0, 3.0, 2.0, 1.0])
    failed = np.array([True, False, False, True, False, False])
    assert separating_cut(scores, failed) == pytest.approx(5.5)
    assert separating_cut(scores, failed, min_inside=2) == pytest.approx(2.5)


def test_separating_cut__never_between_equal_scores():
    scores = np.array([1.0, 1.0, 1.0, 0.0])
    assert separating_cut(scores, np.array([True, False, False, False])) == pytest.approx(0.5)


def test_separating_cut__none_without_two_scores_or_enough_inside():
    failed = np.array([True, False, True])
    assert separating_cut(np.zeros(3), failed) is None
    assert separating_cut(np.array([3.0, 2.0, 1.0]), failed, min_inside=3) is None
    assert separating_cut(np.zeros(0), np.zeros(0, dtype=np.bool_)) is None
