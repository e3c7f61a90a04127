import pickle
import warnings

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from weakspot.core.dataset import Task
from weakspot.core.errors import ConfigError, ModelError
from weakspot.core.roles import Classifier
from weakspot.models.torch.classifier import TorchClassifier

NAMES = ["cat", "dog", "owl", "yak"]
FACTORY = """
import torch

class Net(torch.nn.Module):
    def __init__(self, n_classes=4):
        super().__init__()
        self.last = torch.nn.Linear(6, n_classes)
        self.conv = torch.nn.Conv2d(3, 6, 3)
        self.norm = torch.nn.BatchNorm2d(6)

    def forward(self, pixels):
        return self.last(torch.relu(self.norm(self.conv(pixels))).mean((2, 3)))

def build(n_classes=4):
    return Net(n_classes)

def wrong():
    return "no module"
"""


class Net(torch.nn.Module):
    """The last layer is registered first, and another one last, so that only a run can tell them apart."""

    def __init__(self, end=None, n_classes=4):
        super().__init__()
        self.last = torch.nn.Linear(6, n_classes)
        self.conv = torch.nn.Conv2d(3, 6, 3)
        self.drop = torch.nn.Dropout(0.5)
        self.end = end or torch.nn.Identity()
        self.hidden = torch.nn.Linear(6, 6)

    def forward(self, pixels):
        pooled = torch.relu(self.conv(pixels)).mean((2, 3))
        return self.end(self.last(self.drop(self.hidden(pooled))))


def _net(**options):
    torch.manual_seed(0)
    return Net(**options)


def _prepared(classifier, n_images=5):
    pixels = np.random.default_rng(1).integers(0, 256, (n_images, 12, 20, 3), dtype=np.uint8)
    return [classifier.prepare(Image.fromarray(item)) for item in pixels]


def _check(classifier, net):
    prepared = _prepared(classifier)
    output = classifier.classify(prepared)
    with torch.no_grad():
        logits = net.eval()(torch.from_numpy(np.stack(prepared)))
        expected = torch.softmax(logits, dim=1).numpy()
    np.testing.assert_allclose(output.probabilities, expected, atol=1e-6)
    np.testing.assert_allclose(classifier.head.logits(output.features), logits.numpy(), atol=1e-5)


def _script(net, path, *, trace=False, freeze=False):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        made = (
            torch.jit.trace(net.eval(), torch.zeros(1, 3, 8, 8))
            if trace
            else torch.jit.script(net.eval())
        )
        made = torch.jit.freeze(made) if freeze else made
        torch.jit.save(made, str(path))
    return path


def test_classify__module_in_memory():
    net = _net()
    classifier = TorchClassifier(module=net, class_names=NAMES, image_side=8)
    assert isinstance(classifier, Classifier)
    assert classifier.class_names == tuple(NAMES)
    assert classifier.image_side == 8
    assert classifier.features_note is None
    _check(classifier, net)


def test_classify__callers_module_is_left_alone():
    net = _net().train()
    classifier = TorchClassifier(module=net, image_side=8)
    before = classifier.classify(_prepared(classifier)).probabilities
    assert net.training
    assert not net.last._forward_pre_hooks
    with torch.no_grad():
        net.last.weight.zero_()
    np.testing.assert_array_equal(classifier.classify(_prepared(classifier)).probabilities, before)


def test_classify__softmax_at_the_end_is_seen():
    net = _net(end=torch.nn.Softmax(dim=1))
    classifier = TorchClassifier(module=net, class_names=NAMES, image_side=8)
    prepared = _prepared(classifier)
    output = classifier.classify(prepared)
    with torch.no_grad():
        expected = net.eval()(torch.from_numpy(np.stack(prepared))).numpy()
    np.testing.assert_allclose(output.probabilities, expected, atol=1e-6)
    np.testing.assert_allclose(classifier.head.probabilities(output.features), expected, atol=1e-5)


def test_classify__multi_label_and_dict_answer():
    class Wrapped(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = _net()

        def forward(self, pixels):
            return {"logits": self.net(pixels)}

    classifier = TorchClassifier(module=Wrapped(), task="multi-label", image_side=8)
    prepared = _prepared(classifier)
    output = classifier.classify(prepared)
    with torch.no_grad():
        expected = torch.sigmoid(_net().eval()(torch.from_numpy(np.stack(prepared)))).numpy()
    np.testing.assert_allclose(output.probabilities, expected, atol=1e-6)
    assert classifier.head.task is Task.MULTI_LABEL


def test_classify__one_output_for_two_classes():
    net = _net(n_classes=1)
    classifier = TorchClassifier(module=net, class_names=["no", "yes"], image_side=8)
    prepared = _prepared(classifier)
    output = classifier.classify(prepared)
    with torch.no_grad():
        expected = torch.sigmoid(net.eval()(torch.from_numpy(np.stack(prepared)))).numpy()[:, 0]
    np.testing.assert_allclose(output.probabilities[:, 1], expected, atol=1e-6)
    np.testing.assert_allclose(
        classifier.head.probabilities(output.features), output.probabilities, atol=1e-6
    )


def test_classify__half_precision_and_no_images():
    classifier = TorchClassifier(module=_net(), image_side=8, dtype="bfloat16")
    exact = TorchClassifier(module=_net(), image_side=8)
    prepared = _prepared(exact)
    np.testing.assert_allclose(
        classifier.classify(prepared).probabilities,
        exact.classify(prepared).probabilities,
        atol=0.02,
    )
    assert classifier.classifier_id != exact.classifier_id
    assert exact.classify([]).probabilities.shape == (0, 4)
    assert exact.classify([]).features.shape == (0, 6)


def test_feature_layer__named():
    classifier = TorchClassifier(module=_net(), image_side=8, feature_layer="hidden")
    assert classifier.head is None
    assert classifier.classify(_prepared(classifier)).features.shape == (5, 6)
    with pytest.raises(ConfigError, match=r"\['last', 'hidden'\]"):
        _ = TorchClassifier(module=_net(), image_side=8, feature_layer="fc").head


def test_head__none_without_linear_layer():
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()
    )
    classifier = TorchClassifier(module=net, image_side=8)
    assert classifier.head is None
    assert "no linear layer" in classifier.features_note
    assert classifier.classify(_prepared(classifier)).features is None


@pytest.mark.parametrize("trace", [False, True])
def test_script__features_in_one_pass(tmp_path, trace):
    net = _net()
    classifier = TorchClassifier(
        path=_script(net, tmp_path / "m.pt", trace=trace), class_names=NAMES, image_side=8
    )
    _check(classifier, net)
    np.testing.assert_array_equal(classifier.head.weights, net.last.weight.detach().numpy())


def test_script__softmax_or_frozen_gives_no_features(tmp_path):
    net = _net(end=torch.nn.Softmax(dim=1))
    for path in (
        _script(net, tmp_path / "soft.pt"),
        _script(_net(), tmp_path / "frozen.pt", freeze=True),
    ):
        classifier = TorchClassifier(path=path, class_names=NAMES, image_side=8)
        output = classifier.classify(_prepared(classifier))
        with torch.no_grad():
            expected = net.eval()(torch.from_numpy(np.stack(_prepared(classifier)))).numpy()
        np.testing.assert_allclose(output.probabilities, expected, atol=1e-6)
        assert output.features is None
        assert "script" in classifier.features_note


def test_script__module_in_memory_is_copied(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        script = torch.jit.script(_net().eval())
    classifier = TorchClassifier(module=script, class_names=NAMES, image_side=8)
    _check(classifier, _net())
    assert script.last.weight.shape == (4, 6)


def test_safetensors__with_factory(tmp_path):
    (tmp_path / "factory_one.py").write_text(FACTORY)
    options = {
        "factory": "factory_one:build",
        "folder": tmp_path,
        "image_side": 8,
        "arguments": {"n_classes": 3},
    }
    sizes = {
        "last.weight": (3, 6),
        "last.bias": (3,),
        "conv.weight": (6, 3, 3, 3),
        "conv.bias": (6,),
    }
    sizes |= {
        "norm.weight": (6,),
        "norm.bias": (6,),
        "norm.running_mean": (6,),
        "norm.running_var": (6,),
    }
    torch.manual_seed(1)
    state = {name: torch.rand(size) for name, size in sizes.items()} | {
        "norm.num_batches_tracked": torch.tensor(1)
    }
    save_file(state, tmp_path / "m.safetensors")
    torch.save({"state_dict": state}, tmp_path / "m.pth")
    classifier = TorchClassifier(path=tmp_path / "m.safetensors", **options)
    np.testing.assert_array_equal(classifier.head.weights, state["last.weight"].numpy())
    plain = TorchClassifier(path=tmp_path / "m.pth", **options)
    prepared = _prepared(plain)
    np.testing.assert_array_equal(
        plain.classify(prepared).probabilities, classifier.classify(prepared).probabilities
    )
    with pytest.raises(ModelError, match=r"size mismatch for last\.weight"):
        _ = TorchClassifier(path=tmp_path / "m.safetensors", **{**options, "arguments": None}).head
    del state["conv.bias"]
    save_file(state | {"extra": torch.zeros(1)}, tmp_path / "less.safetensors")
    with pytest.raises(
        ModelError, match=r"1 missing, such as \['conv.bias'\]; 1 unknown, such as \['extra'\]"
    ):
        _ = TorchClassifier(path=tmp_path / "less.safetensors", **options).head


def test_load__factory_problems(tmp_path):
    (tmp_path / "factory_two.py").write_text(FACTORY)
    save_file({"a": torch.zeros(1)}, tmp_path / "m.safetensors")
    for factory, message in (
        ("factory_two:wrong", "no torch.nn.Module"),
        ("factory_two:torch", "cannot be called"),
    ):
        with pytest.raises((ModelError, ConfigError), match=message):
            _ = TorchClassifier(
                path=tmp_path / "m.safetensors", factory=factory, folder=tmp_path, image_side=8
            ).head
    with pytest.raises(ConfigError, match="holds weights only"):
        _ = TorchClassifier(path=tmp_path / "m.safetensors", image_side=8).head


class Bomb:
    def __reduce__(self):
        return (open, ("exploded", "w"))


def test_load__pickles_are_refused_and_never_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "factory_three.py").write_text(FACTORY)
    torch.save(Bomb(), tmp_path / "bomb.pt")
    (tmp_path / "bomb.pkl").write_bytes(pickle.dumps(Bomb()))
    (tmp_path / "bomb.pth").write_bytes(pickle.dumps(Bomb()))
    torch.save(torch.nn.Linear(2, 2), tmp_path / "whole.pt")
    for name in ("bomb.pt", "bomb.pkl", "bomb.pth", "whole.pt"):
        for factory in (None, "factory_three:build"):
            with pytest.raises(ModelError, match=r"is a pickle.*safetensors"):
                _ = TorchClassifier(
                    path=tmp_path / name, factory=factory, folder=tmp_path, image_side=8
                ).head
    assert not (tmp_path / "exploded").exists()


def test_load__bad_files(tmp_path):
    with pytest.raises(ModelError, match="no such model file"):
        _ = TorchClassifier(path=tmp_path / "none.pt", image_side=8).head
    (tmp_path / "cut.safetensors").write_bytes(b"\x08\x00")
    (tmp_path / "factory_four.py").write_text(FACTORY)
    with pytest.raises(ModelError, match="no safetensors file"):
        _ = TorchClassifier(
            path=tmp_path / "cut.safetensors",
            factory="factory_four:build",
            folder=tmp_path,
            image_side=8,
        ).head


def test_settings__problems():
    with pytest.raises(ConfigError, match="either a module or the path"):
        TorchClassifier(image_side=8)
    with pytest.raises(ConfigError, match="Set image_side"):
        TorchClassifier(module=_net())
    with pytest.raises(ConfigError, match="device"):
        _ = TorchClassifier(module=_net(), image_side=8, device="abacus").head
    with pytest.raises(ConfigError, match="kind of number"):
        _ = TorchClassifier(module=_net(), image_side=8, dtype="int3").head
    with pytest.raises(ModelError, match="4 probabilities an image, but there are 2"):
        _ = TorchClassifier(module=_net(), image_side=8, class_names=["a", "b"]).head
    with pytest.raises(ModelError, match="The module fails on a batch"):
        _ = TorchClassifier(module=_net(), image_side=8, colour="grey").head


def test_classifier_id__weights_and_preprocessing():
    first = TorchClassifier(module=_net(), image_side=8).classifier_id
    assert first.startswith("torch:Net@")
    assert TorchClassifier(module=_net(), image_side=8).classifier_id == first
    assert TorchClassifier(module=_net(), image_side=9).classifier_id != first
    changed = _net()
    with torch.no_grad():
        changed.conv.bias += 1e-3
    assert TorchClassifier(module=changed, image_side=8).classifier_id != first


def test_onnx_export__same_answer_and_features(tmp_path):
    """The same network through torch's exporter and the ONNX classifier."""
    from weakspot.models.onnx.classifier import OnnxClassifier

    net = _net().eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(net, (torch.zeros(1, 3, 8, 8),), str(tmp_path / "m.onnx"), dynamo=False)
    exported = OnnxClassifier(path=tmp_path / "m.onnx", class_names=NAMES)
    direct = TorchClassifier(module=net, class_names=NAMES, image_side=8)
    prepared = _prepared(direct)
    found, expected = exported.classify(prepared), direct.classify(prepared)
    np.testing.assert_allclose(found.probabilities, expected.probabilities, atol=1e-5)
    np.testing.assert_allclose(found.features, expected.features, atol=1e-5)
    np.testing.assert_allclose(exported.head.weights, direct.head.weights, atol=1e-6)
