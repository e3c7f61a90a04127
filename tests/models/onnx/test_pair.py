import json
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto
from PIL import Image
from tests.models.tiny_graphs import mean_tower, word_tower
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from weakspot.core.errors import ModelError, WeakspotError
from weakspot.models.onnx.pair import OnnxPairEmbedder

PLAIN = {"image_side": 4, "crop": "none", "mean": 0.0, "std": 1.0}
WORDS = {"[PAD]": 0, "[UNK]": 1, "red": 2, "green": 3, "blue": 4}
WORD_EMBEDDINGS = np.array(
    [[0, 0, 0], [1, 1, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=np.float32
)


def image_tower(path: Path, *, batch: int | str = "n", dimension: int = 3) -> None:
    """Mean of every channel, so a red image is at (1, 0, 0)."""
    mean_tower(path, batch=batch, weights=np.eye(3, dimension, dtype=np.float32))


def text_tower(path: Path) -> None:
    word_tower(path, WORD_EMBEDDINGS, kind=TensorProto.INT32)


def tokenizer(path: Path) -> None:
    made = Tokenizer(WordLevel(WORDS, unk_token="[UNK]"))
    made.pre_tokenizer = Whitespace()
    made.save(str(path))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    image_tower(tmp_path / "image.onnx")
    text_tower(tmp_path / "text.onnx")
    tokenizer(tmp_path / "tokenizer.json")
    describe(tmp_path)
    return tmp_path


def describe(folder: Path, **said) -> None:
    (folder / "embedder.json").write_text(json.dumps({"images": PLAIN, **said}))


def colours(embedder, *names):
    return embedder.embed_prepared(
        [embedder.prepare(Image.new("RGB", (9, 5), name)) for name in names]
    )


def test_embed_prepared__colours_by_hand(folder):
    embedder = OnnxPairEmbedder(folder=folder)
    np.testing.assert_allclose(
        colours(embedder, "red", "blue", "yellow"),
        [[1, 0, 0], [0, 0, 1], [0.7071, 0.7071, 0]],
        atol=1e-4,
    )
    assert (embedder.dimension, embedder.image_side, embedder.has_text) == (3, 4, True)
    assert embedder.embed_prepared([]).shape == (0, 3)


@pytest.mark.parametrize("batch", [1, 2])
def test_embed_prepared__a_tower_with_a_fixed_batch(folder, batch):
    image_tower(folder / "image.onnx", batch=batch)
    np.testing.assert_allclose(
        colours(OnnxPairEmbedder(folder=folder), "red", "lime", "blue"), np.eye(3), atol=1e-6
    )


def test_embed_texts__padding_does_not_count(folder):
    embedder = OnnxPairEmbedder(folder=folder)
    found = embedder.embed_texts(["red", "green blue blue", "strange"])
    np.testing.assert_allclose(
        found, [[1, 0, 0], [0, 0.4472, 0.8944], [0.5774, 0.5774, 0.5774]], atol=1e-4
    )
    assert embedder.embed_texts([]).shape == (0, 3)


def test_embed_texts__lower_case_padding_and_cut(folder):
    describe(folder, lower_case=True, padding="max_length", max_tokens=2)
    np.testing.assert_allclose(
        OnnxPairEmbedder(folder=folder).embed_texts(["RED Red blue", "Green"]),
        [[1, 0, 0], [0, 1, 0]],
        atol=1e-6,
    )


def test_embed_texts__without_a_text_tower(folder):
    (folder / "text.onnx").unlink()
    embedder = OnnxPairEmbedder(folder=folder)
    assert not embedder.has_text
    with pytest.raises(ModelError, match="no text tower.*weakspot lab align"):
        embedder.embed_texts(["red"])


def test_embed_texts__towers_of_different_spaces(folder):
    image_tower(folder / "image.onnx", dimension=2)
    with pytest.raises(ModelError, match="2 numbers an image, 3 a phrase"):
        OnnxPairEmbedder(folder=folder).embed_texts(["red"])


def test_prepare__as_preprocessor_config_says(folder):
    (folder / "embedder.json").unlink()
    said = {
        "size": {"height": 4, "width": 4},
        "resample": 2,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(said))
    prepared = OnnxPairEmbedder(folder=folder).prepare(Image.new("RGB", (9, 5), (255, 0, 0)))
    np.testing.assert_allclose(prepared[:, 0, 0], [1.0, -1.0, -1.0], atol=1e-6)


def test_prepare__size_from_the_tower_and_clip_numbers_when_nothing_is_said(folder):
    (folder / "embedder.json").unlink()
    prepared = OnnxPairEmbedder(folder=folder).prepare(Image.new("RGB", (9, 5), (0, 0, 0)))
    assert prepared.shape == (3, 4, 4)
    np.testing.assert_allclose(prepared[:, 0, 0], [-1.7923, -1.7521, -1.4802], atol=1e-4)


def test_encoder_id__changes_with_files_and_settings(folder):
    first = OnnxPairEmbedder(folder=folder).encoder_id
    assert first == OnnxPairEmbedder(folder=folder).encoder_id
    describe(folder, lower_case=True)
    second = OnnxPairEmbedder(folder=folder).encoder_id
    image_tower(folder / "image.onnx", dimension=2)
    assert len({first, second, OnnxPairEmbedder(folder=folder).encoder_id}) == 3


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: (folder / "image.onnx").unlink(), "no such ONNX file"),
        (lambda folder: (folder / "image.onnx").write_bytes(b"nothing"), "cannot open the graph"),
        (lambda folder: (folder / "tokenizer.json").unlink(), "tokenizer is missing"),
        (lambda folder: (folder / "embedder.json").write_text("{"), "embedder.json cannot be used"),
        (
            lambda folder: describe(folder, colour="x", padding="wide"),
            r"(?s)colour.*padding|padding.*colour",
        ),
        (
            lambda folder: describe(folder, image_output="nothing"),
            r"no output 'nothing'.*\['mean', 'image_embeds'\]",
        ),
        (lambda folder: describe(folder, image_output="mean"), r"no embeddings \[n, d\]"),
        (lambda folder: describe(folder, image_input="nothing"), "refused its input"),
        (
            lambda folder: describe(folder, images={"image_side": 5, "mean": 0.0, "std": 1.0}),
            "refused its input",
        ),
        (lambda folder: describe(folder, images={"side": 5}), "there is no such option"),
    ],
)
def test_embedder__what_cannot_be_used(folder, spoil, message):
    spoil(folder)
    with pytest.raises(WeakspotError, match=message):
        OnnxPairEmbedder(folder=folder).embed_texts(["red"])


def test_embedder__no_folder(tmp_path):
    with pytest.raises(ModelError, match="There is no such folder"):
        OnnxPairEmbedder(folder=tmp_path / "nothing").prepare(Image.new("RGB", (4, 4)))
