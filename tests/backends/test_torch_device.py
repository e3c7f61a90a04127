import sys

import pytest
import torch

from weakspot.backends.open_clip_embedder import OpenClipEmbedder
from weakspot.backends.torch_device import require_torch, torch_device, torch_dtype
from weakspot.backends.transformers_embedder import TransformersEmbedder
from weakspot.core.errors import ConfigError, MissingExtraError


def test_require_torch__there():
    assert require_torch("Hub models") is torch


def test_require_torch__not_there(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"Hub models need the library 'torch'.*weakspot\[torch\]"):
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
