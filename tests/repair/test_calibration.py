import numpy as np
import pytest

from weakspot.core.dataset import Task
from weakspot.core.errors import DataError
from weakspot.core.heads import Head
from weakspot.core.statistics import calibration_error
from weakspot.repair.bench import calibrated

TRUTH_HEAD = Head(
    weights=np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]], np.float32),
    bias=np.array([0.2, 0.0, -0.2], np.float32),
)


def _drawn(n_samples=4_000, *, head=TRUTH_HEAD, seed=0):
    """Labels drawn by the probabilities of a head, so that it is calibrated as it is."""
    draws = np.random.default_rng(seed)
    features = (2 * draws.normal(size=(n_samples, 2))).astype(np.float32)
    likely = head.probabilities(features)
    if head.task is Task.MULTI_LABEL:
        return features, draws.random(likely.shape) < likely
    return features, (draws.random(n_samples)[:, None] > likely.cumsum(axis=1)).sum(axis=1).clip(
        0, 2
    )


@pytest.mark.parametrize("temperature", [0.4, 1.0, 3.0])
@pytest.mark.parametrize("task", [Task.SINGLE_LABEL, Task.MULTI_LABEL])
def test_calibrated__finds_the_temperature_a_head_was_spoilt_by(temperature, task):
    head = Head(weights=TRUTH_HEAD.weights, bias=TRUTH_HEAD.bias, task=task)
    features, targets = _drawn(head=head)
    found, by = calibrated(head.cooled(1 / temperature), features, targets)
    assert by == pytest.approx(temperature, rel=0.08)
    assert found.weights == pytest.approx(head.weights, abs=0.1)
    assert found.task is task


def test_calibrated__leaves_predictions_and_lowers_the_calibration_error():
    features, codes = _drawn()
    other, truth = _drawn(seed=1)
    hot = TRUTH_HEAD.cooled(0.3)
    found, _ = calibrated(hot, features, np.eye(3, dtype=bool)[codes])
    before, after = hot.probabilities(other), found.probabilities(other)
    assert np.array_equal(before.argmax(axis=1), after.argmax(axis=1))
    assert calibration_error(before, truth, task=Task.SINGLE_LABEL) > 0.12
    assert calibration_error(after, truth, task=Task.SINGLE_LABEL) < 0.03


@pytest.mark.parametrize(
    "spoil",
    [
        lambda features, codes: (features[:19], codes[:19]),
        lambda features, codes: (features, np.zeros_like(codes)),
        lambda features, codes: (features, TRUTH_HEAD.logits(features).argmax(axis=1)),
        lambda features, codes: (features, TRUTH_HEAD.logits(features).argmin(axis=1)),
        lambda features, codes: (np.full_like(features, np.nan), codes),
        lambda features, codes: (features, np.where(np.arange(len(codes)) == 3, -1, codes)),
    ],
    ids=["few", "one class", "all right", "all wrong", "no numbers", "a sample without label"],
)
def test_calibrated__samples_that_cannot_tell_leave_the_head_as_it_is(spoil):
    head, temperature = calibrated(TRUTH_HEAD, *spoil(*_drawn(200)))
    assert head is TRUTH_HEAD
    assert temperature == 1.0


def test_calibrated__refuses_what_does_not_fit():
    features, codes = _drawn(30)
    with pytest.raises(DataError, match="same length"):
        calibrated(TRUTH_HEAD, features, codes[:29])
    with pytest.raises(DataError, match="another width"):
        calibrated(TRUTH_HEAD, features[:, :1], codes)
    with pytest.raises(DataError, match="number of classes"):
        calibrated(TRUTH_HEAD, features, np.ones((30, 2), bool))
    with pytest.raises(DataError, match="not negative"):
        calibrated(TRUTH_HEAD, features, codes, weights=np.full(30, -1.0))
