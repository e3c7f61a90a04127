import numpy as np

from weakspot.align.network import Adam, backward, forward, initial_weights


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
        change = ((forward(moved, inputs).outputs - forward(weights, inputs).outputs) * pull).sum() / 1e-5
        np.testing.assert_allclose(slopes[name][place], change, atol=1e-3)


def test_update__first_step_has_the_size_of_the_rate() -> None:
    weights = {"bias": np.array([1.0, 1.0], dtype=np.float32)}

    Adam(weights, weight_decay=0.5).update(weights, {"bias": np.array([0.3, -7.0], dtype=np.float32)}, 0.01)

    np.testing.assert_allclose(weights["bias"], [0.99, 1.01], rtol=1e-5)


def test_update__decay_pulls_matrices_to_zero() -> None:
    weights = {"linear": np.array([[2.0]], dtype=np.float32)}

    Adam(weights, weight_decay=0.5).update(weights, {"linear": np.array([[0.0]], dtype=np.float32)}, 0.1)

    np.testing.assert_allclose(weights["linear"], [[1.9]], rtol=1e-6)
