import io
import json

import numpy as np
import pytest
import torch
from PIL import Image

from weakspot.models.embedded.witnesses import (
    INPUT,
    OBJECT_WEIGHTS,
    ObjectsNetwork,
    object_words,
    write_efficientnet,
)
from weakspot.models.onnx.session import make_session, run_session
from weakspot.project.demo import groceries


def _arrays(rng):
    """Weights of two tiny blocks: one that halves, one that adds what it was given."""
    arrays = {}

    def layer(conv, norm, n_out, n_in, side):
        arrays[f"{conv}.weight"] = rng.normal(0, 0.5, size=(n_out, n_in, side, side)).astype(
            np.float32
        )
        for name, low in (("weight", 0.5), ("bias", -0.5), ("running_mean", -0.5)):
            arrays[f"{norm}.{name}"] = rng.uniform(low, 1, n_out).astype(np.float32)
        arrays[f"{norm}.running_var"] = rng.uniform(0.5, 2, n_out).astype(np.float32)

    layer("_conv_stem", "_bn0", 4, 3, 3)
    layer("_blocks.0._depthwise_conv", "_blocks.0._bn1", 4, 1, 3)
    layer("_blocks.0._project_conv", "_blocks.0._bn2", 4, 4, 1)
    layer("_blocks.1._expand_conv", "_blocks.1._bn0", 8, 4, 1)
    layer("_blocks.1._depthwise_conv", "_blocks.1._bn1", 8, 1, 5)
    layer("_blocks.1._project_conv", "_blocks.1._bn2", 4, 8, 1)
    layer("_conv_head", "_bn1", 6, 4, 1)
    arrays["_fc.weight"] = rng.normal(size=(3, 6)).astype(np.float32)
    arrays["_fc.bias"] = rng.normal(size=3).astype(np.float32)
    return arrays


def _by_torch(arrays, images):
    tensors = {name: torch.from_numpy(value) for name, value in arrays.items()}

    def layer(x, conv, norm, *, stride=1, active=True):
        kernel = tensors[f"{conv}.weight"]
        side = kernel.shape[2]
        total = max((-(-x.shape[2] // stride) - 1) * stride + side - x.shape[2], 0)
        pads = (total // 2, total - total // 2) * 2
        groups = kernel.shape[0] if kernel.shape[1] == 1 else 1
        x = torch.nn.functional.conv2d(
            torch.nn.functional.pad(x, pads), kernel, stride=stride, groups=groups
        )
        names = ("running_mean", "running_var", "weight", "bias")
        x = torch.nn.functional.batch_norm(
            x, *(tensors[f"{norm}.{one}"] for one in names), eps=1e-3
        )
        return x.clamp(0, 6) if active else x

    x = layer(torch.from_numpy(images), "_conv_stem", "_bn0", stride=2)
    y = layer(x, "_blocks.0._depthwise_conv", "_blocks.0._bn1")
    x = layer(y, "_blocks.0._project_conv", "_blocks.0._bn2", active=False) + x
    y = layer(x, "_blocks.1._expand_conv", "_blocks.1._bn0")
    y = layer(y, "_blocks.1._depthwise_conv", "_blocks.1._bn1", stride=2)
    x = layer(y, "_blocks.1._project_conv", "_blocks.1._bn2", active=False)
    x = layer(x, "_conv_head", "_bn1").mean(dim=(2, 3))
    return torch.softmax(x @ tensors["_fc.weight"].T + tensors["_fc.bias"], dim=1).numpy()


def test_write_efficientnet__equals_torch(tmp_path):
    rng = np.random.default_rng(0)
    arrays = _arrays(rng)
    images = rng.normal(size=(1, 3, 224, 224)).astype(np.float32)
    write_efficientnet(arrays, tmp_path / "tiny.onnx", n_blocks=2)

    found = run_session(make_session(tmp_path / "tiny.onnx"), {INPUT: images})[0]

    assert np.allclose(found, _by_torch(arrays, images), atol=1e-4)


@pytest.mark.network
def test_objects_network__sees_a_granny_smith():
    chosen = [one for one in groceries() if one.fine == "Granny-Smith"][:4]
    images = [Image.open(io.BytesIO(one.data)).convert("RGB") for one in chosen]

    said = [json.loads(text) for text in ObjectsNetwork(threads=1).speak(images)]

    place = next(n for n, words in enumerate(object_words()) if words[0] == "Granny Smith")
    assert sum(float(one.get(str(place), 0.0)) > 0.3 for one in said) >= 3
    assert all(sum(one.values()) <= 1.01 for one in said)


@pytest.mark.network
def test_object_words__of_all_classes():
    words = object_words()

    assert len(words) == 1000
    assert words[0] == ("tench", "Tinca tinca")


def test_witness_id__names_weights_and_preparation():
    assert OBJECT_WEIGHTS.sha256[:12] in ObjectsNetwork().witness_id
    assert ObjectsNetwork().image_side == 224
