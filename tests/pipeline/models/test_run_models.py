import pytest

from weakspot.core.run import no_progress
from weakspot.media.user_cache import user_cache_folder
from weakspot.pipeline.models.run_models import RunModels
from weakspot.pipeline.settings import EmbedderSettings, Settings
from weakspot.testing.fakes import PlantedEmbedder


@pytest.fixture
def sharing(monkeypatch):
    monkeypatch.setenv("WEAKSPOT_EMBEDDINGS_MEGABYTES", "5")


def _models(tmp_path, *, embedder=None, name="auto"):
    settings = Settings(embedder=EmbedderSettings(name=name))
    return RunModels(
        settings=settings,
        folder=tmp_path,
        classifier=None,
        embedder=embedder,
        progress_of=lambda _stage: no_progress,
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
