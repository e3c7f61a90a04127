import subprocess
import sys

import pytest
import torch

from weakspot.core.errors import ConfigError, MissingExtraError
from weakspot.models.torch.embedders import OpenClipEmbedder
from weakspot.models.torch.runtime import (
    OPERATORS,
    declare_torchvision_operators,
    require_torch,
    torch_device,
    torch_dtype,
)
from weakspot.models.transformers.images import TransformersEmbedder


def test_require_torch__there():
    assert require_torch("Hub models") is torch


def test_require_torch__not_there(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        MissingExtraError, match=r"Hub models need the library 'torch'.*weakspot\[torch\]"
    ):
        require_torch("Hub models")


@pytest.mark.parametrize(
    ("library", "embedder"),
    [
        ("transformers", lambda: TransformersEmbedder(model="some/model")),
        ("open_clip", lambda: OpenClipEmbedder(model="ViT-B-16", pretrained="openai")),
    ],
)
def test_embedders__name_the_extra_they_need(monkeypatch, library, embedder):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtraError, match=rf"need the library '{library}'.*weakspot\[hub\]"):
        embedder().embed_texts(["dog"])


def test_torch_device__automatic_and_named():
    assert torch_device(torch, "auto").type in {"cpu", "cuda", "mps"}
    assert torch_device(torch, "cpu").type == "cpu"


def test_torch_device__impossible():
    with pytest.raises(ConfigError, match="cannot use the device 'nowhere'"):
        torch_device(torch, "nowhere")


def test_torch_dtype__by_name():
    assert torch_dtype(torch, "bfloat16") is torch.bfloat16
    with pytest.raises(ConfigError, match="no kind of number"):
        torch_dtype(torch, "int8")


SCRIPT = """
from weakspot.models.torch.runtime import declare_torchvision_operators
first = declare_torchvision_operators()
assert declare_torchvision_operators() == first
import torchvision
from torchvision.transforms import InterpolationMode
print(first, torchvision.extension._has_ops())
"""


def test_declare_torchvision_operators__torchvision_imports_in_a_fresh_process():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    declared, has_operators = done.stdout.split()
    assert (declared == "True") == (has_operators == "False")


def test_declare_torchvision_operators__names_exist_afterwards():
    declare_torchvision_operators()
    assert all(hasattr(torch.ops.torchvision, name) for name in OPERATORS)
