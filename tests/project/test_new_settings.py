import tomllib

import pytest

from weakspot.core.errors import ConfigError
from weakspot.data.settings import DataSettings
from weakspot.project.new_settings import (
    classifier_settings,
    commented_settings,
    with_inputs,
)
from weakspot.run.settings import (
    PartSettings,
    Settings,
    parse_settings,
)


def test_commented_settings__reads_back_the_same():
    settings = Settings(
        seed=3,
        data=DataSettings(
            source='a "quoted" folder', columns={"label": "species"}, class_names=("cat", "dog")
        ),
        classifier=PartSettings(
            name="onnx", options={"path": "model.onnx", "mean": [0.5, 0.5, 0.5]}
        ),
    )
    text = commented_settings(settings)
    assert parse_settings(tomllib.loads(text), where="here") == settings


def test_commented_settings__every_setting_is_explained():
    lines = commented_settings(Settings()).splitlines()
    entries = [
        number
        for number, line in enumerate(lines)
        if " = " in line and line.startswith("# ") and line[2].islower()
    ]
    assert len(entries) > 30
    assert all(lines[number - 1].startswith("# ") for number in entries)
    assert tomllib.loads("\n".join(lines)) == {
        name: {} for name in Settings.model_fields if name != "seed"
    }


@pytest.mark.parametrize(
    ("text", "name", "options"),
    [
        ("models/best.onnx", "onnx", {"path": "models/best.onnx"}),
        ("best.pt", "torch", {"path": "best.pt"}),
        ("pipeline.skops", "sklearn", {"path": "pipeline.skops"}),
        ("http://127.0.0.1:8000/predict", "endpoint", {"url": "http://127.0.0.1:8000/predict"}),
        ("timm:resnet18", "timm", {"model": "resnet18"}),
        ("my_models.fruit:predict", "callable", {"target": "my_models.fruit:predict"}),
    ],
)
def test_classifier_settings__by_form(text, name, options):
    settings = classifier_settings(text)
    assert (settings.name, settings.options) == (name, options)


def test_classifier_settings__transformers_folder(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    assert classifier_settings(str(tmp_path)).name == "transformers"


def test_classifier_settings__unclear():
    with pytest.raises(ConfigError, match="not clear what kind"):
        classifier_settings("model.bin")


def test_with_inputs__everything_that_is_not_there_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photo").mkdir()
    with pytest.raises(ConfigError) as error:
        with_inputs(Settings(), tmp_path / "p", "photos", "models/net.onnx")
    assert "data: there is nothing at photos (did you mean 'photo'?)" in str(error.value)
    assert "classifier: there is nothing at models/net.onnx" in str(error.value)


@pytest.mark.parametrize(
    "data", ["s3://bucket/photos", "https://example.org/t.csv", "shards/{00..03}.tar", "inside.csv"]
)
def test_with_inputs__elsewhere_and_in_the_project_folder(tmp_path, monkeypatch, data):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "inside.csv").write_text("label\n")
    made = with_inputs(Settings(), tmp_path / "p", data, "timm:resnet18")
    assert made.data.source == data


def test_with_inputs__a_name_on_the_hub(tmp_path):
    hub = Settings(data=DataSettings(kind="hf-dataset"))
    assert with_inputs(hub, tmp_path, "owner/name", "").data.source == "owner/name"
