from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.models.tiny_graphs import entry, node, save_graph

from weakspot.core.errors import ModelError
from weakspot.models.embedded.encoder import known_image
from weakspot.models.embedded.segmenter import (
    GRID,
    SIDE,
    TOKENS,
    WIDTH,
    PatchTokens,
    known_tokens,
    token_graph_path,
    write_token_graph,
)
from weakspot.models.onnx.session import make_session

CELL = SIDE // GRID


def small_model(path: Path) -> Path:
    """A model in the real one's form: the token of a patch is the mean of its pixels, and its own output pools all of them."""
    weights = np.zeros((WIDTH, 3, CELL, CELL), dtype=np.float32)
    for channel in range(3):
        weights[channel, channel] = 1 / CELL**2
    first = np.zeros((1, 1, WIDTH), dtype=np.float32)
    first[..., 3] = 1.0
    constants = {
        "weights": weights,
        "first": first,
        "shape": np.array([1, WIDTH, GRID * GRID], dtype=np.int64),
    }
    nodes = [
        node("Conv", ["input", "weights"], ["patches"], strides=[CELL, CELL]),
        node("Reshape", ["patches", "shape"], ["flat"]),
        node("Transpose", ["flat"], ["rows"], perm=[0, 2, 1]),
        node("Concat", ["first", "rows"], [TOKENS], axis=1),
        node("ReduceMean", [TOKENS], ["output"], axes=[1], keepdims=0),
    ]
    given, found = entry("input", shape=[1, 3, SIDE, SIDE]), entry("output", shape=[1, WIDTH])
    return save_graph(path, nodes, [given], [found], constants)


@pytest.fixture
def cache(tmp_path):
    """A cache folder with the small model made ready, and the mean token of the known image."""
    write_token_graph(small_model(tmp_path / "model.onnx"), token_graph_path(tmp_path))
    return tmp_path, known_tokens(make_session(token_graph_path(tmp_path)))


def test_of__one_token_a_cell_row_by_row(cache):
    folder, known = cache
    pixels = np.zeros((SIDE, SIDE, 3), dtype=np.uint8)
    pixels[2 * CELL : 3 * CELL, 5 * CELL : 6 * CELL] = 255
    tokens = PatchTokens(known=known, cache_dir=folder, threads=1).of(Image.fromarray(pixels))
    assert tokens.shape == (1 + GRID * GRID, WIDTH)
    assert int(tokens[1:, 0].argmax()) == 2 * GRID + 5


def test_of__image_is_squeezed_so_that_nothing_is_left_out(cache):
    folder, known = cache
    pixels = np.zeros((SIDE, 2 * SIDE, 3), dtype=np.uint8)
    pixels[:, -2 * CELL :] = 255
    tokens = PatchTokens(known=known, cache_dir=folder, threads=1).of(Image.fromarray(pixels))
    assert tokens[1:, 0].reshape(GRID, GRID).argmax(axis=1).tolist() == [GRID - 1] * GRID


def test_of__model_that_computes_wrong_is_refused(cache):
    folder, known = cache
    with pytest.raises(ModelError, match=r"self-test: the known image is at cosine -1\.000"):
        PatchTokens(known=-known, cache_dir=folder, threads=1).of(Image.fromarray(known_image()))


def test_of__damaged_graph_is_made_again(cache, monkeypatch, tmp_path):
    folder, known = cache
    token_graph_path(folder).write_bytes(b"damaged")
    model = small_model(tmp_path / "again.onnx")
    monkeypatch.setattr("weakspot.models.embedded.segmenter.fetch", lambda *_given, **_more: model)
    tokens = PatchTokens(known=known, cache_dir=folder, threads=1).of(
        Image.fromarray(known_image())
    )
    assert tokens.shape == (1 + GRID * GRID, WIDTH)
