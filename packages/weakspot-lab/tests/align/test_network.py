import numpy as np

from weakspot_lab.align.network import (
    Adam,
    backward,
    contrastive,
    forward,
    initial_weights,
    presence,
)


def test_forward__starts_as_the_linear_map() -> None:
    linear = np.array([[2.0, 0.0], [0.0, 1.0]], dtype=np.float32)
    weights = initial_weights(linear, np.zeros(2, dtype=np.float32), 3, np.random.default_rng(0))

    made = forward(weights, np.array([[1.0, 2.0]], dtype=np.float32))

    np.testing.assert_allclose(made.outputs, [[np.sqrt(0.5), np.sqrt(0.5)]], rtol=1e-6)


def test_backward__slopes_are_those_of_the_outputs() -> None:
    rng = np.random.default_rng(1)
    weights = initial_weights(rng.standard_normal((3, 2)), rng.standard_normal(2), 4, rng)
    weights["hidden_out"] = rng.standard_normal((4, 2))
    weights = {name: value.astype(np.float64) for name, value in weights.items()}
    inputs, pull = rng.standard_normal((5, 3)), rng.standard_normal((5, 2))

    slopes = backward(weights, forward(weights, inputs), pull)

    for name, value in weights.items():
        place = tuple(0 for _ in value.shape)
        moved = {key: array.copy() for key, array in weights.items()}
        moved[name][place] += 1e-5
        change = (
            (forward(moved, inputs).outputs - forward(weights, inputs).outputs) * pull
        ).sum() / 1e-5
        np.testing.assert_allclose(slopes[name][place], change, atol=1e-3)


def test_update__first_step_has_the_size_of_the_rate() -> None:
    weights = {"bias": np.array([1.0, 1.0], dtype=np.float32)}

    Adam(weights, weight_decay=0.5).update(
        weights, {"bias": np.array([0.3, -7.0], dtype=np.float32)}, 0.01
    )

    np.testing.assert_allclose(weights["bias"], [0.99, 1.01], rtol=1e-5)


def test_update__decay_pulls_matrices_to_zero() -> None:
    weights = {"linear": np.array([[2.0]], dtype=np.float32)}

    Adam(weights, weight_decay=0.5).update(
        weights, {"linear": np.array([[0.0]], dtype=np.float32)}, 0.1
    )

    np.testing.assert_allclose(weights["linear"], [[1.9]], rtol=1e-6)


def numeric_slope(loss, at: np.ndarray) -> np.ndarray:
    """Slope of a function of an array by central differences."""
    slope = np.zeros_like(at)
    for place in np.ndindex(at.shape):
        step = np.zeros_like(at)
        step[place] = 1e-4
        slope[place] = (loss(at + step) - loss(at - step)) / 2e-4
    return slope


def test_contrastive__two_pairs_by_hand() -> None:
    eye = np.eye(2)

    loss, _ = contrastive(eye, eye, eye.astype(bool), temperature=1.0)

    # Both ways the right one of two has softmax e / (e + 1).
    np.testing.assert_allclose(loss, -np.log(np.e / (np.e + 1)), rtol=1e-6)


def test_contrastive__slope_is_that_of_the_loss() -> None:
    rng = np.random.default_rng(3)
    texts, images = rng.standard_normal((4, 3)), rng.standard_normal((4, 3))
    belong = np.eye(4, dtype=bool)
    belong[0, 1] = True

    _, slope = contrastive(texts, images, belong, temperature=0.5)

    expected = numeric_slope(
        lambda given: contrastive(given, images, belong, temperature=0.5)[0], texts
    )
    np.testing.assert_allclose(slope, expected, atol=1e-4)


def test_presence__slopes_are_those_of_the_loss() -> None:
    rng = np.random.default_rng(4)
    words, images, offsets = (
        rng.standard_normal((2, 3)),
        rng.standard_normal((5, 3)),
        np.array([0.1, -0.2]),
    )
    seen = np.array([[1, 0], [0, 1], [0, -1], [1, 1], [0, 0]], dtype=np.int8)

    _, slope, offset_slope = presence(words, images, seen, offsets, scale=2.0)

    expected = numeric_slope(
        lambda given: presence(given, images, seen, offsets, scale=2.0)[0], words
    )
    np.testing.assert_allclose(slope, expected, atol=1e-4)
    expected = numeric_slope(
        lambda given: presence(words, images, seen, given, scale=2.0)[0], offsets
    )
    np.testing.assert_allclose(offset_slope, expected, atol=1e-4)


def test_presence__unknown_images_and_one_sided_words_do_not_count() -> None:
    words = np.eye(2)
    seen = np.array([[1, 1], [0, 1], [-1, 1]], dtype=np.int8)
    images = np.array([[1.0, 0.0], [0.0, 1.0], [5.0, 5.0]])

    loss, slope, offset_slope = presence(words, images, seen, np.zeros(2), scale=1.0)

    # Word 0: half for the seen (score 1), half for the unseen (score 0).
    np.testing.assert_allclose(loss, 0.5 * np.log1p(np.exp(-1.0)) + 0.5 * np.log(2.0), rtol=1e-6)
    assert slope[1].tolist() == [0.0, 0.0]
    assert offset_slope[1] == 0.0
