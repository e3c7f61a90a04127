import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from weakspot.core.errors import ConfigError, ModelError, UnavailableError
from weakspot.core.roles import Classifier
from weakspot.models.torch.classifier import TimmClassifier
from weakspot.models.torch.runtime import declare_torchvision_operators

declare_torchvision_operators()
import timm  # noqa: E402 - torchvision must be importable first

MODEL = "test_resnet"
NAMES = ["cat", "dog", "owl"]


def _images(n_images=3):
    pixels = np.random.default_rng(1).integers(0, 256, (n_images, 200, 230, 3), dtype=np.uint8)
    return [Image.fromarray(item) for item in pixels]


def _checkpoint(folder, model=MODEL, n_classes=3):
    torch.manual_seed(0)
    made = timm.create_model(model, pretrained=False, num_classes=n_classes).eval()
    save_file(made.state_dict(), folder / "m.safetensors")
    return made


def test_classify__checkpoint_with_data_configuration(tmp_path):
    made = _checkpoint(tmp_path)
    classifier = TimmClassifier(
        model=MODEL, checkpoint=tmp_path / "m.safetensors", class_names=NAMES
    )
    assert isinstance(classifier, Classifier)
    assert classifier.class_names == ("cat", "dog", "owl")
    config = timm.data.resolve_model_data_config(made)
    transform = timm.data.create_transform(**config, is_training=False)
    prepared = [classifier.prepare(image) for image in _images()]
    np.testing.assert_allclose(prepared[0], transform(_images()[0]).numpy(), atol=1e-5)
    output = classifier.classify(prepared)
    with torch.no_grad():
        logits = made(torch.from_numpy(np.stack(prepared)))
    np.testing.assert_allclose(output.probabilities, torch.softmax(logits, 1).numpy(), atol=1e-5)
    np.testing.assert_allclose(classifier.head.logits(output.features), logits.numpy(), atol=1e-4)
    np.testing.assert_array_equal(
        classifier.head.weights, made.get_classifier().weight.detach().numpy()
    )


def test_classify__transformer_model(tmp_path):
    made = _checkpoint(tmp_path, model="test_vit")
    classifier = TimmClassifier(
        model="test_vit",
        checkpoint=tmp_path / "m.safetensors",
        class_names=NAMES,
        task="multi-label",
    )
    prepared = [classifier.prepare(image) for image in _images()]
    with torch.no_grad():
        logits = made(torch.from_numpy(np.stack(prepared)))
    output = classifier.classify(prepared)
    np.testing.assert_allclose(output.probabilities, torch.sigmoid(logits).numpy(), atol=1e-5)
    np.testing.assert_allclose(classifier.head.logits(output.features), logits.numpy(), atol=1e-4)


def test_prepare__user_overrides(tmp_path):
    _checkpoint(tmp_path)
    options = {"model": MODEL, "checkpoint": tmp_path / "m.safetensors", "class_names": NAMES}
    classifier = TimmClassifier(**options, image_side=64, mean=0.0, std=1.0)
    assert classifier.image_side == 64
    prepared = classifier.prepare(Image.new("RGB", (80, 80), (255, 0, 51)))
    np.testing.assert_allclose(prepared[:, 5, 5], [1.0, 0.0, 0.2], atol=1e-6)
    assert classifier.classifier_id != TimmClassifier(**options).classifier_id


def test_load__problems(tmp_path):
    _checkpoint(tmp_path)
    with pytest.raises(ModelError, match="timm has no such model"):
        _ = TimmClassifier(model="resnot50", checkpoint=tmp_path / "m.safetensors").head
    with pytest.raises(ModelError, match="no such checkpoint"):
        _ = TimmClassifier(model=MODEL, checkpoint=tmp_path / "none.safetensors").head
    with pytest.raises(ModelError, match="size mismatch"):
        _ = TimmClassifier(
            model=MODEL, checkpoint=tmp_path / "m.safetensors", class_names=["a", "b"]
        ).head
    with pytest.raises(ConfigError, match="cannot build the model"):
        _ = TimmClassifier(
            model=MODEL, checkpoint=tmp_path / "m.safetensors", arguments={"colour": "blue"}
        ).head


def test_load__pretrained_but_offline(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(UnavailableError, match="pretrained weights are unavailable"):
        _ = TimmClassifier(model=MODEL).head
