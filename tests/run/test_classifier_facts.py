import numpy as np

from weakspot.core.dataset import Split, dataset_from_columns
from weakspot.core.failures import FailureCriterion
from weakspot.run.verdicts import classifier_facts

NAMES = ["crane", "gull", "heron", "owl", "swan"]


def _facts(dataset, criterion=None):
    rows = dataset.rows_of(Split.VALIDATION)
    return classifier_facts(dataset, rows, criterion or FailureCriterion())


def test_classifier_facts__counts_confusions_and_training():
    labels = [2] * 10 + [0, 1] + [0, 1, 2]
    said = [0] * 4 + [1] * 2 + [3, 4] + [2, 2] + [0, 1] + [0, 0, 2]
    facts = _facts(
        dataset_from_columns(
            class_names=NAMES,
            labels=labels,
            predictions=np.array(said),
            splits=["validation"] * 12 + ["train"] * 3,
            locations=["a.png"] * 15,
        )
    )
    assert (facts.n_samples, facts.n_failed, facts.counted) == (12, 8, "images")
    assert facts.per_class == {"crane": (1, 0), "gull": (1, 0), "heron": (10, 8)}
    assert facts.confusions == {"heron": (("crane", 4), ("gull", 2), ("owl", 1))}
    assert facts.training == (3, 1)
    assert facts.effective is None


def test_classifier_facts__training_without_predictions_is_not_counted():
    probabilities = np.array([[0.9, 0.1], [0.2, 0.8], [np.nan, np.nan], [0.3, 0.7]], np.float32)
    columns = {"class_names": ["a", "b"], "labels": [0, 0, 0, 0], "probabilities": probabilities}
    facts = _facts(
        dataset_from_columns(**columns, splits=["validation", "validation", "train", "train"])
    )
    assert facts.training == (1, 1)
    assert facts.counted == "samples"
    alone = dataset_from_columns(
        class_names=["a", "b"],
        labels=[0, 0],
        predictions=np.array([0, 1]),
        splits=["validation"] * 2,
    )
    assert _facts(alone).training is None


def test_classifier_facts__a_right_answer_with_low_confidence_is_no_confusion():
    facts = _facts(
        dataset_from_columns(
            class_names=["a", "b"],
            labels=[0, 0],
            probabilities=np.array([[0.6, 0.4], [0.1, 0.9]], np.float32),
            splits=["validation"] * 2,
        ),
        FailureCriterion(kind="low-confidence", threshold=0.7),
    )
    assert facts.n_failed == 2
    assert facts.confusions == {"a": (("b", 1),)}


def test_classifier_facts__images_in_groups_are_worth_less():
    facts = _facts(
        dataset_from_columns(
            class_names=["a", "b"],
            labels=[0, 0, 1, 1],
            predictions=np.array([0, 0, 1, 1]),
            splits=["validation"] * 4,
            groups=["x", "x", "y", "y"],
        )
    )
    assert facts.effective == 2.0


def test_classifier_facts__several_labels_are_counted_one_by_one():
    facts = _facts(
        dataset_from_columns(
            class_names=["a", "b"],
            label_lists=[[0], [0, 1]],
            predicted_matrix=np.array([[True, False], [False, True]]),
            splits=["validation"] * 2,
        )
    )
    assert facts.counted == "labels"
    assert (facts.n_samples, facts.n_failed, facts.confusions) == (4, 1, {})
