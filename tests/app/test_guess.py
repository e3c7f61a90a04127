import pytest

from weakspot.app.guess import classifier_settings
from weakspot.core.errors import ConfigError


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
