import json
from pathlib import Path

import numpy as np
import open_clip
import pytest
import torch
from PIL import Image

from weakspot.core.errors import ModelError, WeakspotError
from weakspot.models.torch.embedders import OpenClipEmbedder

MODEL = {
    "embed_dim": 8,
    "vision_cfg": {"image_size": 32, "layers": 2, "width": 16, "head_width": 8, "patch_size": 16},
    "text_cfg": {"context_length": 16, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 2},
}
IMAGES = {
    "mean": [0.5, 0.5, 0.5],
    "std": [0.5, 0.5, 0.5],
    "interpolation": "bicubic",
    "resize_mode": "squash",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> tuple[Path, torch.nn.Module]:
    """A folder in open_clip's own format, and the model that was written to it."""
    folder = tmp_path_factory.mktemp("models") / "tiny"
    folder.mkdir()
    torch.manual_seed(0)
    (folder.parent / "weakspot-tiny.json").write_text(json.dumps(MODEL))
    open_clip.add_model_config(folder.parent / "weakspot-tiny.json")
    model = open_clip.create_model("weakspot-tiny").eval()
    (folder / "open_clip_config.json").write_text(
        json.dumps({"model_cfg": MODEL, "preprocess_cfg": IMAGES})
    )
    torch.save(model.state_dict(), folder / "open_clip_pytorch_model.bin")
    return folder, model


def image() -> Image.Image:
    return Image.fromarray(np.random.default_rng(0).integers(0, 255, (45, 60, 3), dtype=np.uint8))


def unit(values: torch.Tensor) -> np.ndarray:
    return torch.nn.functional.normalize(values).numpy()


@pytest.mark.parametrize("prefix", ["", "local-dir:"])
def test_folder__as_the_model_itself(made, prefix):
    folder, model = made
    embedder = OpenClipEmbedder(model=f"{prefix}{folder}", device="cpu")
    prepared = embedder.prepare(image())
    squeezed = (
        np.asarray(image().resize((32, 32), Image.Resampling.BICUBIC), dtype=np.float32).transpose(
            2, 0, 1
        )
        / 127.5
        - 1
    )
    np.testing.assert_allclose(prepared, squeezed, atol=1e-5)
    with torch.no_grad():
        np.testing.assert_allclose(
            embedder.embed_prepared([prepared]),
            unit(model.encode_image(torch.tensor(prepared[None]))),
            atol=1e-5,
        )
        tokens = open_clip.SimpleTokenizer(context_length=16)(["a red dog", "grass"])
        np.testing.assert_allclose(
            embedder.embed_texts(["a red dog", "grass"]), unit(model.encode_text(tokens)), atol=1e-5
        )
    assert (embedder.dimension, embedder.image_side, embedder.has_text) == (8, 32, True)
    assert embedder.embed_prepared([]).shape == embedder.embed_texts([]).shape == (0, 8)


def test_checkpoint_file__by_name_of_the_architecture(made):
    folder, model = made
    embedder = OpenClipEmbedder(
        model="weakspot-tiny", pretrained=folder / "open_clip_pytorch_model.bin", device="cpu"
    )
    with torch.no_grad():
        tokens = open_clip.SimpleTokenizer(context_length=16)(["grass"])
        np.testing.assert_allclose(
            embedder.embed_texts(["grass"]), unit(model.encode_text(tokens)), atol=1e-5
        )
    assert embedder.encoder_id.startswith("open-clip:weakspot-tiny:open_clip_pytorch_model.bin@")


def test_encoder_id__weights_and_numbers_count(made):
    folder, _ = made
    first = OpenClipEmbedder(model=folder).encoder_id
    assert first.startswith("open-clip:tiny@")
    assert first == OpenClipEmbedder(model=f"local-dir:{folder}").encoder_id
    assert first != OpenClipEmbedder(model=folder, dtype="bfloat16").encoder_id


def test_dtype__half_precision_is_close(made):
    full, half = (
        OpenClipEmbedder(model=made[0], device="cpu", dtype=dtype)
        for dtype in ("float32", "bfloat16")
    )
    assert (full.embed_texts(["a red dog"]) @ half.embed_texts(["a red dog"]).T).item() > 0.99


def test_architecture__without_weights_is_refused():
    with pytest.raises(ModelError, match=r"random embeddings.*pretrained"):
        OpenClipEmbedder(model="ViT-B-32")


@pytest.mark.parametrize(
    "options",
    [
        {"model": "no-such-model", "pretrained": "openai"},
        {"model": "local-dir:/nowhere"},
        {"model": "ViT-B-32", "pretrained": "no-such-tag"},
    ],
)
def test_model__cannot_be_had(options):
    with pytest.raises(WeakspotError, match="model"):
        OpenClipEmbedder(**options, device="cpu").embed_texts(["dog"])


def test_checkpoint__of_another_architecture(made, tmp_path):
    torch.save({"weight": torch.ones(2)}, tmp_path / "other.pt")
    with pytest.raises(ModelError, match="open_clip cannot load the model"):
        OpenClipEmbedder(
            model="weakspot-tiny", pretrained=tmp_path / "other.pt", device="cpu"
        ).embed_texts(["dog"])
