import numpy as np
import pytest

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.errors import ConfigError, DataError, ModelError
from weakspot.data.prediction_columns import (
    class_columns,
    likeliest_classes,
    with_extra_classes,
    with_probabilities,
    with_thresholds,
)

PROBABILITIES = np.array([[0.9, 0.2], [0.3, 0.4], [0.2, 0.1], [0.6, 0.7]], dtype=np.float32)


@pytest.fixture
def single():
    return dataset_from_columns(class_names=["cat", "dog"], labels=[0, 1, 1, 0])


@pytest.fixture
def multi():
    splits = ["validation", "validation", "validation", "test"]
    return dataset_from_columns(
        class_names=["cat", "dog"], label_lists=[[0], [0, 1], [], None], splits=splits
    )


def test_class_columns__other_order(single):
    assert class_columns(single, ("dog", "cat"), n_columns=2, classifier_id="net").tolist() == [
        1,
        0,
    ]


def test_with_extra_classes__after_the_own_ones(single):
    known = single.with_predictions(predictions=np.array([0, 1, 1, 0]))
    wider = with_extra_classes(known, ("fox", "dog", "cat", "owl"))
    assert wider.class_names == ("cat", "dog", "fox", "owl")
    assert wider.labels.tolist() == [0, 1, 1, 0]
    assert not wider.has_predictions
    columns = class_columns(wider, ("fox", "dog", "cat", "owl"), n_columns=4, classifier_id="net")
    assert columns.tolist() == [2, 1, 0, 3]


@pytest.mark.parametrize("names", [None, ("dog", "cat"), ("cat", "fox", "owl")])
def test_with_extra_classes__nothing_to_add(single, names):
    assert with_extra_classes(single, names) is single


def test_class_columns__classifier_does_not_know_names(single):
    assert class_columns(single, None, n_columns=2, classifier_id="net").tolist() == [0, 1]
    with pytest.raises(ModelError, match="gives 5 probabilities for 2 classes"):
        class_columns(single, None, n_columns=5, classifier_id="net")


def test_class_columns__other_classes_are_both_listed(single):
    with pytest.raises(ModelError) as caught:
        class_columns(single, ("cat", "fox"), n_columns=2, classifier_id="net")
    assert "Only in the data set: ['dog']. Only in the classifier: ['fox']." in str(caught.value)
    assert "Data set: ['cat', 'dog']. Classifier: ['cat', 'fox']." in str(caught.value)


def test_likeliest_classes__rows_of_nan():
    rows = np.vstack([PROBABILITIES, [[np.nan, np.nan]]]).astype(np.float32)
    assert likeliest_classes(rows).tolist() == [0, 1, 0, 1, -1]


def test_with_probabilities__wrong_shape(single):
    with pytest.raises(DataError, match=r"\(4, 2\)"):
        with_probabilities(single, PROBABILITIES[:2])


def test_with_probabilities__thresholds_by_best_f1_on_validation(multi):
    found = with_probabilities(multi, PROBABILITIES)
    np.testing.assert_allclose(found.thresholds, [0.3, 0.4])
    assert found.predictions is None


def test_with_probabilities__given_threshold_wins(multi):
    np.testing.assert_allclose(
        with_probabilities(multi, PROBABILITIES, thresholds={"dog": 0.25}).thresholds, [0.3, 0.25]
    )


def test_with_probabilities__unpredicted_rows_do_not_count(multi):
    rows = PROBABILITIES.copy()
    rows[1] = np.nan
    np.testing.assert_allclose(with_probabilities(multi, rows).thresholds, [0.9, 0.5])


@pytest.mark.parametrize("thresholds", [{"fox": 0.5}, {"cat": 1.5}])
def test_with_probabilities__nonsense_thresholds(multi, thresholds):
    with pytest.raises(ConfigError, match="must name classes and lie in"):
        with_probabilities(multi, PROBABILITIES, thresholds=thresholds)


def test_with_thresholds__only_where_there_are_probabilities(single, multi):
    assert with_thresholds(single, {}) is single
    assert with_thresholds(multi, {}) is multi
    given = multi.with_predictions(probabilities=PROBABILITIES)
    np.testing.assert_allclose(with_thresholds(given, {}).thresholds, [0.3, 0.4])
