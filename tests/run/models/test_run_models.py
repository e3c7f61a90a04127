import numpy as np
import pyarrow as pa
import pytest
from tests.models.fake_providers import CUDA, FakeProviders

from weakspot.core.machine import user_cache_folder
from weakspot.models.embedded.encoder import EmbeddedDefault
from weakspot.models.onnx import session
from weakspot.run.models import RunModels
from weakspot.run.settings import EmbedderSettings, EngineSettings, Settings
from weakspot.store.array_files import packed_hashes
from weakspot.store.project import ProjectStore
from weakspot.testing.fakes import PlantedEmbedder


@pytest.fixture(autouse=True)
def forget():
    yield
    session._tried.cache_clear()


@pytest.fixture
def sharing(monkeypatch):
    monkeypatch.setenv("WEAKSPOT_EMBEDDINGS_MEGABYTES", "5")


def _models(tmp_path, *, embedder=None, name="auto", provider="auto", batch_size=0):
    settings = Settings(
        embedder=EmbedderSettings(name=name, batch_size=batch_size),
        engine=EngineSettings(provider=provider),
    )
    return RunModels(
        settings=settings,
        folder=tmp_path,
        ready_embedder=embedder,
    )


@pytest.mark.usefixtures("sharing")
def test_embed_settings__handed_over_and_foreign_encoders_are_not_shared(tmp_path):
    assert _models(tmp_path, embedder=PlantedEmbedder()).embed_settings.shared is None
    assert _models(tmp_path, name="planted").embed_settings.shared is None


@pytest.mark.usefixtures("sharing")
def test_embed_settings__own_encoders_are_shared_unless_switched_off(tmp_path, monkeypatch):
    shared = _models(tmp_path, name="embedded").embed_settings.shared
    assert shared is not None
    assert shared.folder == user_cache_folder() / "embeddings"
    monkeypatch.setenv("WEAKSPOT_EMBEDDINGS_MEGABYTES", "0")
    assert _models(tmp_path, name="embedded").embed_settings.shared is None


def test_computed_by__the_projects_provider_and_batches_by_its_memory(tmp_path, monkeypatch):
    FakeProviders(CUDA).install(monkeypatch)
    monkeypatch.setattr("weakspot.models.onnx.session.memory_of", lambda _: 24 << 30)
    models = _models(tmp_path, name="embedded")
    assert models.computed_by() == {"embedder computed by": "cuda, float16"}
    assert models.embed_settings.batch_size == 64
    assert models.embedder_sentence.endswith("as configured. Computed by cuda, float16.")
    assert _models(tmp_path, name="embedded", batch_size=3).embed_settings.batch_size == 3
    monkeypatch.setattr("weakspot.models.embedded.image_tower.has_fast_int8", lambda: True)
    forced = _models(tmp_path, name="embedded", provider="cpu")
    assert forced.computed_by() == {"embedder computed by": "cpu, int8"}
    assert forced.embed_settings.batch_size == 8


def test_computed_by__nothing_of_models_that_do_not_say(tmp_path):
    models = _models(tmp_path, name="planted")
    assert models.computed_by() == {}
    assert models.embedder_sentence == "Using the embedder 'planted', as configured."
    assert models.embed_settings.batch_size == 8


def test_embedder_sentence__says_which_provider_did_not_start(tmp_path, monkeypatch):
    FakeProviders(CUDA, failing=[CUDA]).install(monkeypatch)
    sentence = _models(tmp_path, name="embedded").embedder_sentence
    assert "Computed by cpu, " in sentence
    assert sentence.endswith(f"{CUDA} is not used: {CUDA}: no such device.")


def test_embedder__a_project_that_was_embedded_in_float32_stays_with_it(tmp_path, monkeypatch):
    monkeypatch.setattr("weakspot.models.embedded.image_tower.has_fast_int8", lambda: True)
    integer, exact = (EmbeddedDefault(precision=one) for one in ("int8", "float32"))
    store = ProjectStore.create(tmp_path)

    def chosen(name="embedded"):
        return _models(tmp_path, name=name).embedder.encoder_id

    assert chosen() == integer.encoder_id
    store.embeddings(exact.encoder_id).append(
        packed_hashes(pa.array(["00" * 16])), np.zeros((1, 512), dtype=np.float32)
    )
    assert chosen() == exact.encoder_id
    store.embeddings(integer.encoder_id).append(
        packed_hashes(pa.array(["00" * 16])), np.zeros((1, 512), dtype=np.float32)
    )
    assert chosen() == integer.encoder_id
