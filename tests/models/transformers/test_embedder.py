import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from tests.models.tiny_models import TEXT, VISION, save_clip, save_words
from transformers import (
    CLIPConfig,
    CLIPImageProcessorPil,
    CLIPModel,
    Siglip2Config,
    Siglip2ImageProcessorPil,
    Siglip2Model,
    SiglipConfig,
    SiglipModel,
    ViTConfig,
    ViTModel,
)

from weakspot.core.errors import ConfigError, ModelError, UnavailableError
from weakspot.models.transformers.images import (
    NaflexPreprocessing,
    TransformersEmbedder,
    naflex_of_processor,
)

CLIP_PIXELS = {
    "size": {"shortest_edge": 40},
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
}
SHORT_TEXT = {**TEXT, "max_position_embeddings": 9}
SIGLIP_IMAGES = {
    "size": {"height": 32, "width": 32},
    "resample": 3,
    "rescale_factor": 1 / 255,
    "image_mean": [0.5] * 3,
    "image_std": [0.5] * 3,
}


@pytest.fixture(scope="module")
def clip_folder(tmp_path_factory) -> Path:
    return save_clip(tmp_path_factory.mktemp("models") / "clip", longest=10, **CLIP_PIXELS)


@pytest.fixture(scope="module")
def siglip_folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "siglip"
    torch.manual_seed(0)
    config = SiglipConfig(text_config=SHORT_TEXT, vision_config=VISION)
    SiglipModel(config).save_pretrained(folder)
    save_words(folder)
    (folder / "processor_config.json").write_text(json.dumps({"image_processor": SIGLIP_IMAGES}))
    return folder


def image(seed: int = 0, size: tuple[int, int] = (60, 45)) -> Image.Image:
    noise = np.random.default_rng(seed).integers(0, 255, (size[1], size[0], 3), dtype=np.uint8)
    return Image.fromarray(noise)


def test_clip__images_as_the_model_itself_gives_them(clip_folder):
    embedder = TransformersEmbedder(model=clip_folder, device="cpu")
    prepared = [embedder.prepare(image(seed)) for seed in range(3)]
    found = embedder.embed_prepared(prepared)
    model = CLIPModel.from_pretrained(clip_folder).eval()
    with torch.no_grad():
        pooled = model.vision_model(pixel_values=torch.tensor(np.stack(prepared))).pooler_output
        expected = torch.nn.functional.normalize(model.visual_projection(pooled)).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert (embedder.dimension, embedder.image_side, embedder.has_text) == (8, 40, True)
    assert embedder.embed_prepared([]).shape == (0, 8)


@pytest.mark.parametrize("size", [(60, 45), (45, 60), (301, 57), (33, 33), (20, 90)])
def test_clip__prepares_images_as_its_own_processor_does(clip_folder, size):
    embedder = TransformersEmbedder(model=clip_folder)
    expected = CLIPImageProcessorPil.from_pretrained(clip_folder)(
        image(size=size), return_tensors="np"
    )["pixel_values"][0]
    np.testing.assert_allclose(embedder.prepare(image(size=size)), expected, atol=1e-5)


def test_clip__texts_as_the_model_itself_gives_them(clip_folder):
    found = TransformersEmbedder(model=clip_folder, device="cpu").embed_texts(
        ["a photo of a red disc", "grass"]
    )
    model = CLIPModel.from_pretrained(clip_folder).eval()
    with torch.no_grad():
        for row, ids in enumerate([[2, 4, 5, 6, 4, 7, 9, 3], [2, 11, 3]]):
            pooled = model.text_model(input_ids=torch.tensor([ids])).pooler_output
            expected = torch.nn.functional.normalize(model.text_projection(pooled)).numpy()[0]
            np.testing.assert_allclose(found[row], expected, atol=1e-5)


def test_clip__long_texts_are_cut(clip_folder):
    embedder = TransformersEmbedder(model=clip_folder, device="cpu")
    found = embedder.embed_texts(["disc " * 100])
    assert found.shape == (1, 8)
    np.testing.assert_allclose(np.linalg.norm(found), 1.0, atol=1e-5)


def test_siglip__texts_are_padded_to_the_end_and_lower_cased(siglip_folder):
    embedder = TransformersEmbedder(model=siglip_folder, device="cpu")
    found = embedder.embed_texts(["A Red DISC"])
    model = SiglipModel.from_pretrained(siglip_folder).eval()
    with torch.no_grad():
        pooled = model.text_model(
            input_ids=torch.tensor([[2, 4, 7, 9, 3, 0, 0, 0, 0]])
        ).pooler_output
    np.testing.assert_allclose(found, torch.nn.functional.normalize(pooled).numpy(), atol=1e-5)


def test_siglip__images_are_squeezed(siglip_folder):
    embedder = TransformersEmbedder(model=siglip_folder, device="cpu")
    whole = image(size=(60, 45))
    expected = (
        np.asarray(whole.resize((32, 32), Image.Resampling.BICUBIC), dtype=np.float32).transpose(
            2, 0, 1
        )
        / 127.5
        - 1
    )
    np.testing.assert_allclose(embedder.prepare(whole), expected, atol=1e-5)
    assert embedder.embed_prepared([embedder.prepare(whole)]).shape == (1, 16)


def test_siglip2__patches_at_the_images_own_shape(tmp_path):
    torch.manual_seed(0)
    vision = {name: value for name, value in VISION.items() if name != "image_size"}
    config = Siglip2Config(text_config=SHORT_TEXT, vision_config={**vision, "num_patches": 16})
    Siglip2Model(config).save_pretrained(tmp_path)
    save_words(tmp_path)
    processor = Siglip2ImageProcessorPil(patch_size=16, max_num_patches=16)
    processor.save_pretrained(tmp_path)
    embedder = TransformersEmbedder(model=tmp_path, device="cpu")
    images = [image(0, (90, 45)), image(1, (45, 90)), image(2, (300, 20))]
    model = Siglip2Model.from_pretrained(tmp_path).eval()
    with torch.no_grad():
        expected = model.get_image_features(**processor(images, return_tensors="pt"))
        expected = torch.nn.functional.normalize(
            getattr(expected, "pooler_output", expected)
        ).numpy()
    found = embedder.embed_prepared([embedder.prepare(each) for each in images])
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert embedder.embed_texts(["a red disc"]).shape == (1, 16)
    assert embedder.image_side is None


def test_encoder_id__weights_and_numbers_count(clip_folder, tmp_path):
    first = TransformersEmbedder(model=clip_folder).encoder_id
    assert first.startswith("transformers:clip@")
    assert first == TransformersEmbedder(model=clip_folder).encoder_id
    half = TransformersEmbedder(model=clip_folder, dtype="bfloat16").encoder_id
    other = tmp_path / "clip"
    shutil.copytree(clip_folder, other)
    torch.manual_seed(1)
    CLIPModel(CLIPConfig.from_pretrained(clip_folder)).save_pretrained(other)
    assert len({first, half, TransformersEmbedder(model=other).encoder_id}) == 3


def test_dtype__half_precision_is_close(clip_folder):
    full, half = (
        TransformersEmbedder(model=clip_folder, device="cpu", dtype=dtype)
        for dtype in ("float32", "bfloat16")
    )
    prepared = [full.prepare(image())]
    assert (full.embed_prepared(prepared) @ half.embed_prepared(prepared).T).item() > 0.99


def test_image_only_model__pooled_output_without_texts(tmp_path):
    torch.manual_seed(0)
    ViTModel(ViTConfig(**VISION)).save_pretrained(tmp_path)
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(SIGLIP_IMAGES))
    embedder = TransformersEmbedder(model=tmp_path, device="cpu")
    assert embedder.embed_prepared([embedder.prepare(image())]).shape == (1, 16)
    assert not embedder.has_text
    with pytest.raises(ModelError, match="no text side"):
        embedder.embed_texts(["disc"])


def test_model__no_word_on_images(clip_folder, tmp_path):
    shutil.copytree(clip_folder, tmp_path / "clip")
    (tmp_path / "clip" / "preprocessor_config.json").unlink()
    with pytest.raises(ModelError, match="does not say how its images are prepared"):
        TransformersEmbedder(model=tmp_path / "clip").prepare(image())


@pytest.mark.parametrize(
    ("files", "error", "message"),
    [
        (None, UnavailableError, r"cannot be fetched.*embedder.name"),
        ({"config.json": '{"model_type": "nothing-known"}'}, ModelError, "cannot load the model"),
    ],
)
def test_model__nowhere_or_of_unknown_architecture(tmp_path, files, error, message):
    for name, text in (files or {}).items():
        (tmp_path / name).write_text(text)
    with pytest.raises(error, match=message):
        TransformersEmbedder(model=tmp_path / ("nothing" if files is None else "")).embed_texts(
            ["a"]
        )


@pytest.mark.parametrize(
    "options", [{"dtype": "int3"}, {"device": "cuda:99"}, {"device": "nowhere"}]
)
def test_model__impossible_options(clip_folder, options):
    with pytest.raises(ConfigError):
        TransformersEmbedder(model=clip_folder, **options).embed_texts(["disc"])


def test_load__weights_that_are_damaged(clip_folder, tmp_path):
    for path in clip_folder.iterdir():
        (tmp_path / path.name).write_bytes(
            path.read_bytes()[: -1000 if path.suffix == ".safetensors" else None]
        )
    with pytest.raises(ModelError, match="cannot load the model"):
        _ = TransformersEmbedder(model=str(tmp_path)).dimension


@pytest.mark.parametrize(
    ("height", "width", "expected"),
    [
        (100, 100, (4, 4)),
        (100, 200, (3, 5)),
        (10, 1000, (1, 16)),
        (1000, 10, (16, 1)),
        (3, 3, (4, 4)),
    ],
)
def test_grid__as_many_patches_as_fit(height, width, expected):
    assert NaflexPreprocessing(patch_side=16, max_patches=16).grid(height, width) == expected


def test_apply__patches_in_reading_order():
    image = Image.new("RGB", (4, 4))
    image.putpixel((2, 0), (255, 255, 255))
    image.putpixel((3, 3), (0, 0, 255))
    found = NaflexPreprocessing(patch_side=2, max_patches=4).apply(image)
    assert found.shape == (2, 2, 12)
    assert found[0, 1].tolist() == [1.0] * 3 + [-1.0] * 9
    assert found[1, 1].tolist() == [-1.0] * 11 + [1.0]
    assert (found[:, 0] == -1.0).all()


def test_batch__padding_is_masked():
    images = NaflexPreprocessing(patch_side=2, max_patches=4)
    batch = images.batch(
        [np.ones((1, 3, 12), dtype=np.float32), np.ones((2, 2, 12), dtype=np.float32)]
    )
    assert batch["pixel_attention_mask"].tolist() == [[1, 1, 1, 0], [1, 1, 1, 1]]
    assert batch["spatial_shapes"].tolist() == [[1, 3], [2, 2]]
    assert batch["pixel_values"].sum() == 7 * 12


def test_naflex_of_processor__told_from_the_others():
    assert naflex_of_processor({"size": 224}) is None
    found = naflex_of_processor(
        {"image_processor": {"max_num_patches": 64, "patch_size": 8, "resample": 3}}
    )
    assert found == NaflexPreprocessing(patch_side=8, max_patches=64, resample="bicubic")
