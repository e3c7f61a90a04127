import json

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from safetensors.torch import load_file

from weakspot.core.dataset import Task
from weakspot.core.errors import ModelError
from weakspot.core.heads import Head
from weakspot.models.files import head_bytes, read_head, write_head

HEAD = Head(
    weights=np.array([[1.5, -2.0, 0.25], [0.0, 3.0, -1.0]], np.float32),
    bias=np.array([0.5, -0.5], np.float32),
    task=Task.MULTI_LABEL,
)
NAMES = ('kühl; "nah"', "dog")


def test_read_head__gives_what_was_written(tmp_path):
    write_head(tmp_path / "deep" / "h.safetensors", HEAD, NAMES)
    found, names = read_head(tmp_path / "deep" / "h.safetensors")
    np.testing.assert_array_equal(found.weights, HEAD.weights)
    np.testing.assert_array_equal(found.bias, HEAD.bias)
    assert found.task is Task.MULTI_LABEL
    assert names == NAMES


def test_head_bytes__same_bytes_for_the_same_head():
    assert len({head_bytes(HEAD, NAMES) for _ in range(20)}) == 1


def test_write_head__a_torch_layer_takes_the_file_as_it_is(tmp_path):
    write_head(tmp_path / "h.safetensors", HEAD, NAMES)
    layer = torch.nn.Linear(3, 2)
    layer.load_state_dict(load_file(tmp_path / "h.safetensors"))
    np.testing.assert_allclose(layer(torch.ones(1, 3)).detach().numpy(), [[0.25, 1.5]])


def test_write_head__problems(tmp_path):
    path = tmp_path / "h.safetensors"
    write_head(path, HEAD, NAMES)
    content = path.read_bytes()
    with pytest.raises(ModelError, match=r"nothing is overwritten: h\.safetensors"):
        write_head(path, HEAD, NAMES)
    assert path.read_bytes() == content
    for head, names, message in (
        (HEAD, ("dog",), "2 different class names"),
        (HEAD, ("dog", "dog"), "2 different class names"),
        (
            Head(weights=np.full((2, 3), np.inf, np.float32), bias=HEAD.bias),
            NAMES,
            "NaN or infinity",
        ),
        (
            Head(weights=HEAD.weights, bias=HEAD.bias[:1]),
            NAMES,
            r"weights \[c, d\] and a bias \[c\]",
        ),
    ):
        with pytest.raises(ModelError, match=message):
            head_bytes(head, names)


def test_read_head__bad_files(tmp_path):
    path = tmp_path / "h.safetensors"
    with pytest.raises(ModelError, match="no such file"):
        read_head(path)
    for content in (b"", b"no tensors", head_bytes(HEAD, NAMES)[:-5]):
        path.write_bytes(content)
        with pytest.raises(ModelError, match="cut short"):
            read_head(path)
    tensors = {"weight": HEAD.weights, "bias": HEAD.bias}
    about = {"version": 1, "class_names": ["a", "b"], "task": "single-label"}
    for held, metadata, message in (
        (tensors, None, "not written by weakspot"),
        (tensors, {"weakspot": "{"}, "not written by weakspot"),
        (tensors, {"weakspot": json.dumps({**about, "version": 2})}, "another version.*2"),
        (
            tensors,
            {"weakspot": json.dumps({**about, "task": "regression"})},
            "names no classes or no task",
        ),
        (
            tensors,
            {"weakspot": json.dumps({**about, "class_names": ["a"]})},
            "2 different class names",
        ),
        ({"bias": HEAD.bias}, {"weakspot": json.dumps(about)}, "no weight"),
        (
            {"weight": HEAD.bias, "bias": HEAD.bias},
            {"weakspot": json.dumps(about)},
            r"weights \[c, d\]",
        ),
    ):
        save_file(held, path, metadata=metadata)
        with pytest.raises(ModelError, match=message):
            read_head(path)
