import pytest

from weakspot.core.errors import ConfigError
from weakspot.run.settings_file import load_settings, use_current_names

EARLIER = """\
[boxes]
pictures = "photos"
[embedder]
name = "given-vectors"
options = {path = "vectors.npy", vector_column = "v"}
[captioner]
name = "endpoint"
options = {url = "http://localhost", model = "m", picture_side = 320}
[discover]
methods = ["directions"]
parameters = {directions = {space = "own"}}
[generator]
max_pictures = 7
[report]
n_pictures = 3
"""


def test_load_settings__earlier_names_are_understood_and_named(tmp_path, caplog):
    (tmp_path / "weakspot.toml").write_text(EARLIER)
    settings = load_settings(tmp_path)
    assert settings.boxes.images == "photos"
    assert settings.embedder.name == "given-embeddings"
    assert settings.embedder.options == {"path": "vectors.npy", "embedding_column": "v"}
    assert settings.captioner.options["image_side"] == 320
    assert settings.discover.parameters == {"directions": {"space": "features"}}
    assert settings.generator.max_images == 7
    assert settings.report.n_images == 3
    assert "report.n_pictures is called report.n_images now." in caplog.text
    assert "embedder.name = 'given-vectors' is called 'given-embeddings' now." in caplog.text
    assert len(caplog.records) == 7


def test_load_settings__todays_names_are_not_mentioned(tmp_path, caplog):
    (tmp_path / "weakspot.toml").write_text("[report]\nn_images = 3\n")
    assert load_settings(tmp_path).report.n_images == 3
    assert caplog.records == []


def test_load_settings__both_names_are_refused(tmp_path):
    (tmp_path / "weakspot.toml").write_text("[report]\nn_images = 3\nn_pictures = 4\n")
    with pytest.raises(ConfigError, match="n_pictures: there is no such setting"):
        load_settings(tmp_path)


def test_use_current_names__columns_and_classes_of_users_stay():
    given = {
        "data": {"columns": {"pictures": "own"}, "class_names": ["joint"]},
        "failure": {"parents": {"pictures": "joint"}},
    }
    assert use_current_names(given) == (given, ())
