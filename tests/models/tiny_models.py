"""Tiny models in their real formats, one builder for every registered model that cannot be built without arguments."""

import copy
import json
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from tests.models.tiny_graphs import (
    BIAS,
    CONV,
    RANDOM,
    WEIGHTS,
    entry,
    gemm,
    mean_tower,
    pooled,
    save_graph,
    word_tower,
)
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from weakspot.core.registry import part_class
from weakspot.models.embedded.encoder import SentenceEncoder
from weakspot.models.text_side import TextProjection
from weakspot.testing import material
from weakspot.testing.fakes import PlantedEmbedder

Factory = Callable[[], object]
Builder = Callable[[Path, ExitStack], Factory]

NAMES = ("disc", "square", "triangle", "star")
WORDS = [
    "[PAD]",
    "[UNK]",
    "[BOS]",
    "[EOS]",
    "a",
    "photo",
    "of",
    "red",
    "green",
    "disc",
    "dark",
    "grass",
    "street",
    "on",
]
PIXELS = {"mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]}


def _part(role: str, name: str, **options: object) -> Factory:
    return lambda: part_class(role, name)(**options)


def _plain(role: str, name: str, **options: object) -> Builder:
    return lambda _folder, _stack: _part(role, name, **options)


def mean_colour_probabilities(images: list[np.ndarray]) -> np.ndarray:
    means = np.stack([image.reshape(-1, 3).mean(axis=0) for image in images]) / 64.0
    powers = np.exp(np.concatenate([means, 2.0 * np.ones((len(means), 1))], axis=1))
    return (powers / powers.sum(axis=1, keepdims=True)).astype(np.float32)


def _onnx_classifier(folder: Path, _stack: ExitStack) -> Factory:
    given, found = entry("x", shape=["n", 3, 16, 16]), entry("y", shape=["n", 4])
    nodes = [*pooled(), *gemm(end="Softmax")]
    constants = {"conv": CONV, "w": WEIGHTS, "b": BIAS}
    path = save_graph(folder / "model.onnx", nodes, [given], [found], constants)
    return _part("classifiers", "onnx", path=path, class_names=NAMES)


def _onnx_pair(folder: Path, _stack: ExitStack) -> Factory:
    mean_tower(folder / "image.onnx", side=16, weights=WEIGHTS[:, :3].T.copy())
    word_tower(folder / "text.onnx", RANDOM.standard_normal((len(WORDS), 4)).astype(np.float32))
    _tokenizer().save(str(folder / "tokenizer.json"))
    (folder / "embedder.json").write_text(json.dumps({"images": {"image_side": 16, **PIXELS}}))
    return _part("embedders", "onnx-pair", folder=folder)


def _aligned(folder: Path, stack: ExitStack) -> Factory:
    images = _onnx_pair(folder, stack)
    draws = np.random.default_rng(1)
    shapes = {
        "image_mean": (4,),
        "text_mean": (4,),
        "linear": (4, 4),
        "bias": (4,),
        "hidden_in": (4, 3),
        "hidden_bias": (3,),
    }
    arrays = {
        name: draws.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()
    }
    TextProjection(**arrays, hidden_out=np.zeros((3, 4), np.float32)).save(folder / "text_side.npz")
    sentences = SentenceEncoder(folder / "text.onnx", folder / "tokenizer.json")
    return lambda: part_class("embedders", "aligned")(
        images=images(), text_side=folder, sentences=sentences
    )


def _tokenizer() -> Tokenizer:
    made = Tokenizer(
        WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]")
    )
    made.pre_tokenizer = Whitespace()
    made.post_processor = TemplateProcessing(
        single="[BOS] $A [EOS]", special_tokens=[("[BOS]", 2), ("[EOS]", 3)]
    )
    return made


def _sklearn(_folder: Path, _stack: ExitStack) -> Factory:
    from sklearn.linear_model import LogisticRegression

    world = material.small_world()
    model = LogisticRegression().fit(
        world.embeddings(), [NAMES[label] for label in world.dataset.labels]
    )
    return _part("classifiers", "sklearn", model=model)


def _given_embeddings(folder: Path, _stack: ExitStack) -> Factory:
    np.save(folder / "embeddings.npy", material.small_world().embeddings())
    return _part(
        "embedders", "given-embeddings", path=folder / "embeddings.npy", text=PlantedEmbedder()
    )


def _torch(_folder: Path, _stack: ExitStack) -> Factory:
    import torch

    torch.manual_seed(0)
    layers = [
        torch.nn.Conv2d(3, 5, 3),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(5, 4),
    ]
    return _part(
        "classifiers",
        "torch",
        module=torch.nn.Sequential(*layers),
        class_names=NAMES,
        image_side=16,
    )


def _timm(folder: Path, _stack: ExitStack) -> Factory:
    import torch
    from safetensors.torch import save_file

    from weakspot.models.torch.runtime import declare_torchvision_operators

    declare_torchvision_operators()
    import timm

    torch.manual_seed(0)
    save_file(
        timm.create_model("test_resnet", pretrained=False, num_classes=4).state_dict(),
        folder / "m.safetensors",
    )
    return _part(
        "classifiers",
        "timm",
        model="test_resnet",
        checkpoint=folder / "m.safetensors",
        class_names=NAMES,
        image_side=64,
    )


def _transformers_classifier(folder: Path, _stack: ExitStack) -> Factory:
    from tests.models.tiny_networks import save_vit

    save_vit(folder, names=NAMES)
    return _part("classifiers", "transformers", model=folder)


TOWER = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
}
VISION = {**TOWER, "image_size": 32, "patch_size": 16}
TEXT = {**TOWER, "vocab_size": len(WORDS), "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}


def save_words(folder: Path) -> None:
    """Save a tokenizer of transformers that knows `WORDS`."""
    from transformers import PreTrainedTokenizerFast

    named = {"pad_token": "[PAD]", "unk_token": "[UNK]", "bos_token": "[BOS]", "eos_token": "[EOS]"}
    PreTrainedTokenizerFast(tokenizer_object=_tokenizer(), **named).save_pretrained(folder)


def save_clip(folder: Path, *, longest: int = 16, **images: object) -> Path:
    """Save a CLIP of transformers with its tokenizer, and how its images are prepared."""
    import torch
    from transformers import CLIPConfig, CLIPModel

    torch.manual_seed(0)
    text = {**TEXT, "max_position_embeddings": longest}
    config = CLIPConfig(text_config=text, vision_config=VISION, projection_dim=8)
    CLIPModel(config).save_pretrained(folder)
    save_words(folder)
    usual = {
        "size": {"shortest_edge": 32},
        "crop_size": {"height": 32, "width": 32},
        "do_center_crop": True,
        "resample": 3,
        "image_mean": PIXELS["mean"],
        "image_std": PIXELS["std"],
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(usual | images))
    return folder


def _transformers_embedder(folder: Path, _stack: ExitStack) -> Factory:
    return _part("embedders", "transformers", model=save_clip(folder), device="cpu")


def _open_clip(folder: Path, _stack: ExitStack) -> Factory:
    import torch

    from weakspot.models.torch.runtime import declare_torchvision_operators

    declare_torchvision_operators()
    import open_clip

    torch.manual_seed(0)
    vision = {"image_size": 32, "layers": 2, "width": 16, "head_width": 8, "patch_size": 16}
    text = {"context_length": 16, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 2}
    model = {"embed_dim": 8, "vision_cfg": vision, "text_cfg": text}
    (folder / "conformance-tiny.json").write_text(json.dumps(model))
    open_clip.add_model_config(folder / "conformance-tiny.json")
    torch.save(
        open_clip.create_model("conformance-tiny").state_dict(),
        folder / "open_clip_pytorch_model.bin",
    )
    (folder / "open_clip_config.json").write_text(
        json.dumps({"model_cfg": model, "preprocess_cfg": PIXELS})
    )
    return _part("embedders", "open-clip", model=str(folder), device="cpu")


def _embedded(_folder: Path, _stack: ExitStack) -> Factory:
    # Opening the real tower takes seconds: copies share what one of them has opened.
    opened = part_class("embedders", "embedded")(threads=2)
    opened.embed_prepared([opened.prepare(material.images()[0])])
    return lambda: copy.copy(opened)


def _inception(folder: Path, _stack: ExitStack) -> Factory:
    """Save a TorchScript file with the interface of the usual FID network."""
    import torch

    class Features(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = torch.nn.Conv2d(3, 5, 3, stride=4)

        def forward(self, images: torch.Tensor, return_features: bool = False) -> torch.Tensor:  # noqa: FBT001, FBT002 - as it is called
            maps = self.conv(images.float() / 127.5 - 1.0)
            return (
                maps.mean(dim=[2, 3])
                if return_features
                else torch.softmax(maps.mean(dim=[2, 3]), dim=1)
            )

    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message=".*torch.jit.*deprecated", category=DeprecationWarning
        )
        torch.jit.script(Features()).save(str(folder / "inception.pt"))
    return _part("embedders", "inception", path=folder / "inception.pt", side=32)


BUILDERS: dict[tuple[str, str], Builder] = {
    ("classifiers", "callable"): _plain(
        "classifiers", "callable", function=mean_colour_probabilities, class_names=NAMES
    ),
    ("classifiers", "onnx"): _onnx_classifier,
    ("classifiers", "sklearn"): _sklearn,
    ("classifiers", "timm"): _timm,
    ("classifiers", "torch"): _torch,
    ("classifiers", "transformers"): _transformers_classifier,
    ("embedders", "aligned"): _aligned,
    ("embedders", "embedded"): _embedded,
    ("embedders", "given-embeddings"): _given_embeddings,
    ("embedders", "inception"): _inception,
    ("embedders", "onnx-pair"): _onnx_pair,
    ("embedders", "open-clip"): _open_clip,
    ("embedders", "transformers"): _transformers_embedder,
}
