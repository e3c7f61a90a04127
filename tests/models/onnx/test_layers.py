import numpy as np
import pytest
import torch

from weakspot.models.embedded.witnesses import INPUT, LayeredGraph
from weakspot.models.onnx.session import make_session, run_session

SIDE = 9


def _layer(rng, n_out, n_in, side):
    return {
        "conv.weight": rng.normal(size=(n_out, n_in, side, side)).astype(np.float32),
        "norm.weight": rng.uniform(0.5, 2, n_out).astype(np.float32),
        "norm.bias": rng.normal(size=n_out).astype(np.float32),
        "norm.running_mean": rng.normal(size=n_out).astype(np.float32),
        "norm.running_var": rng.uniform(0.5, 2, n_out).astype(np.float32),
    }


def _run(graph, output, path, images):
    graph.write(path, [output], side=SIDE)
    return run_session(make_session(path), {INPUT: images})[0]


def _by_torch(arrays, images, *, stride, padding, groups):
    tensors = {name: torch.from_numpy(value) for name, value in arrays.items()}
    padded = torch.nn.functional.pad(torch.from_numpy(images), padding)
    found = torch.nn.functional.conv2d(padded, tensors["conv.weight"], stride=stride, groups=groups)
    return torch.nn.functional.batch_norm(
        found,
        tensors["norm.running_mean"],
        tensors["norm.running_var"],
        tensors["norm.weight"],
        tensors["norm.bias"],
        eps=1e-3,
    )


@pytest.mark.parametrize(
    ("n_out", "n_in", "stride", "same", "padding"),
    [
        (4, 3, 2, False, (1, 1, 1, 1)),
        (4, 3, 2, True, (1, 1, 1, 1)),
        (3, 1, 1, True, (1, 1, 1, 1)),
    ],
)
def test_convolve__equals_torch(tmp_path, n_out, n_in, stride, same, padding):
    rng = np.random.default_rng(0)
    arrays = _layer(rng, n_out, n_in, 3)
    images = rng.normal(size=(2, 3, SIDE, SIDE)).astype(np.float32)
    graph = LayeredGraph(arrays, epsilon=1e-3)
    made = graph.convolve(INPUT, "conv", "norm", stride=stride, same=same)

    found = _run(graph, made, tmp_path / "layer.onnx", images)

    groups = 3 if n_in == 1 else 1
    expected = _by_torch(arrays, images, stride=stride, padding=padding, groups=groups)
    assert np.allclose(found, expected.numpy(), atol=1e-5)


def test_convolve__padding_of_tensorflow_is_at_the_end(tmp_path):
    rng = np.random.default_rng(1)
    arrays = _layer(rng, 4, 3, 5)
    images = rng.normal(size=(1, 3, SIDE + 1, SIDE + 1)).astype(np.float32)
    graph = LayeredGraph(arrays, epsilon=1e-3)
    made = graph.convolve(INPUT, "conv", "norm", stride=2, same=True, activation="relu6")
    graph.write(tmp_path / "layer.onnx", [made], side=SIDE + 1)

    found = run_session(make_session(tmp_path / "layer.onnx"), {INPUT: images})[0]

    expected = _by_torch(arrays, images, stride=2, padding=(1, 2, 1, 2), groups=1)
    assert np.allclose(found, expected.clamp(0, 6).numpy(), atol=1e-5)


def test_linear__scores_of_the_mean_over_places(tmp_path):
    images = np.arange(2 * 3 * SIDE * SIDE, dtype=np.float32).reshape(2, 3, SIDE, SIDE)
    graph = LayeredGraph({}, epsilon=0.0)
    weights = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    scores = graph.linear(graph.pool(INPUT), weights, np.array([0.0, 1.0]))

    found = _run(graph, scores, tmp_path / "layer.onnx", images)

    means = images.mean(axis=(2, 3))
    assert np.allclose(found, np.stack([means[:, 0], means[:, 2] + 1], axis=1))
