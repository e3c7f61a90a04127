import numpy as np
import pytest

from weakspot.core.dataset import Task
from weakspot.core.errors import ConfigError, DataError, NotEnoughDataError
from weakspot.core.heads import Head
from weakspot.repair.head_training import HeadTrainer, _loss, _Scaling

ONE_HOT = np.eye(3, dtype=bool)


def _problem(n_samples=90, *, seed=0):
    draws = np.random.default_rng(seed)
    labels = np.arange(n_samples) % 3
    features = draws.normal(size=(n_samples, 5)).astype(np.float32)
    features[np.arange(n_samples), labels] += 1.5
    return 50.0 + 20.0 * features, ONE_HOT[labels], labels


def test_train__agrees_with_another_solver():
    from sklearn.linear_model import LogisticRegression

    features, targets, labels = _problem()
    weights = np.where(labels == 0, 3.0, 0.5)
    trained = HeadTrainer(penalty=0.02, tolerance=1e-8).train(features, targets, weights, task=Task.SINGLE_LABEL)
    scaled = (features - features.mean(axis=0)) / features.std(axis=0)
    other = LogisticRegression(C=1 / (0.02 * weights.sum()), max_iter=5_000, tol=1e-10).fit(scaled, labels, sample_weight=weights)
    assert trained.has_converged
    assert trained.head.probabilities(features) == pytest.approx(other.predict_proba(scaled), abs=2e-3)


@pytest.mark.parametrize("task", [Task.SINGLE_LABEL, Task.MULTI_LABEL])
def test_train__gradient_is_that_of_the_loss(task):
    features, targets, _ = _problem(12)
    features = features.astype(np.float64)
    shares = np.arange(1, 13) / 78
    evaluate = _loss(features, targets, shares, _Scaling.of(features), task)
    layer = np.random.default_rng(1).normal(size=(3, 6))
    _, gradient = evaluate(layer)
    for place in [(0, 0), (1, 3), (2, 5)]:
        step = np.zeros((3, 6))
        step[place] = 1e-6
        slope = (evaluate(layer + step)[0] - evaluate(layer - step)[0]) / 2e-6
        assert gradient[place] == pytest.approx(slope, rel=1e-4, abs=1e-8)


def test_train__start_changes_the_way_and_not_the_end():
    features, targets, _ = _problem()
    trainer = HeadTrainer(penalty=0.01, tolerance=1e-8)
    cold = trainer.train(features, targets, np.ones(90), task=Task.SINGLE_LABEL)
    warm = trainer.train(features, targets, np.ones(90), task=Task.SINGLE_LABEL, start=cold.head)
    assert warm.n_steps < cold.n_steps
    assert warm.loss == pytest.approx(cold.loss, abs=1e-6)
    assert warm.head.probabilities(features) == pytest.approx(cold.head.probabilities(features), abs=1e-3)


def test_train__a_strong_pull_towards_the_start_keeps_its_weights():
    features, targets, _ = _problem()
    start = Head(weights=np.full((3, 5), 0.01, np.float32), bias=np.zeros(3, np.float32))
    kept = HeadTrainer(penalty=1e4, towards="start").train(features, targets, np.ones(90), task=Task.SINGLE_LABEL, start=start)
    assert kept.head.weights == pytest.approx(start.weights, abs=1e-4)


def test_train__weights_of_samples_matter_and_their_scale_does_not():
    features, targets, labels = _problem()
    trainer = HeadTrainer(penalty=0.01, tolerance=1e-8)
    heavy = np.where(labels == 2, 20.0, 1.0)
    plain = trainer.train(features, targets, np.ones(90), task=Task.SINGLE_LABEL).head
    pulled = trainer.train(features, targets, heavy, task=Task.SINGLE_LABEL).head
    scaled = trainer.train(features, targets, 7 * heavy, task=Task.SINGLE_LABEL).head
    is_two = labels == 2
    assert np.mean(pulled.probabilities(features)[is_two].argmax(axis=1) == 2) > np.mean(
        plain.probabilities(features)[is_two].argmax(axis=1) == 2
    )
    assert scaled.probabilities(features) == pytest.approx(pulled.probabilities(features), abs=1e-4)


def test_train__zero_weight_means_not_trained_on():
    features, targets, _ = _problem()
    weights = np.ones(90)
    weights[60:] = 0.0
    changed = targets.copy()
    changed[60:] = targets[np.arange(89, 59, -1)]
    trainer = HeadTrainer(penalty=0.01, tolerance=1e-8)
    one = trainer.train(features, targets, weights, task=Task.SINGLE_LABEL).head
    two = trainer.train(features, changed, weights, task=Task.SINGLE_LABEL).head
    assert one.probabilities(features) == pytest.approx(two.probabilities(features), abs=1e-5)


def test_train__multi_label_learns_each_label():
    draws = np.random.default_rng(2)
    features = draws.normal(size=(200, 4)).astype(np.float32)
    targets = np.column_stack([features[:, 0] > 0, features[:, 1] > 0.5])
    head = HeadTrainer(penalty=1e-4).train(features, targets, np.ones(200), task=Task.MULTI_LABEL).head
    assert head.task is Task.MULTI_LABEL
    assert np.mean((head.probabilities(features) > 0.5) == targets) > 0.97


def test_train__constant_features_and_separable_classes_are_no_trouble():
    features = np.column_stack([np.arange(10.0), np.full(10, 3.0)]).astype(np.float32)
    targets = np.column_stack([np.arange(10) < 5, np.arange(10) >= 5])
    trained = HeadTrainer().train(features, targets, np.ones(10), task=Task.SINGLE_LABEL)
    assert np.isfinite(trained.head.weights).all()
    assert (trained.head.probabilities(features).argmax(axis=1) == (np.arange(10) >= 5)).all()


def test_train__chunks_change_nothing(monkeypatch):
    features, targets, _ = _problem()
    whole = HeadTrainer().train(features, targets, np.ones(90), task=Task.SINGLE_LABEL)
    monkeypatch.setattr("weakspot.repair.head_training.CHUNK_ROWS", 7)
    parts = HeadTrainer().train(features, targets, np.ones(90), task=Task.SINGLE_LABEL)
    assert parts.head.probabilities(features) == pytest.approx(whole.head.probabilities(features), abs=1e-3)


def test_train__steps_are_bounded_and_the_best_layer_is_kept():
    features, targets, _ = _problem()
    short = HeadTrainer(max_steps=2, penalty=1e-4).train(features, targets, np.ones(90), task=Task.SINGLE_LABEL)
    long = HeadTrainer(penalty=1e-4).train(features, targets, np.ones(90), task=Task.SINGLE_LABEL)
    assert not short.has_converged
    assert short.n_steps <= 2
    assert long.loss < short.loss < np.log(3)


@pytest.mark.parametrize("penalty", [1e-3, 1e-1])
def test_matched__finds_the_penalty_a_head_was_made_with(penalty):
    features, targets, _ = _problem(150, seed=4)
    head = HeadTrainer(penalty=penalty, tolerance=1e-8).train(features, targets, np.ones(150), task=Task.SINGLE_LABEL).head
    trainer = HeadTrainer(max_steps=99).matched(features, targets, head)
    assert trainer.penalty == penalty
    assert trainer.max_steps == 99


def test_train__refuses_what_it_cannot_use():
    features, targets, _ = _problem(6)
    weights = np.ones(6)
    with pytest.raises(NotEnoughDataError, match="no labelled sample"):
        HeadTrainer().train(features[:0], targets[:0], weights[:0], task=Task.SINGLE_LABEL)
    with pytest.raises(DataError, match="same length"):
        HeadTrainer().train(features, targets[:5], weights, task=Task.SINGLE_LABEL)
    with pytest.raises(DataError, match="exactly one label"):
        HeadTrainer().train(features, np.zeros((6, 3), bool), weights, task=Task.SINGLE_LABEL)
    with pytest.raises(DataError, match="not finite"):
        HeadTrainer().train(np.full((6, 5), np.nan, np.float32), targets, weights, task=Task.SINGLE_LABEL)
    with pytest.raises(DataError, match="not all zero"):
        HeadTrainer().train(features, targets, np.zeros(6), task=Task.SINGLE_LABEL)
    start = Head(weights=np.zeros((2, 5), np.float32), bias=np.zeros(2, np.float32))
    with pytest.raises(DataError, match="another shape"):
        HeadTrainer().train(features, targets, weights, task=Task.SINGLE_LABEL, start=start)
    with pytest.raises(ConfigError, match="penalty"):
        HeadTrainer(penalty=0.0)
