import json

import numpy as np
import pytest
import torch
from PIL import Image

from weakspot.models.embedded.encoder import known_image
from weakspot.models.embedded.witnesses import (
    INPUT,
    ScenesNetwork,
    scene_names,
    write_wide_resnet,
)
from weakspot.models.onnx.session import make_session, run_session


def _arrays(rng):
    arrays = {}

    def layer(conv, norm, n_out, n_in, side):
        arrays[f"module.{conv}.weight"] = rng.normal(0, 0.4, (n_out, n_in, side, side)).astype(
            np.float32
        )
        for name, low in (("weight", 0.5), ("bias", -0.5), ("running_mean", -0.5)):
            arrays[f"module.{norm}.{name}"] = rng.uniform(low, 1, n_out).astype(np.float32)
        arrays[f"module.{norm}.running_var"] = rng.uniform(0.5, 2, n_out).astype(np.float32)

    layer("conv1", "bn1", 2, 3, 7)
    width = 2
    for stage in (1, 2, 3, 4):
        n_out = 2 * stage
        layer(f"layer{stage}.0.conv1", f"layer{stage}.0.bn1", n_out, width, 3)
        layer(f"layer{stage}.0.conv2", f"layer{stage}.0.bn2", n_out, n_out, 3)
        if stage > 1:
            layer(f"layer{stage}.0.downsample.0", f"layer{stage}.0.downsample.1", n_out, width, 1)
        width = n_out
    arrays["module.fc.weight"] = rng.normal(size=(5, width)).astype(np.float32)
    arrays["module.fc.bias"] = rng.normal(size=5).astype(np.float32)
    return arrays


def _by_torch(arrays, responses, images):
    tensors = {name.removeprefix("module."): torch.from_numpy(v) for name, v in arrays.items()}

    def layer(x, conv, norm, stride=1):
        kernel = tensors[f"{conv}.weight"]
        x = torch.nn.functional.conv2d(x, kernel, stride=stride, padding=(kernel.shape[2] - 1) // 2)
        names = ("running_mean", "running_var", "weight", "bias")
        return torch.nn.functional.batch_norm(x, *(tensors[f"{norm}.{one}"] for one in names))

    x = layer(torch.from_numpy(images), "conv1", "bn1", 2).relu()
    for stage in (1, 2, 3, 4):
        block, stride = f"layer{stage}.0", 2 if stage > 1 else 1
        y = layer(x, f"{block}.conv1", f"{block}.bn1", stride).relu()
        y = layer(y, f"{block}.conv2", f"{block}.bn2")
        if stage > 1:
            x = layer(x, f"{block}.downsample.0", f"{block}.downsample.1", stride)
        x = (x + y).relu()
    x = x.mean(dim=(2, 3))
    scores = torch.softmax(x @ tensors["fc.weight"].T + tensors["fc.bias"], dim=1)
    return scores.numpy(), (x @ torch.from_numpy(responses).T).numpy()


def test_write_wide_resnet__equals_torch(tmp_path):
    rng = np.random.default_rng(0)
    arrays, responses = _arrays(rng), rng.normal(size=(3, 8)).astype(np.float32)
    images = rng.normal(size=(1, 3, 224, 224)).astype(np.float32)
    write_wide_resnet(arrays, responses, tmp_path / "tiny.onnx")

    scores, attributes = run_session(make_session(tmp_path / "tiny.onnx"), {INPUT: images})

    expected = _by_torch(arrays, responses, images)
    assert np.allclose(scores, expected[0], atol=1e-5)
    assert np.allclose(attributes, expected[1], atol=1e-4)


@pytest.mark.network
def test_scenes_network__a_house_in_a_meadow_is_outdoors():
    image = Image.fromarray(known_image())

    said = json.loads(ScenesNetwork(threads=1).speak([image])[0])

    names = scene_names()
    outdoors = sum(p for place, p in said["scenes"].items() if names.is_outdoors[int(place)])
    assert outdoors > 0.8
    assert len(said["attributes"]) == len(names.attributes) == 102


@pytest.mark.network
def test_scene_names__in_words():
    names = scene_names()

    assert len(names.scenes) == len(names.is_outdoors) == 365
    beach, kitchen = names.scenes.index("beach"), names.scenes.index("kitchen")
    assert names.is_outdoors[beach]
    assert not names.is_outdoors[kitchen]
    assert names.attributes[0] == "boating"
    assert names.attributes[-1] == "stressful"
    assert "museum indoor" in names.scenes
