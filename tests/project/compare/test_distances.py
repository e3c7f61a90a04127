import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import sqrtm

from weakspot.core.errors import DataError, NotEnoughDataError
from weakspot.generate.distances import (
    distances_to,
    frechet_distance,
    kernel_distance,
    unbiased_frechet,
)


def _draws(seed, n, d, *, mean=0.0, scale=1.0):
    return np.random.default_rng(seed).normal(mean, scale, size=(n, d))


def _rotation(seed, d):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]


def _textbook_frechet(one, other):
    first, second = np.cov(one.T), np.cov(other.T)
    root = sqrtm(first @ second).real
    return ((one.mean(0) - other.mean(0)) ** 2).sum() + np.trace(first + second - 2 * root)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000), n=st.integers(12, 60), m=st.integers(12, 60), d=st.integers(2, 8)
)
def test_frechet_distance__is_the_textbook_formula_where_covariances_have_full_rank(seed, n, m, d):
    one, other = _draws(seed, n, d), _draws(seed + 1, m, d, mean=0.5, scale=2.0)
    assert frechet_distance(one, other) == pytest.approx(_textbook_frechet(one, other), rel=1e-6)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000), n=st.integers(2, 30), m=st.integers(2, 30), d=st.integers(1, 40)
)
def test_frechet_distance__is_symmetric_zero_for_itself_and_blind_to_rotation(seed, n, m, d):
    one, other, turn = _draws(seed, n, d), _draws(seed + 1, m, d, mean=1.0), _rotation(seed, d)
    distance = frechet_distance(one, other)
    assert distance == pytest.approx(frechet_distance(other, one), rel=1e-9)
    assert distance == pytest.approx(frechet_distance(one @ turn, other @ turn), rel=1e-7)
    assert frechet_distance(one, one) == pytest.approx(0.0, abs=1e-9 * d)
    shifted = frechet_distance(one, one + 3.0)
    assert shifted == pytest.approx(9.0 * d, rel=1e-9)


def test_frechet_distance__closed_form_of_two_normal_distributions():
    # |difference of means|^2 + sum of (difference of deviations)^2 when axes are the same.
    deviations, others = np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.0, 1.0])
    one, other = (
        _draws(0, 200_000, 3) * deviations,
        _draws(1, 200_000, 3) * others + np.array([1.0, 0.0, -2.0]),
    )
    assert frechet_distance(one, other) == pytest.approx(5.0 + 5.0, rel=0.02)


def test_frechet_distance__few_embeddings_of_many_dimensions_stay_exact():
    one, other = _draws(0, 6, 200), _draws(1, 9, 200)
    basis = np.linalg.qr(np.concatenate([one, other]).T)[0]
    # In the 15 dimensions that the embeddings span the same formula is available by way of eigenvalues.
    first, second = np.cov((one @ basis).T), np.cov((other @ basis).T)
    roots = np.sqrt(np.maximum(np.linalg.eigvals(first @ second).real, 0.0)).sum()
    expected = (
        ((one.mean(0) - other.mean(0)) ** 2).sum() + np.trace(first) + np.trace(second) - 2 * roots
    )
    assert frechet_distance(one, other) == pytest.approx(expected, rel=1e-4)


def test_unbiased_frechet__few_images_no_longer_add_to_it():
    plain, corrected = [], []
    for seed in range(6):
        one, other = _draws(seed, 200, 10), _draws(seed + 100, 200, 10)
        plain.append(frechet_distance(one, other))
        corrected.append(unbiased_frechet(one, other, seed=seed))
    assert np.mean(plain) > 0.2
    assert np.mean(corrected) < 0.4 * np.mean(plain)


def test_kernel_distance__unbiased_over_draws():
    random = np.random.default_rng(5)
    points = random.normal(size=(6, 3))
    first, second = random.dirichlet(np.ones(6)), random.dirichlet(np.ones(6))
    kernel = (points @ points.T / 3 + 1.0) ** 3
    truth = (first - second) @ kernel @ (first - second)
    values, claimed = [], []
    for seed in range(400):
        one, other = points[random.choice(6, 24, p=first)], points[random.choice(6, 16, p=second)]
        found = kernel_distance(one, other, seed=seed, n_subsets=8)
        values.append(found.value)
        claimed.append(found.standard_error)
    error = np.std(values) / np.sqrt(len(values))
    assert abs(np.mean(values) - truth) < 3.5 * error
    # The error that is claimed covers the one there is, and is of its size.
    assert np.std(values) < 1.1 * np.sqrt(np.mean(np.square(claimed))) < 3 * np.std(values)


def test_kernel_distance__zero_for_the_same_distribution_and_clear_for_another():
    same = kernel_distance(_draws(0, 600, 8), _draws(1, 500, 8), seed=0)
    other = kernel_distance(_draws(0, 600, 8), _draws(1, 500, 8, mean=0.4), seed=0)
    assert abs(same.value) < 3 * same.standard_error
    assert other.value > 5 * other.standard_error


def test_kernel_distance__blind_to_rotation_and_repeatable():
    one, other, turn = _draws(0, 50, 6), _draws(1, 40, 6, scale=2.0), _rotation(3, 6)
    found = kernel_distance(one, other, seed=4)
    assert kernel_distance(one, other, seed=4) == found
    assert kernel_distance(one @ turn, other @ turn, seed=4).value == pytest.approx(
        found.value, rel=1e-9
    )


def test_distances_to__sets_of_other_sizes_are_compared_on_equally_many():
    reference = _draws(0, 400, 16)
    large, small = _draws(1, 400, 16), _draws(2, 40, 16)
    holed = np.concatenate([large, np.full((3, 16), np.nan)])
    rows = {
        row.name: row
        for row in distances_to(
            reference, {"large": holed, "small": small, "one": small[:1]}, space="s", seed=0
        )
    }
    assert set(rows) == {"large", "small"}
    assert rows["large"].n_images == 400
    assert rows["large"].n_equal == rows["small"].n_equal == 40
    # All three sets come from one distribution: all of them look farther with fewer images, and alike with equally many.
    assert rows["small"].frechet > 2 * rows["large"].frechet
    assert rows["small"].frechet_equal == pytest.approx(rows["large"].frechet_equal, rel=0.25)
    assert rows["large"].warning == ""
    assert "40 images for 16 dimensions: few images" in rows["small"].warning


@pytest.mark.parametrize(("n_images", "words"), [(10, "lack rank"), (40, "few images"), (80, "")])
def test_warning__says_when_there_are_too_few_images(n_images, words):
    (row,) = distances_to(_draws(0, 400, 16), {"set": _draws(1, n_images, 16)}, space="s", seed=0)
    assert (words in row.warning) if words else row.warning == ""


@pytest.mark.parametrize(
    "measure", [frechet_distance, lambda one, other: kernel_distance(one, other, seed=0)]
)
def test_distances__what_cannot_be_compared_is_refused(measure):
    with pytest.raises(DataError, match="same length"):
        measure(_draws(0, 4, 3), _draws(0, 4, 2))
    with pytest.raises(DataError, match="finite"):
        measure(np.full((4, 3), np.nan), _draws(0, 4, 3))
    with pytest.raises(NotEnoughDataError, match="two images"):
        measure(_draws(0, 1, 3), _draws(0, 4, 3))
