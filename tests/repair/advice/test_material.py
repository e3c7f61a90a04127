import dataclasses

import numpy as np
import pytest

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.failures import FailureCriterion, Side
from weakspot.repair.advice import learning_curve as module
from weakspot.repair.advice.learning_curve import CurveBuilder, draw_curve, thinned


def test_material__training_kind_and_others_are_apart(world, criterion):
    start = world.prepared.classifier.head
    kind = world.kind()
    found = CurveBuilder(samples=world.samples, criterion=criterion, start=start).material(kind)
    assert len(found.training) == 180
    assert len(found.kind) == len(kind.rows)
    assert found.trainer.penalty == pytest.approx(1e-2)
    rest = np.setdiff1d(kind.discovery.rows, kind.rows)
    assert len(found.others) == len(rest)
    right = world.dataset.predictions[rest] == world.truth[rest]
    assert found.others.was_right.sum() == right.sum()
    assert np.array_equal(found.kind.was_right, ~kind.failed)


def test_material__the_penalty_of_a_measured_repair_is_taken(world, criterion):
    builder = CurveBuilder(samples=world.samples, criterion=criterion, penalty=0.3)
    assert builder.material(world.kind()).trainer.penalty == 0.3


def test_material__of_many_classes_those_that_the_kind_is_taken_for(world, criterion, monkeypatch):
    monkeypatch.setattr(module, "MAX_CLASSES", 2)
    start = world.prepared.classifier.head
    kind = world.kind()
    found = CurveBuilder(samples=world.samples, criterion=criterion, start=start).material(kind)
    assert found.n_classes == 2
    assert found.start.weights.shape[0] == 2
    assert len(found.training) == 120
    assert set(found.training.targets) == {0, 1}
    assert np.array_equal(found.start.weights, start.weights[[0, 1]])


def test_material__of_a_multi_label_task_the_label_alone(world, criterion):
    splits = [("train", "validation", "test", "pool")[code] for code in world.dataset.splits]
    dataset = dataset_from_columns(
        class_names=world.dataset.class_names,
        label_lists=[[int(code)] for code in world.truth],
        splits=splits,
        probabilities=world.dataset.probabilities,
        thresholds=np.array([0.3, 0.5, 0.5], dtype=np.float32),
    )
    samples = dataclasses.replace(world.samples, dataset=dataset)
    kind = world.kind()
    kind = dataclasses.replace(
        kind, side=Side.PRESENT, discovery=dataclasses.replace(kind.discovery, dataset=dataset)
    )
    found = CurveBuilder(samples=samples, criterion=criterion).material(kind)
    assert found.n_classes == 1
    assert found.training.targets.shape == (180, 1)
    assert found.training.targets.sum() == 60
    answers = np.array([[0.35], [0.25]], dtype=np.float32)
    truth = np.array([[True], [True]])
    assert found.judge(answers, truth).tolist() == [True, False]
    assert draw_curve(found, seed=0)[-1].gain > 0.2


@pytest.mark.parametrize("kind", ["top-1", "low-confidence"])
def test_material__answers_are_judged_by_the_criterion(world, kind):
    criterion = FailureCriterion(kind=kind, threshold=0.6)
    found = CurveBuilder(samples=world.samples, criterion=criterion).material(world.kind())
    answers = np.array([[0.55, 0.45, 0.0], [0.7, 0.3, 0.0], [0.1, 0.9, 0.0]], dtype=np.float32)
    right = found.judge(answers, np.zeros(3, dtype=np.int64))
    assert right.tolist() == [kind == "top-1", True, False]


def test_thinned__every_row_that_stays_stands_for_others_of_its_part(monkeypatch):
    monkeypatch.setattr(module, "MAX_TRAINING", 100)
    rows, parts = np.arange(1000), np.repeat([0, 1], [990, 10])
    kept, weights = thinned(rows, parts)
    assert np.isin(np.arange(990, 1000), kept).all()
    assert len(kept) == pytest.approx(109, abs=2)
    assert weights.sum() == pytest.approx(1000)
    assert weights[kept >= 990].tolist() == [1.0] * 10


def test_material__without_labelled_training_images_there_is_none(world, criterion):
    rows = np.flatnonzero(world.dataset.splits == 0)
    unlabelled = world.dataset.with_labels(rows, np.full(len(rows), -1))
    samples = dataclasses.replace(world.samples, dataset=unlabelled)
    kind = dataclasses.replace(world.kind(), training=rows[:0])
    assert CurveBuilder(samples=samples, criterion=criterion).material(kind) is None
