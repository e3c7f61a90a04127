import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from weakspot.core.errors import ConfigError
from weakspot_lab.decode.space import harder_and_easier, slerp

numbers = st.floats(-10, 10, width=32)
embeddings = arrays(np.float32, 5, elements=numbers).filter(
    lambda values: np.abs(values).max() > 1e-3
)
shares = st.floats(0, 1)


def _angle(first, second):
    first, second = (np.asarray(one, float) / np.linalg.norm(one) for one in (first, second))
    return 2 * np.arctan2(np.linalg.norm(first - second), np.linalg.norm(first + second))


@given(embeddings, embeddings, shares)
def test_slerp__gives_unit_embeddings_at_the_share_of_the_angle(first, second, alpha):
    whole = _angle(first, second)
    found = slerp(first, second, alpha)
    assert found.dtype == np.float32
    assert np.linalg.norm(found) == pytest.approx(1.0, abs=1e-5)
    assert _angle(first, found) == pytest.approx(alpha * whole, abs=1e-4)
    assert _angle(found, second) == pytest.approx((1 - alpha) * whole, abs=1e-4)


@given(embeddings, embeddings)
def test_slerp__begins_at_the_first_and_ends_at_the_second(first, second):
    assert np.allclose(slerp(first, second, 0.0), first / np.linalg.norm(first), atol=1e-5)
    assert np.allclose(slerp(first, second, 1.0), second / np.linalg.norm(second), atol=1e-4)


@given(embeddings, shares)
def test_slerp__parallel_embeddings_stay(first, alpha):
    assert np.allclose(slerp(first, 3 * first, alpha), first / np.linalg.norm(first), atol=1e-5)


@given(embeddings, shares)
def test_slerp__opposite_embeddings_are_joined_by_one_fixed_arc(first, alpha):
    found = slerp(first, -first, alpha)
    assert _angle(first, found) == pytest.approx(alpha * np.pi, abs=1e-4)
    assert (found == slerp(first, -first, alpha)).all()


@given(embeddings, embeddings, st.floats(1e-20, 1e20))
def test_slerp__lengths_do_not_matter(first, second, factor):
    assume(_angle(first, second) < 3)
    assert np.allclose(
        slerp(first.astype(float) * factor, second, 0.3), slerp(first, second, 0.3), atol=1e-5
    )


@pytest.mark.parametrize(
    ("first", "second", "alpha"),
    [
        ([0.0, 0.0], [1.0, 0.0], 0.1),
        ([1.0, 0.0], [np.nan, 0.0], 0.1),
        ([1.0, 0.0], [1.0, 0.0, 0.0], 0.1),
        ([1.0, 0.0], [0.0, 1.0], 1.5),
        ([1.0, 0.0], [0.0, 1.0], float("nan")),
        ([[1.0, 0.0]], [0.0, 1.0], 0.1),
        ([1.0], [-1.0], 0.5),
    ],
)
def test_slerp__refuses_what_cannot_be_rotated(first, second, alpha):
    with pytest.raises(ConfigError):
        slerp(np.array(first), np.array(second), alpha)


@given(embeddings, embeddings)
def test_harder_and_easier__move_towards_and_away_from_the_direction(reference, direction):
    assume(0.2 < _angle(reference, direction) < 2.9)
    alphas = [0.0, 0.1, 0.2, 0.3]
    harder, easier = harder_and_easier(reference, direction, alphas)
    along = direction / np.linalg.norm(direction)
    assert (np.diff(harder @ along) > 0).all()
    assert (np.diff(easier @ along) < 0).all()
    assert np.allclose(harder[0], easier[0], atol=1e-6)


def test_harder_and_easier__no_alphas_no_embeddings():
    harder, easier = harder_and_easier(np.array([1.0, 0.0]), np.array([0.0, 1.0]), [])
    assert harder.shape == easier.shape == (0, 2)
