import numpy as np
import pytest
from sklearn.svm import SVC

from weakspot.discover.directions import source_of
from weakspot.discover.directions_kernels import Dual, Source, gram_of, pair_steps, svm_path

COSTS = np.array([1e-6, 1e-3, 0.1, 1.0, 10.0])


def _class(n_rows=80, n_dimensions=12, *, seed=0):
    """Unit vectors off centre; a hidden mark makes most samples fail."""
    draws = np.random.default_rng(seed)
    has_mark = draws.random(n_rows) < 0.3
    embeddings = draws.normal(size=(n_rows, n_dimensions)) + 0.3
    embeddings[:, 0] += 2.0 * has_mark
    failed = draws.random(n_rows) < np.where(has_mark, 0.8, 0.1)
    return (embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)).astype(
        np.float32
    ), failed


def fit_svm(embeddings, failed, cost):
    """Weights [d] and bias of the SVM of one cost."""
    signed, biases = svm_path(source_of(embeddings), failed, np.array([cost]), 1e-5)
    return signed[0] @ np.asarray(embeddings, dtype=np.float64), float(biases[0])


def _objective(embeddings, failed, weights, bias, cost):
    n_rows, n_failed = len(failed), failed.sum()
    loss = np.maximum(
        0.0, 1.0 - np.where(failed, 1, -1) * (embeddings.astype(np.float64) @ weights + bias)
    )
    each = np.where(failed, n_rows / (2 * n_failed), n_rows / (2 * (n_rows - n_failed)))
    return 0.5 * weights @ weights + cost * (each * loss).sum()


@pytest.mark.parametrize("n_dimensions", [12, 200])
@pytest.mark.parametrize("cost", [1.0, 3.0, 10.0])
def test_fit_svm__gives_the_scores_of_svc(cost, n_dimensions):
    embeddings, failed = _class(n_dimensions=n_dimensions)
    weights, bias = fit_svm(embeddings, failed, cost)
    other = SVC(kernel="linear", class_weight="balanced", C=cost, tol=1e-6).fit(embeddings, failed)
    scores = embeddings @ weights + bias
    assert scores == pytest.approx(other.decision_function(embeddings), abs=2e-3)
    theirs = _objective(embeddings, failed, other.coef_[0], other.intercept_[0], cost)
    assert _objective(embeddings, failed, weights, bias, cost) == pytest.approx(theirs, rel=1e-4)


@pytest.mark.parametrize("cost", [1e-6, 1e-4, 1e-2])
def test_fit_svm__small_costs_have_the_same_objective_and_a_boundary_between_the_sides(cost):
    embeddings, failed = _class()
    weights, bias = fit_svm(embeddings, failed, cost)
    other = SVC(kernel="linear", class_weight="balanced", C=cost, tol=1e-9).fit(embeddings, failed)
    theirs = _objective(embeddings, failed, other.coef_[0], other.intercept_[0], cost)
    assert _objective(embeddings, failed, weights, bias, cost) <= theirs * (1 + 1e-6)
    scores = embeddings @ weights + bias
    assert scores[failed].mean() > 0 > scores[~failed].mean()


def test_svm_path__does_not_depend_on_where_it_starts():
    embeddings, failed = _class()
    signed, biases = svm_path(source_of(embeddings), failed, COSTS, 1e-6)
    for place, cost in enumerate(COSTS):
        alone, bias = svm_path(source_of(embeddings), failed, np.array([cost]), 1e-6)
        assert signed[place] @ embeddings == pytest.approx(
            alone[0] @ embeddings, abs=1e-3 * max(1.0, cost)
        )
        assert biases[place] == pytest.approx(bias[0], abs=1e-3)


def test_svm_path__variables_keep_their_bounds_and_balance():
    embeddings, failed = _class()
    signed, _ = svm_path(source_of(embeddings), failed, COSTS, 1e-3)
    for row, cost in zip(signed, COSTS, strict=True):
        assert (row[failed] >= 0).all()
        assert (row[~failed] <= 0).all()
        assert np.abs(row[failed]).max() <= cost * 80 / (2 * failed.sum()) * (1 + 1e-6)
        assert row.sum() == pytest.approx(0.0, abs=1e-5 * max(1.0, cost))


def test_svm_path__embeddings_in_blocks_give_what_the_gram_matrix_gives():
    embeddings, failed = _class(1_200, 10)
    by_gram, gram_biases = svm_path(source_of(embeddings, largest_gram=2_000), failed, COSTS, 1e-4)
    by_block, block_biases = svm_path(source_of(embeddings, largest_gram=100), failed, COSTS, 1e-4)
    for place in range(len(COSTS)):
        first, second = by_gram[place] @ embeddings, by_block[place] @ embeddings
        assert first == pytest.approx(second, abs=5e-3 * max(1.0, np.abs(first).max()))
        assert gram_biases[place] == pytest.approx(block_biases[place], abs=5e-3)


def test_svm_path__duplicates_with_both_predictions_end_and_stay_finite():
    embeddings = np.ones((40, 6), dtype=np.float32) / np.sqrt(6).astype(np.float32)
    failed = np.arange(40) < 10
    signed, biases = svm_path(source_of(embeddings), failed, COSTS, 1e-3)
    assert np.isfinite(signed).all()
    assert np.isfinite(biases).all()
    assert np.abs(signed @ embeddings).max() < 1e-2
    doubled = np.repeat(_class(20)[0], 2, axis=0)
    weights, bias = fit_svm(doubled, np.arange(40) % 2 == 0, 1.0)
    assert np.isfinite([*weights, bias]).all()
    zeros = np.zeros((8, 3), dtype=np.float32)
    assert fit_svm(zeros, np.arange(8) < 2, 1.0)[0].tolist() == [0.0, 0.0, 0.0]


def test_fit_svm__two_failures_and_two_others():
    embeddings = np.array([[1, 0], [0.8, 0.6], [-1, 0], [-0.8, 0.6]], dtype=np.float32)
    failed = np.array([True, True, False, False])
    weights, bias = fit_svm(embeddings, failed, 100.0)
    # The nearest opposite pair (0.8, 0.6), (-0.8, 0.6) carries the margin: 0.8 w = 1.
    assert weights == pytest.approx([1.25, 0.0], abs=1e-3)
    assert bias == pytest.approx(0.0, abs=1e-3)


def test_pair_steps__stops_at_once_when_nothing_is_open():
    gram = np.eye(2, dtype=np.float32)
    closed = Dual(
        np.array([1.0, -1.0]), np.array([5.0, -5.0]), np.array([0.0, -1.0]), np.array([1.0, 0.0])
    )
    assert pair_steps(gram, closed, 1e-3, 100) == 0
    free = Dual(np.zeros(2), np.array([1.0, -1.0]), np.array([0.0, -9.0]), np.array([9.0, 0.0]))
    assert pair_steps(gram, free, 1e-3, 100) == 1
    assert free.signed.tolist() == [1.0, -1.0]


@pytest.mark.parametrize("n_rows", [1, 2, 7, 50])
def test_gram_of__equals_the_product(n_rows):
    embeddings = np.random.default_rng(0).normal(size=(n_rows, 33)).astype(np.float32)
    assert gram_of(embeddings) == pytest.approx(embeddings @ embeddings.T, abs=1e-4)


def test_source_of__large_classes_keep_their_embeddings():
    embeddings = _class()[0]
    assert source_of(embeddings).is_gram
    assert source_of(embeddings).values == pytest.approx(embeddings @ embeddings.T, abs=1e-5)
    large = source_of(embeddings, largest_gram=10)
    assert isinstance(large, Source)
    assert not large.is_gram
    assert large.values.tolist() == embeddings.tolist()
