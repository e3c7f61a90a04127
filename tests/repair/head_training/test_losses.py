from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from weakspot.core.dataset import Task
from weakspot.repair.training.objective import ChunkedLoss, Problem

FEATURES = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]], np.float32)
WEIGHTS = np.array([[np.log(2.0), 0.0], [0.0, 0.0]], np.float32)


def _problem(targets, task):
    return Problem.of(FEATURES, targets, np.ones(3), task=task, n_classes=2)


def test_losses__softmax_by_hand():
    loss = ChunkedLoss(_problem(np.array([0, 1, 1]), Task.SINGLE_LABEL))
    found = loss.losses(WEIGHTS, np.zeros(2, np.float32))
    assert found == pytest.approx([-np.log(2 / 3), np.log(2), -np.log(1 / 3)], abs=1e-6)


def test_losses__sigmoids_are_summed_over_labels():
    targets = np.array([[True, True], [False, False], [False, True]])
    found = ChunkedLoss(_problem(targets, Task.MULTI_LABEL)).losses(
        WEIGHTS, np.zeros(2, np.float32)
    )
    assert found == pytest.approx(
        [-np.log(2 / 3) + np.log(2), 2 * np.log(2), -np.log(1 / 3) + np.log(2)], abs=1e-6
    )


@pytest.mark.parametrize("task", [Task.SINGLE_LABEL, Task.MULTI_LABEL])
def test_slopes__are_those_of_the_losses(task):
    draws = np.random.default_rng(0)
    features, shares = draws.normal(size=(12, 5)).astype(np.float32), np.arange(1, 13) / 78
    targets = np.arange(12) % 3 if task is Task.SINGLE_LABEL else draws.random((12, 3)) < 0.5
    loss = ChunkedLoss(Problem.of(features, targets, shares, task=task, n_classes=3))
    weights, bias = (
        draws.normal(size=(3, 5)).astype(np.float32),
        draws.normal(size=3).astype(np.float32),
    )
    _, by_weights, by_bias, _ = loss.slopes(weights, bias, shares)
    for place in [(0, 0), (1, 3), (2, 4)]:
        step = np.zeros((3, 5), np.float32)
        step[place] = 1e-2
        rise = (
            shares @ loss.losses(weights + step, bias) - shares @ loss.losses(weights - step, bias)
        ) / 2e-2
        assert by_weights[place] == pytest.approx(rise, rel=2e-3, abs=2e-5)
    step = np.array([0, 1e-2, 0], np.float32)
    rise = (
        shares @ loss.losses(weights, bias + step) - shares @ loss.losses(weights, bias - step)
    ) / 2e-2
    assert by_bias[1] == pytest.approx(rise, rel=2e-3, abs=2e-5)


def test_slopes__bends_of_equal_probabilities():
    zeros = np.zeros((2, 2), np.float32)
    softmax = ChunkedLoss(_problem(np.array([0, 1, 1]), Task.SINGLE_LABEL)).slopes(
        zeros, zeros[0], np.full(3, 1 / 3)
    )
    sigmoid = ChunkedLoss(_problem(np.ones((3, 2), bool), Task.MULTI_LABEL)).slopes(
        zeros, zeros[0], np.full(3, 1 / 3)
    )
    assert softmax[3] == pytest.approx(np.array([[0.25, -0.25], [-0.25, 0.25]]), abs=1e-6)
    assert sigmoid[3] == pytest.approx([0.25, 0.25], abs=1e-6)


@pytest.mark.parametrize("task", [Task.SINGLE_LABEL, Task.MULTI_LABEL])
def test_slopes__chunks_change_nothing(monkeypatch, task):
    draws = np.random.default_rng(1)
    features, targets = draws.normal(size=(50, 4)).astype(np.float32), draws.integers(3, size=50)
    if task is Task.MULTI_LABEL:
        targets = np.eye(3, dtype=bool)[targets]
    problem = Problem.of(features, targets, np.ones(50), task=task, n_classes=3)
    layer = draws.normal(size=(3, 4)).astype(np.float32), np.zeros(3, np.float32)
    whole = ChunkedLoss(problem).slopes(*layer, problem.shares)
    monkeypatch.setattr("weakspot.repair.training.objective.CHUNK_BYTES", 7 * 16)
    parts = ChunkedLoss(problem).slopes(*layer, problem.shares)
    assert parts[0] == pytest.approx(whole[0], abs=1e-6)
    assert parts[1] == pytest.approx(whole[1], abs=1e-6)
    assert parts[3] == pytest.approx(whole[3], abs=1e-6)


def test_slopes__the_number_of_threads_changes_no_bit(monkeypatch):
    monkeypatch.setattr("weakspot.repair.training.objective.CHUNK_BYTES", 4 * 4 * 16)
    draws = np.random.default_rng(2)
    features, codes = draws.normal(size=(500, 4)).astype(np.float32), draws.integers(3, size=500)
    problem = Problem.of(features, codes, draws.random(500), task=Task.SINGLE_LABEL, n_classes=3)
    layer = draws.normal(size=(3, 4)).astype(np.float32), draws.normal(size=3).astype(np.float32)
    found = []
    for n_threads in (1, 4):
        with ThreadPoolExecutor(n_threads) as workers:
            found.append(ChunkedLoss(problem, workers=workers).slopes(*layer, problem.shares))
    alone = ChunkedLoss(problem).slopes(*layer, problem.shares)
    assert all(np.array_equal(one, other) for one, other in zip(*found, strict=True))
    assert found[0][1] == pytest.approx(alone[1], abs=1e-6)
