import numpy as np
import pytest

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


@pytest.mark.parametrize(
    ("training", "evaluation", "state", "said"),
    [
        (
            (90, 10),
            (85, 15),
            CheckState.OK,
            "85 % of 100 evaluation images are right, 90 % of 100 in train.",
        ),
        ((100, 0), (66, 34), CheckState.NOTICE, "100 % right in training, 66 % in evaluation"),
        ((60, 40), (90, 10), CheckState.NOTICE, "train is hardly what the classifier was trained"),
        ((0, 0), (30, 70), CheckState.NOTICE, "the most frequent class would be right on 50 %"),
    ],
)
def test_check_accuracy__training_and_guessing_are_compared(training, evaluation, state, said):
    check = _checked(training, evaluation)
    assert check.state is state
    assert said in f"{check.sentence} {check.short}"


def test_check_accuracy__dealt_splits_are_not_compared():
    assert _checked((100, 0), (66, 34), is_dealt=True).state is CheckState.OK


def test_check_accuracy__nothing_to_evaluate():
    assert _checked((90, 10), (0, 0)) is None
