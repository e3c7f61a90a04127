import numpy as np

from weakspot.core.run import CheckState
from weakspot.run.preflight.classifier import LabelledAnswers, check_accuracy


def _checked(training, evaluation, *, is_dealt=False):
    """Check (right, wrong) in training and in evaluation, of two classes."""
    n_seen, n_held = sum(training), sum(evaluation)
    labels = np.arange(n_seen + n_held) % 2
    right = np.concatenate([np.arange(n_seen) < training[0], np.arange(n_held) < evaluation[0]])
    answers = LabelledAnswers(
        class_names=("a", "b"),
        labels=labels,
        predictions=np.where(right, labels, 1 - labels),
        is_training=np.arange(n_seen + n_held) < n_seen,
    )
    return check_accuracy(answers, is_dealt=is_dealt)


def test_check_accuracy__both_are_told():
    check = _checked((90, 10), (85, 15))
    assert check.state is CheckState.OK
    assert check.sentence == "85 % of 100 evaluation images are right, 90 % of 100 in train."


def test_check_accuracy__far_better_in_training():
    check = _checked((100, 0), (66, 34))
    assert check.state is CheckState.NOTICE
    assert check.short == "100 % right in training, 66 % in evaluation"


def test_check_accuracy__worse_in_training():
    check = _checked((60, 40), (90, 10))
    assert check.state is CheckState.NOTICE
    assert "train is hardly what the classifier was trained on" in check.sentence


def test_check_accuracy__dealt_splits_are_not_compared():
    assert _checked((100, 0), (66, 34), is_dealt=True).state is CheckState.OK


def test_check_accuracy__worse_than_guessing():
    check = _checked((0, 0), (30, 70))
    assert check.state is CheckState.NOTICE
    assert "the most frequent class would be right on 50 %" in check.sentence


def test_check_accuracy__nothing_to_evaluate():
    assert _checked((90, 10), (0, 0)) is None
