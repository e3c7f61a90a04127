import json
import socket

import numpy as np
import pytest
import torch
from PIL import Image
from tests.models.tiny_networks import VIT, VIT_IMAGES, save_vit, save_with_images

from weakspot.core.dataset import Task
from weakspot.core.errors import ModelError, UnavailableError
from weakspot.core.roles import Classifier
from weakspot.models.preprocessing import plain_preprocessing
from weakspot.models.torch.runtime import declare_torchvision_operators
from weakspot.models.transformers.images import TransformersClassifier

declare_torchvision_operators()
import transformers  # noqa: E402 - torchvision must be importable first

NAMES = ["cat", "dog", "owl"]
CONVNEXT = {"image_processor_type": "ConvNextImageProcessor", "crop_pct": 0.875}


def _images(n_images=3, width=23, height=17):
    pixels = np.random.default_rng(1).integers(0, 256, (n_images, height, width, 3), dtype=np.uint8)
    return [Image.fromarray(item) for item in pixels]


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """Any attempt to reach a network fails the test."""

    def refuse(*arguments, **options):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def test_classify__vit_from_folder(tmp_path):
    model = save_vit(tmp_path, names=NAMES)
    classifier = TransformersClassifier(model=tmp_path)
    assert isinstance(classifier, Classifier)
    assert classifier.class_names == ("cat", "dog", "owl")
    assert classifier.task is Task.SINGLE_LABEL
    assert classifier.image_side == 16
    prepared = [classifier.prepare(image) for image in _images()]
    output = classifier.classify(prepared)
    with torch.no_grad():
        logits = model(torch.from_numpy(np.stack(prepared))).logits
    np.testing.assert_allclose(output.probabilities, torch.softmax(logits, 1).numpy(), atol=1e-6)
    np.testing.assert_allclose(classifier.head.logits(output.features), logits.numpy(), atol=1e-5)
    np.testing.assert_array_equal(classifier.head.weights, model.classifier.weight.detach().numpy())


def test_classify__resnet_with_its_own_crop_share(tmp_path):
    torch.manual_seed(0)
    config = transformers.ResNetConfig(
        embedding_size=4,
        hidden_sizes=[4, 8],
        depths=[1, 1],
        layer_type="basic",
        id2label=dict(enumerate(NAMES)),
    )
    images = {**CONVNEXT, "size": {"shortest_edge": 14}, "resample": 3}
    model = save_with_images(transformers.ResNetForImageClassification(config), tmp_path, images)
    classifier = TransformersClassifier(model=tmp_path)
    assert classifier.image_side == 16
    prepared = [classifier.prepare(image) for image in _images()]
    assert prepared[0].shape == (3, 14, 14)
    output = classifier.classify(prepared)
    with torch.no_grad():
        logits = model(torch.from_numpy(np.stack(prepared))).logits
    np.testing.assert_allclose(classifier.head.logits(output.features), logits.numpy(), atol=1e-5)


@pytest.mark.parametrize(
    "images",
    [
        VIT_IMAGES,
        {
            "image_processor_type": "CLIPImageProcessor",
            "size": {"shortest_edge": 20},
            "crop_size": {"height": 16, "width": 16},
        },
        {**CONVNEXT, "size": {"shortest_edge": 14}, "resample": 3},
        {**CONVNEXT, "size": {"shortest_edge": 384}, "resample": 2},
        {
            "image_processor_type": "ViTImageProcessor",
            "size": {"height": 16, "width": 16},
            "do_normalize": False,
            "do_rescale": False,
        },
    ],
)
def test_prepare__same_numbers_as_the_processor(tmp_path, images):
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(images))
    processor = transformers.AutoImageProcessor.from_pretrained(tmp_path, backend="pil")
    ours = plain_preprocessing(processor.to_dict(), where="m")
    for image in (*_images(1, 23, 17), *_images(1, 40, 64)):
        expected = processor(images=image, return_tensors="np")["pixel_values"][0]
        np.testing.assert_allclose(ours.apply(image), expected, atol=1e-5)


def test_prepare__unusual_processor_is_called_itself(tmp_path):
    images = {
        "image_processor_type": "EfficientNetImageProcessor",
        "size": {"height": 16, "width": 16},
        "rescale_offset": True,
        "rescale_factor": 1 / 127.5,
    }
    save_vit(tmp_path, names=NAMES, images=images)
    classifier = TransformersClassifier(model=tmp_path)
    assert classifier.image_side is None
    processor = transformers.AutoImageProcessor.from_pretrained(tmp_path, backend="pil")
    image = _images(1)[0]
    expected = processor(images=image, return_tensors="np")["pixel_values"][0]
    np.testing.assert_array_equal(classifier.prepare(image), expected)
    assert classifier.classify([classifier.prepare(image)]).probabilities.shape == (1, 3)


def test_prepare__user_overrides(tmp_path):
    save_vit(tmp_path, names=NAMES)
    classifier = TransformersClassifier(model=tmp_path, mean=0.0, std=1.0)
    prepared = classifier.prepare(Image.new("RGB", (20, 20), (255, 0, 51)))
    np.testing.assert_allclose(prepared[:, 3, 3], [1.0, 0.0, 0.2], atol=1e-6)
    assert classifier.classifier_id != TransformersClassifier(model=tmp_path).classifier_id


def test_class_names__unnamed_labels_are_none(tmp_path):
    save_vit(tmp_path, num_labels=3)
    assert TransformersClassifier(model=tmp_path).class_names is None
    assert TransformersClassifier(model=tmp_path, class_names=["x", "y", "z"]).class_names == (
        "x",
        "y",
        "z",
    )


def test_task__multi_label_from_the_configuration(tmp_path):
    model = save_vit(tmp_path, names=NAMES, problem_type="multi_label_classification")
    classifier = TransformersClassifier(model=tmp_path)
    assert classifier.task is Task.MULTI_LABEL
    prepared = [classifier.prepare(image) for image in _images()]
    with torch.no_grad():
        expected = torch.sigmoid(model(torch.from_numpy(np.stack(prepared))).logits).numpy()
    np.testing.assert_allclose(classifier.classify(prepared).probabilities, expected, atol=1e-6)


def test_load__backbone_without_a_trained_head(tmp_path):
    config = transformers.ViTConfig(**VIT, image_size=16, patch_size=8)
    save_with_images(transformers.ViTModel(config, add_pooling_layer=False), tmp_path, VIT_IMAGES)
    with pytest.raises(ModelError, match=r"no trained classifier.*classifier\."):
        _ = TransformersClassifier(model=tmp_path).head


def test_load__broken_folder(tmp_path):
    with pytest.raises(ModelError, match="cannot load the model"):
        _ = TransformersClassifier(model=tmp_path).head


def test_load__offline_and_not_cached(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(
        UnavailableError, match=r"the hub is off \(HF_HUB_OFFLINE\).*folder of a copy"
    ):
        _ = TransformersClassifier(model="nobody/no-such-model").head


def test_classifier_id__weights(tmp_path):
    first = save_vit(tmp_path / "a", names=NAMES)
    with torch.no_grad():
        first.classifier.bias += 1.0
    save_with_images(first, tmp_path / "b", VIT_IMAGES)
    one, two = (TransformersClassifier(model=tmp_path / name).classifier_id for name in "ab")
    assert one.startswith("transformers:a@")
    assert one.partition("@")[2] != two.partition("@")[2]


def test_load__weights_that_are_damaged(tmp_path):
    save_vit(tmp_path, names=NAMES)
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    with pytest.raises(ModelError, match="cannot load the model"):
        _ = TransformersClassifier(model=tmp_path).head
