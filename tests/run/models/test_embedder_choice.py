from pathlib import Path

import numpy as np
import pytest

from weakspot.core.errors import ConfigError
from weakspot.models.embedded.encoder import EmbeddedDefault
from weakspot.models.given_embeddings import GivenEmbeddings
from weakspot.models.onnx.pair import OnnxPairEmbedder
from weakspot.models.transformers import source
from weakspot.models.transformers.images import TransformersEmbedder
from weakspot.run.embedding import HUB_MODELS, build_embedder, choose_embedder
from weakspot.run.settings import EmbedderSettings


@pytest.fixture(autouse=True)
def hub_without_models(monkeypatch, tmp_path):
    """A hub cache of our own, libraries said to be there, and nobody at the hub's address."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(source, "can_load_hub_models", lambda: True)
    monkeypatch.setattr(source, "_hub_address", lambda: "http://127.0.0.1:9")


def put_in_cache(tmp_path: Path, name: str) -> None:
    snapshot = tmp_path / "hub" / f"models--{name.replace('/', '--')}" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    (snapshot / "model.safetensors").write_bytes(b"")


def test_choose_embedder__as_configured(tmp_path):
    np.save(tmp_path / "v.npy", np.ones((2, 3)))
    settings = EmbedderSettings(name="given-embeddings", options={"path": "v.npy"})
    embedder, reason = choose_embedder(settings, folder=tmp_path)
    assert isinstance(embedder, GivenEmbeddings)
    assert embedder.dimension == 3
    assert reason == "Using the embedder 'given-embeddings', as configured."


def test_choose_embedder__auto_without_libraries(monkeypatch):
    monkeypatch.setattr(source, "can_load_hub_models", lambda: False)
    embedder, reason = choose_embedder(EmbedderSettings())
    assert isinstance(embedder, EmbeddedDefault)
    assert reason.endswith("because torch and transformers are not installed.")


def test_choose_embedder__auto_with_a_cached_model(tmp_path):
    put_in_cache(tmp_path, HUB_MODELS[2])
    embedder, reason = choose_embedder(EmbedderSettings())
    assert isinstance(embedder, TransformersEmbedder)
    assert reason == f"Using {HUB_MODELS[2]} from the hub's cache on this machine."


def test_choose_embedder__auto_with_the_hub_reachable(monkeypatch):
    monkeypatch.setattr(source, "hub_answers", lambda: True)
    embedder, reason = choose_embedder(EmbedderSettings())
    assert isinstance(embedder, TransformersEmbedder)
    assert reason == "Using openai/clip-vit-base-patch16, because the hub can be reached."


def test_choose_embedder__auto_with_nobody_at_the_hub():
    embedder, reason = choose_embedder(EmbedderSettings())
    assert isinstance(embedder, EmbeddedDefault)
    assert reason.endswith("because no known model is cached and the hub does not answer.")


def test_choose_embedder__auto_with_the_hub_forbidden(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert "HF_HUB_OFFLINE forbids asking the hub" in choose_embedder(EmbedderSettings())[1]
    monkeypatch.delenv("HF_HUB_OFFLINE")
    assert "the hub is not to be asked" in choose_embedder(EmbedderSettings(), ask_hub=False)[1]


def test_choose_embedder__options_need_a_name():
    with pytest.raises(ConfigError, match="Options need a named embedder"):
        choose_embedder(EmbedderSettings(options={"threads": 2}))


def test_build_embedder__paths_start_from_the_project(tmp_path):
    (tmp_path / "towers").mkdir()
    np.save(tmp_path / "v.npy", np.ones((2, 3)))
    text = {"name": "onnx-pair", "options": {"folder": "towers"}}
    built = build_embedder("given-embeddings", {"path": "v.npy", "text": text}, folder=tmp_path)
    assert isinstance(built, GivenEmbeddings)
    side = built._text_side
    assert isinstance(side, OnnxPairEmbedder)
    assert side._folder == tmp_path / "towers"
