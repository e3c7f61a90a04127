import pickle
import warnings

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from tests.models.tiny_networks import net, script, state, with_factory, without_layer

from weakspot.core.dataset import Task
from weakspot.core.errors import ConfigError, ModelError
from weakspot.core.roles import Classifier
from weakspot.models.torch.classifier import TorchClassifier

NAMES = ["cat", "dog", "owl"]


def _prepared(classifier, n_images=5):
    pixels = np.random.default_rng(1).integers(0, 256, (n_images, 12, 20, 3), dtype=np.uint8)
    return [classifier.prepare(Image.fromarray(item)) for item in pixels]


def _check(classifier, network):
    prepared = _prepared(classifier)
    output = classifier.classify(prepared)
    with torch.no_grad():
        logits = network.eval()(torch.from_numpy(np.stack(prepared)))
        expected = torch.softmax(logits, dim=1).numpy()
    np.testing.assert_allclose(output.probabilities, expected, atol=1e-6)
    np.testing.assert_allclose(classifier.head.logits(output.features), logits.numpy(), atol=1e-5)


def test_classify__module_in_memory():
    network = net()
    classifier = TorchClassifier(module=network, class_names=NAMES, image_side=8)
    assert isinstance(classifier, Classifier)
    assert classifier.class_names == tuple(NAMES)
    assert classifier.image_side == 8
    assert classifier.features_note is None
    _check(classifier, network)


def test_classify__callers_module_is_left_alone():
    network = net().train()
    classifier = TorchClassifier(module=network, image_side=8)
    before = classifier.classify(_prepared(classifier)).probabilities
    assert network.training
    assert not network.last._forward_pre_hooks
    with torch.no_grad():
        network.last.weight.zero_()
    np.testing.assert_array_equal(classifier.classify(_prepared(classifier)).probabilities, before)


def test_classify__softmax_at_the_end_is_seen():
    network = net(end=torch.nn.Softmax(dim=1))
    classifier = TorchClassifier(module=network, class_names=NAMES, image_side=8)
    prepared = _prepared(classifier)
    output = classifier.classify(prepared)
    with torch.no_grad():
        expected = network.eval()(torch.from_numpy(np.stack(prepared))).numpy()
    np.testing.assert_allclose(output.probabilities, expected, atol=1e-6)
    np.testing.assert_allclose(classifier.head.probabilities(output.features), expected, atol=1e-5)


def test_classify__multi_label_and_dict_answer():
    class Wrapped(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.network = net()

        def forward(self, pixels):
            return {"logits": self.network(pixels)}

    classifier = TorchClassifier(module=Wrapped(), task="multi-label", image_side=8)
    prepared = _prepared(classifier)
    output = classifier.classify(prepared)
    with torch.no_grad():
        expected = torch.sigmoid(net().eval()(torch.from_numpy(np.stack(prepared)))).numpy()
    np.testing.assert_allclose(output.probabilities, expected, atol=1e-6)
    assert classifier.head.task is Task.MULTI_LABEL


def test_classify__one_output_for_two_classes():
    network = net(n_classes=1)
    classifier = TorchClassifier(module=network, class_names=["no", "yes"], image_side=8)
    prepared = _prepared(classifier)
    output = classifier.classify(prepared)
    with torch.no_grad():
        expected = torch.sigmoid(network.eval()(torch.from_numpy(np.stack(prepared)))).numpy()[:, 0]
    np.testing.assert_allclose(output.probabilities[:, 1], expected, atol=1e-6)
    np.testing.assert_allclose(
        classifier.head.probabilities(output.features), output.probabilities, atol=1e-6
    )


def test_classify__half_precision_and_no_images():
    classifier = TorchClassifier(module=net(), image_side=8, dtype="bfloat16")
    exact = TorchClassifier(module=net(), image_side=8)
    prepared = _prepared(exact)
    np.testing.assert_allclose(
        classifier.classify(prepared).probabilities,
        exact.classify(prepared).probabilities,
        atol=0.02,
    )
    assert classifier.classifier_id != exact.classifier_id
    assert exact.classify([]).probabilities.shape == (0, 3)
    assert exact.classify([]).features.shape == (0, 6)


def test_feature_layer__named():
    classifier = TorchClassifier(module=net(), image_side=8, feature_layer="hidden")
    assert classifier.head is None
    assert classifier.classify(_prepared(classifier)).features.shape == (5, 6)
    with pytest.raises(ConfigError, match=r"\['last', 'hidden'\]"):
        _ = TorchClassifier(module=net(), image_side=8, feature_layer="fc").head


def test_head__none_without_linear_layer():
    classifier = TorchClassifier(module=without_layer(), image_side=8)
    assert classifier.head is None
    assert "no linear layer" in classifier.features_note
    assert classifier.classify(_prepared(classifier)).features is None


@pytest.mark.parametrize("trace", [False, True])
def test_script__features_in_one_pass(tmp_path, trace):
    network = net()
    classifier = TorchClassifier(
        path=script(network, tmp_path / "m.pt", trace=trace), class_names=NAMES, image_side=8
    )
    _check(classifier, network)
    np.testing.assert_array_equal(classifier.head.weights, network.last.weight.detach().numpy())


def test_script__softmax_or_frozen_gives_no_features(tmp_path):
    network = net(end=torch.nn.Softmax(dim=1))
    for path in (
        script(network, tmp_path / "soft.pt"),
        script(net(), tmp_path / "frozen.pt", freeze=True),
    ):
        classifier = TorchClassifier(path=path, class_names=NAMES, image_side=8)
        output = classifier.classify(_prepared(classifier))
        with torch.no_grad():
            expected = network.eval()(torch.from_numpy(np.stack(_prepared(classifier)))).numpy()
        np.testing.assert_allclose(output.probabilities, expected, atol=1e-6)
        assert output.features is None
        assert "script" in classifier.features_note


def test_script__module_in_memory_is_copied(tmp_path):
    made = script(net())
    classifier = TorchClassifier(module=made, class_names=NAMES, image_side=8)
    _check(classifier, net())
    assert made.last.weight.shape == (3, 6)


def test_safetensors__with_factory(tmp_path):
    options, numbers = with_factory(tmp_path, "factory_one"), state()
    save_file(numbers, tmp_path / "m.safetensors")
    torch.save({"state_dict": numbers}, tmp_path / "m.pth")
    classifier = TorchClassifier(path=tmp_path / "m.safetensors", **options)
    np.testing.assert_array_equal(classifier.head.weights, numbers["last.weight"].numpy())
    plain = TorchClassifier(path=tmp_path / "m.pth", **options)
    prepared = _prepared(plain)
    np.testing.assert_array_equal(
        plain.classify(prepared).probabilities, classifier.classify(prepared).probabilities
    )


class Bomb:
    def __reduce__(self):
        return (open, ("exploded", "w"))


NO_FILE = r"1 missing, such as \['conv.bias'\]; 1 unknown, such as \['extra'\]"


@pytest.mark.parametrize(
    ("file", "options", "message"),
    [
        ("m.safetensors", {"arguments": {"n_classes": 4}}, r"size mismatch for last\.weight"),
        ("m.safetensors", {"factory": "factory_two:wrong"}, "no torch.nn.Module"),
        ("m.safetensors", {"factory": "factory_two:torch"}, "cannot be called"),
        ("m.safetensors", {"factory": None}, "holds weights only"),
        ("less.safetensors", {}, NO_FILE),
        ("cut.safetensors", {}, "no safetensors file"),
        ("none.pt", {}, "no such model file"),
    ],
)
def test_load__what_does_not_fit_or_cannot_be_read(tmp_path, file, options, message):
    given, numbers = with_factory(tmp_path, "factory_two"), state()
    save_file(numbers, tmp_path / "m.safetensors")
    del numbers["conv.bias"]
    save_file(numbers | {"extra": torch.zeros(1)}, tmp_path / "less.safetensors")
    (tmp_path / "cut.safetensors").write_bytes(b"\x08\x00")
    with pytest.raises((ModelError, ConfigError), match=message):
        _ = TorchClassifier(path=tmp_path / file, **{**given, **options}).head


def test_load__pickles_are_refused_and_never_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with_factory(tmp_path, "factory_three")
    torch.save(Bomb(), tmp_path / "bomb.pt")
    (tmp_path / "bomb.pkl").write_bytes(pickle.dumps(Bomb()))
    (tmp_path / "bomb.pth").write_bytes(pickle.dumps(Bomb()))
    torch.save(torch.nn.Linear(2, 2), tmp_path / "whole.pt")
    for name in ("bomb.pt", "bomb.pkl", "bomb.pth", "whole.pt"):
        for factory in (None, "factory_three:Net"):
            with pytest.raises(ModelError, match=r"is a pickle.*safetensors"):
                _ = TorchClassifier(
                    path=tmp_path / name, factory=factory, folder=tmp_path, image_side=8
                ).head
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"module": None, "image_side": 8}, "either a module or the path"),
        ({}, "Set image_side"),
        ({"image_side": 8, "device": "abacus"}, "device"),
        ({"image_side": 8, "dtype": "int3"}, "kind of number"),
        ({"image_side": 8, "class_names": ["a", "b"]}, "3 probabilities an image, but there are 2"),
        ({"image_side": 8, "colour": "grey"}, "The module fails on a batch"),
    ],
)
def test_settings__what_cannot_be_used(options, message):
    with pytest.raises((ModelError, ConfigError), match=message):
        _ = TorchClassifier(**{"module": net(), **options}).head


def test_classifier_id__weights_and_preprocessing():
    first = TorchClassifier(module=net(), image_side=8).classifier_id
    assert first.startswith("torch:Net@")
    assert TorchClassifier(module=net(), image_side=8).classifier_id == first
    assert TorchClassifier(module=net(), image_side=9).classifier_id != first
    changed = net()
    with torch.no_grad():
        changed.conv.bias += 1e-3
    assert TorchClassifier(module=changed, image_side=8).classifier_id != first


def test_onnx_export__same_answer_and_features(tmp_path):
    """The same network through torch's exporter and the ONNX classifier."""
    from weakspot.models.onnx.classifier import OnnxClassifier

    network = net().eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network, (torch.zeros(1, 3, 8, 8),), str(tmp_path / "m.onnx"), dynamo=False
        )
    exported = OnnxClassifier(path=tmp_path / "m.onnx", class_names=NAMES)
    direct = TorchClassifier(module=network, class_names=NAMES, image_side=8)
    prepared = _prepared(direct)
    found, expected = exported.classify(prepared), direct.classify(prepared)
    np.testing.assert_allclose(found.probabilities, expected.probabilities, atol=1e-5)
    np.testing.assert_allclose(found.features, expected.features, atol=1e-5)
    np.testing.assert_allclose(exported.head.weights, direct.head.weights, atol=1e-6)
