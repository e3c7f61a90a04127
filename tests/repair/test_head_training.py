import numpy as np
import pytest
from tests.build import trained

from weakspot.core.dataset import Task
from weakspot.core.errors import ConfigError, DataError, NotEnoughDataError
from weakspot.core.heads import Head
from weakspot.repair.training.trainer import HeadTrainer

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
    found = trained(features, targets, weights, trainer={"penalty": 0.02, "tolerance": 1e-8})
    scaled = (features - features.mean(axis=0)) / features.std(axis=0)
    other = LogisticRegression(C=1 / (0.02 * weights.sum()), max_iter=5_000, tol=1e-10).fit(
        scaled, labels, sample_weight=weights
    )
    assert found.has_converged
    assert found.head.probabilities(features) == pytest.approx(
        other.predict_proba(scaled), abs=2e-3
    )


def test_train__start_changes_the_way_and_not_the_end():
    features, targets, _ = _problem()
    trainer = HeadTrainer(penalty=0.01, tolerance=1e-8)
    cold = trainer.train(features, targets, np.ones(90), task=Task.SINGLE_LABEL)
    warm = trainer.train(features, targets, np.ones(90), task=Task.SINGLE_LABEL, start=cold.head)
    assert warm.n_steps < cold.n_steps
    assert warm.loss == pytest.approx(cold.loss, abs=1e-6)
    assert warm.head.probabilities(features) == pytest.approx(
        cold.head.probabilities(features), abs=1e-3
    )


def test_train__a_strong_pull_towards_the_start_keeps_its_weights():
    features, targets, _ = _problem()
    start = Head(weights=np.full((3, 5), 0.01, np.float32), bias=np.zeros(3, np.float32))
    kept = trained(features, targets, trainer={"penalty": 1e4, "towards": "start"}, start=start)
    assert kept.head.weights == pytest.approx(start.weights, abs=1e-4)


def test_train__multi_label_learns_each_label():
    draws = np.random.default_rng(2)
    features = draws.normal(size=(200, 4)).astype(np.float32)
    targets = np.column_stack([features[:, 0] > 0, features[:, 1] > 0.5])
    head = trained(features, targets, trainer={"penalty": 1e-4}, is_multi_label=True).head
    assert head.task is Task.MULTI_LABEL
    assert np.mean((head.probabilities(features) > 0.5) == targets) > 0.97


def test_train__steps_are_bounded_and_the_best_layer_is_kept():
    features, targets, _ = _problem()
    short = trained(features, targets, trainer={"max_steps": 2, "penalty": 1e-4})
    long = trained(features, targets, trainer={"penalty": 1e-4})
    assert not short.has_converged
    assert short.n_steps <= 2
    assert long.loss < short.loss < np.log(3)


@pytest.mark.parametrize("penalty", [1e-3, 1e-1])
def test_matched__finds_the_penalty_a_head_was_made_with(penalty):
    features, targets, _ = _problem(150, seed=4)
    head = trained(features, targets, trainer={"penalty": penalty, "tolerance": 1e-8}).head
    trainer = HeadTrainer(max_steps=99).matched(features, targets, head)
    assert trainer.penalty == penalty
    assert trainer.max_steps == 99


TWO_CLASSES = Head(weights=np.zeros((2, 5), np.float32), bias=np.zeros(2, np.float32))


def _refused(features, targets, labels, weights):
    """Yield what cannot be trained on, as changes of the arguments, with the words that say why."""
    nan, nothing = np.full_like(features, np.nan), slice(0)
    yield (
        {"features": features[nothing], "targets": targets[nothing], "weights": weights[nothing]},
        "no labelled sample",
    )
    yield {"targets": targets[:5]}, "same length"
    yield {"targets": np.zeros((6, 3), bool)}, "exactly one label"
    yield {"features": nan}, "not finite"
    yield {"weights": np.zeros(6)}, "not all zero"
    yield {"start": TWO_CLASSES}, "another shape"
    yield {"targets": labels}, "how many classes"
    yield {"targets": labels - 1, "n_classes": 3}, "exactly one label"
    yield {"targets": labels, "n_classes": 2}, "exactly one label"
    yield {"targets": labels, "task": Task.MULTI_LABEL, "n_classes": 3}, "every class"
    yield {"n_classes": 4}, "every class"
    yield {"features": features[:, 0], "targets": labels, "n_classes": 3}, "table"
    yield {"validation": (features[:, :3], targets, weights)}, "another width"
    yield {"validation": (features[:0], targets[:0], weights[:0])}, "no validation sample"
    yield {"validation": (nan, targets, weights)}, "not finite"
    for weight in (np.nan, np.inf, -1.0):
        yield {"weights": np.where(np.arange(6) == 2, weight, 1.0)}, "[Ww]eights"


def test_train__refuses_what_it_cannot_use():
    features, targets, labels = _problem(6)
    given = {
        "features": features,
        "targets": targets,
        "weights": np.ones(6),
        "task": Task.SINGLE_LABEL,
    }
    for changes, words in _refused(features, targets, labels, np.ones(6)):
        with pytest.raises((DataError, NotEnoughDataError), match=words):
            HeadTrainer().train(**{**given, **changes})
    with pytest.raises(DataError, match="another shape"):
        HeadTrainer().matched(
            features[:, :4],
            targets,
            Head(weights=np.zeros((3, 5), np.float32), bias=np.zeros(3, np.float32)),
        )


@pytest.mark.parametrize("solver", ["exact", "sgd"])
def test_train__refuses_features_that_are_no_numbers(solver):
    features, targets, _ = _problem(6)
    for value in (np.nan, np.inf):
        features[3, 1] = value
        with pytest.raises(DataError, match="not finite"):
            trained(features, targets, trainer={"solver": solver})


@pytest.mark.parametrize(
    "setting",
    [
        {"penalty": 0.0},
        {"penalty": float("nan")},
        {"max_steps": 0},
        {"tolerance": 0.0},
        {"learning_rate": -1.0},
        {"momentum": 1.0},
        {"n_epochs": 0},
        {"solver": "adam"},
        {"towards": "infinity"},
    ],
)
def test_trainer__refuses_settings_without_meaning(setting):
    with pytest.raises(ConfigError, match=next(iter(setting))):
        HeadTrainer(**setting)


@pytest.mark.parametrize("solver", ["exact", "sgd"])
def test_train__same_input_gives_the_same_layer_bit_for_bit(solver):
    features, targets, labels = _problem(2_000)
    weights = np.where(labels == 0, 3.0, 1.0)
    group_objectives = ((np.arange(0, 100), np.arange(100, 700)),)
    trainer = HeadTrainer(solver=solver, n_epochs=20)
    one = trainer.train(
        features / 50, targets, weights, task=Task.SINGLE_LABEL, group_objectives=group_objectives
    )
    shifted = np.empty(features.size + 3, np.float32)[3:].reshape(features.shape)
    shifted[:] = features / 50
    two = trainer.train(
        shifted, targets, weights, task=Task.SINGLE_LABEL, group_objectives=group_objectives
    )
    assert np.array_equal(one.head.weights, two.head.weights)
    assert np.array_equal(one.head.bias, two.head.bias)
    assert one.loss == two.loss


def test_train__a_missing_class_is_named_and_never_wins():
    features, targets, labels = _problem()
    found = trained(features, targets, np.where(labels == 1, 0.0, 1.0))
    likely = found.head.probabilities(features)
    assert found.missing_classes == (1,)
    assert found.has_converged
    assert likely[:, 1].max() < 0.05
    assert set(likely.argmax(axis=1).tolist()) == {0, 2}
    assert found.head.weights[1] == pytest.approx(np.zeros(5), abs=1e-7)


def test_train__a_missing_class_keeps_the_layer_of_the_start_and_the_others_do_not_run_away():
    features, targets, labels = _problem()
    start = trained(features, targets, trainer={"penalty": 0.01}).head
    found = trained(
        features, targets, np.where(labels == 1, 0.0, 1.0), trainer={"penalty": 0.01}, start=start
    )
    before, after = start.logits(features).mean(axis=0), found.head.logits(features).mean(axis=0)
    assert found.missing_classes == (1,)
    assert found.head.weights[1] == pytest.approx(start.weights[1], abs=1e-6)
    assert found.head.bias[1] == pytest.approx(start.bias[1], abs=1e-4)
    assert after[[0, 2]].mean() == pytest.approx(before[[0, 2]].mean(), abs=1e-3)


def _noisy(seed):
    draws = np.random.default_rng(seed)
    labels = np.arange(80) % 2
    features = draws.normal(size=(80, 30)).astype(np.float32)
    features[:, 0] += 1.2 * labels
    return features, labels


@pytest.mark.parametrize("solver", ["exact", "sgd"])
def test_train__validation_samples_decide_which_layer_is_kept(solver):
    features, labels = _noisy(0)
    other, truth = _noisy(1)
    trainer, ones = HeadTrainer(penalty=1e-4, solver=solver, n_epochs=300), np.ones(80)
    last = trainer.train(features, labels, ones, task=Task.SINGLE_LABEL, n_classes=2)
    kept = trainer.train(
        features, labels, ones, task=Task.SINGLE_LABEL, n_classes=2, validation=(other, truth, ones)
    )

    def loss(head):
        return float(-np.log(head.probabilities(other)[np.arange(80), truth]).mean())

    assert kept.validation_loss == pytest.approx(loss(kept.head), abs=1e-4)
    assert loss(kept.head) < 0.7 * loss(last.head)
    assert kept.loss > last.loss
    assert kept.n_steps < (300 if solver == "sgd" else 500)
    assert last.validation_loss is None


def test_train__a_start_that_validation_samples_like_best_is_kept():
    features, labels = _noisy(0)
    head = trained(features, labels, trainer={"penalty": 0.1}).head
    validation = (features, head.logits(features).argmax(axis=1), np.ones(80))
    kept = trained(
        features, 1 - labels, trainer={"penalty": 0.1}, start=head, validation=validation
    )
    assert kept.head.weights == pytest.approx(head.weights, abs=1e-5)


def test_matched__takes_some_rows_of_many_and_codes(monkeypatch):
    features, _, labels = _problem(600, seed=5)
    head = trained(features, labels, trainer={"penalty": 0.1}).head
    monkeypatch.setattr("weakspot.repair.training.trainer.MATCHED_ROWS", 300)
    monkeypatch.setattr("weakspot.repair.training.trainer.MATCHED_PRODUCTS", 0)
    assert HeadTrainer().matched(features, labels, head).penalty in (0.03, 0.1, 0.3)


def test_matched__sgd_is_matched_with_sgd():
    features, targets, _ = _problem(150, seed=4)
    scaled = ((features - features.mean(axis=0)) / features.std(axis=0)).astype(np.float32)
    trainer = HeadTrainer(solver="sgd", penalty=0.1)
    head = trainer.train(scaled, targets, np.ones(150), task=Task.SINGLE_LABEL).head
    assert HeadTrainer(solver="sgd").matched(scaled, targets, head) == trainer
