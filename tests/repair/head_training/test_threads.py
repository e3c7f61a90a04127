import sys

import numpy as np
from tests.build import trained
from threadpoolctl import threadpool_info

from weakspot.core.dataset import Task
from weakspot.repair.training.objective import Problem, _controller, one_thread_each, workers_for


def _blas_threads():
    return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]


def _problem(n_samples, width, n_classes):
    features, codes = np.zeros((n_samples, width), np.float32), np.zeros(n_samples, np.int64)
    return Problem.of(
        features, codes, np.ones(n_samples), task=Task.SINGLE_LABEL, n_classes=n_classes
    )


def test_one_thread_each__holds_inside_and_is_undone():
    before = _blas_threads()
    with one_thread_each():
        assert set(_blas_threads()) == {1}
    assert _blas_threads() == before


def test_workers_for__few_classes_and_many_samples_get_threads_of_their_own():
    with workers_for(_problem(10_000, 100, 10)) as workers:
        assert workers is not None
        assert set(_blas_threads()) == {1}


def test_workers_for__small_problems_and_many_classes_get_none():
    with workers_for(_problem(100, 10, 10)) as workers:
        assert workers is None
    before = _blas_threads()
    with workers_for(_problem(10_000, 10, 100)) as workers:
        assert workers is None
        assert _blas_threads() == before


def test_train__with_threads_is_the_same_bit_for_bit(make_features):
    features, codes = make_features(30_000, 40, 5)
    one, other = (trained(features, codes).head for _ in range(2))
    assert np.array_equal(one.weights, other.weights)
    assert np.array_equal(one.bias, other.bias)


def test_one_thread_each__libraries_are_looked_for_again_after_an_import(monkeypatch):
    with one_thread_each():
        known = _controller(len(sys.modules))
    monkeypatch.setitem(sys.modules, "imported_just_now", sys)
    with one_thread_each():
        again = _controller(len(sys.modules))
        assert again is _controller(len(sys.modules))
    assert again is not known
