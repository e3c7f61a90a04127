import numpy as np
import pytest

from weakspot.core.arrays import unit_rows
from weakspot.core.dataset import dataset_from_columns
from weakspot.core.failures import FailureCriterion, class_problems
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.verify.labels import (
    BLOCK_FAILURES,
    CHUNK_ROWS,
    class_thresholds,
    confident_class,
    confidently_other,
    nearest_rows,
)

TOP_1 = FailureCriterion()


def test_class_thresholds__of_a_class_that_nobody_carries():
    probabilities = np.array([[0.8, 0.2, 0.0], [0.4, 0.6, 0.0]])
    assert class_thresholds(np.array([0, 0]), probabilities).tolist() == pytest.approx(
        [0.6, 1.0, 1.0]
    )


def test_confident_class__several_or_none_reach_their_threshold():
    probabilities = np.array([[0.45, 0.5], [0.2, 0.3]])
    assert confident_class(probabilities, np.array([0.4, 0.4])).tolist() == [1, -1]


def test_confidently_other__multi_label_sides():
    # Usual probability of the label: 0.7 where it is given, 0.1 where it is not.
    probabilities = np.array([[0.9], [0.8], [0.4], [0.05], [0.05], [0.2]], dtype=np.float32)
    dataset = dataset_from_columns(
        class_names=["a"], label_lists=[[0], [0], [0], [], [], []], probabilities=probabilities
    )
    present, absent = class_problems(dataset, np.arange(6), TOP_1)
    assert confidently_other(dataset, np.arange(6), present, np.array([0, 2])).tolist() == [-1, -1]
    low = dataset.with_predictions(
        probabilities=np.array([[0.9], [0.9], [0.05], [0.05], [0.05], [0.8]], dtype=np.float32)
    )
    assert confidently_other(low, np.arange(6), present, np.array([2])).tolist() == [0]
    assert confidently_other(low, np.arange(6), absent, np.array([5, 3])).tolist() == [0, -1]


def test_nearest__the_same_as_sorting_everything():
    draws = np.random.default_rng(0)
    embeddings = draws.standard_normal((CHUNK_ROWS + 300, 3)).astype(np.float32)
    embeddings[7] = np.nan
    dataset = dataset_from_columns(class_names=["apple"], labels=[0] * len(embeddings))
    training = SampleSet(
        dataset=dataset,
        rows=np.arange(len(embeddings)),
        spaces={"clip": EmbeddingSpace(encoder_id="toy", embeddings=embeddings)},
    )
    asked = unit_rows(draws.standard_normal((BLOCK_FAILURES + 5, 3)))
    best, found = nearest_rows(asked, training, training.rows, space="clip", n_nearest=4)
    similarities = np.nan_to_num(asked @ unit_rows(embeddings).T, nan=-np.inf)
    assert np.array_equal(found, np.argsort(-similarities, axis=1, kind="stable")[:, :4])
    assert best == pytest.approx(np.take_along_axis(similarities, found, axis=1))
