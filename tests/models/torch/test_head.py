import copy
import zipfile

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from tests.models.tiny_networks import (
    net,
    save_vit,
    script,
    state,
    with_factory,
    without_layer,
)

from weakspot.core.errors import ModelError
from weakspot.core.heads import Head
from weakspot.core.roles import TakesHead
from weakspot.models.torch.classifier import TimmClassifier, TorchClassifier
from weakspot.models.transformers.images import TransformersClassifier

NAMES = ["cat", "dog", "owl"]
HEAD = Head(
    weights=np.random.default_rng(3).standard_normal((3, 6)).astype(np.float32),
    bias=np.array([0.5, -1.0, 2.0], np.float32),
)


def _prepared(classifier, side=8):
    pixels = np.random.default_rng(1).random((4, 3, side, side)).astype(np.float32)
    return list(pixels)


def _check(before, after, head=HEAD):
    """The features are the same numbers, and the probabilities are those of the head."""
    prepared = _prepared(before, before.image_side)
    old, new = before.classify(prepared), after.classify(prepared)
    np.testing.assert_array_equal(old.features, new.features)
    np.testing.assert_allclose(new.probabilities, head.probabilities(old.features), atol=1e-5)
    np.testing.assert_allclose(after.head.weights, head.weights, atol=1e-6)


def test_write_repaired__safetensorswith_factory(tmp_path):
    options, numbers = {"class_names": NAMES} | with_factory(tmp_path, "handing_one"), state()
    save_file(numbers, tmp_path / "m.safetensors", metadata={"format": "pt", "made": "here"})
    content = (tmp_path / "m.safetensors").read_bytes()
    classifier = TorchClassifier(path=tmp_path / "m.safetensors", **options)
    assert isinstance(classifier, TakesHead)
    files = classifier.write_repaired(HEAD, tmp_path / "out")
    assert files == (tmp_path / "out" / "m_repaired.safetensors",)
    assert (tmp_path / "m.safetensors").read_bytes() == content
    found = load_file(files[0])
    assert sorted(found) == sorted(numbers)
    for name in set(numbers) - {"last.weight", "last.bias"}:
        assert torch.equal(found[name], numbers[name])
    np.testing.assert_array_equal(found["last.weight"].numpy(), HEAD.weights)
    np.testing.assert_array_equal(found["last.bias"].numpy(), HEAD.bias)
    with safe_open(str(files[0]), "pt") as opened:
        assert opened.metadata() == {"format": "pt", "made": "here"}
    _check(classifier, TorchClassifier(path=files[0], **options))


def test_write_repaired__state_dict_keeps_its_wrapper(tmp_path):
    options, numbers = {"class_names": NAMES} | with_factory(tmp_path, "handing_two"), state()
    torch.save({"state_dict": numbers, "epoch": 7}, tmp_path / "m.pt")
    classifier = TorchClassifier(path=tmp_path / "m.pt", **options)
    files = classifier.write_repaired(HEAD, tmp_path / "out")
    assert [file.name for file in files] == ["m_repaired.pt", "m_repaired.safetensors"]
    found = torch.load(files[0], weights_only=True)
    assert list(found) == ["state_dict"]
    assert list(found["state_dict"]) == list(numbers)
    for file in files:
        _check(classifier, TorchClassifier(path=file, **options))


def test_write_repaired__half_precision_in_the_file_is_kept(tmp_path):
    options = {"class_names": NAMES} | with_factory(tmp_path, "handing_three")
    numbers = {
        name: value.half() if value.is_floating_point() else value
        for name, value in state().items()
    }
    save_file(numbers, tmp_path / "m.safetensors")
    classifier = TorchClassifier(path=tmp_path / "m.safetensors", **options)
    written = classifier.write_repaired(HEAD, tmp_path / "out")[0]
    assert classifier.layer_kind == "float16"
    np.testing.assert_array_equal(
        load_file(written)["last.weight"].numpy(), HEAD.weights.astype(np.float16)
    )
    with pytest.raises(ModelError, match="too large for float16"):
        classifier.write_repaired(
            Head(weights=HEAD.weights * np.float32(1e6), bias=HEAD.bias), tmp_path / "large"
        )
    assert not (tmp_path / "large").exists()


def test_write_repaired__running_in_half_precision_keeps_the_file_exact(tmp_path):
    options, numbers = {"class_names": NAMES} | with_factory(tmp_path, "handing_four"), state()
    save_file(numbers, tmp_path / "m.safetensors")
    classifier = TorchClassifier(path=tmp_path / "m.safetensors", dtype="float16", **options)
    found = load_file(classifier.write_repaired(HEAD, tmp_path / "out")[0])
    assert torch.equal(found["conv.weight"], numbers["conv.weight"])
    np.testing.assert_array_equal(found["last.weight"].numpy(), HEAD.weights)


def test_write_repaired__module_in_memory(tmp_path):
    network = net()
    kept = copy.deepcopy(network.state_dict())
    classifier = TorchClassifier(module=network, class_names=NAMES, image_side=8)
    written = classifier.write_repaired(HEAD, tmp_path / "out")
    assert [file.name for file in written] == ["Net_repaired.safetensors"]
    assert all(torch.equal(value, kept[name]) for name, value in network.state_dict().items())
    other = net()
    other.load_state_dict(load_file(written[0]))
    _check(classifier, TorchClassifier(module=other, class_names=NAMES, image_side=8))
    with torch.no_grad():
        network.conv.bias += 1
    with pytest.raises(ModelError, match="weights changed since they were loaded"):
        classifier.write_repaired(HEAD, tmp_path / "again")


def test_write_repaired__softmax_inside_the_module_stays(tmp_path):
    classifier = TorchClassifier(
        module=net(end=torch.nn.Softmax(dim=1)), class_names=NAMES, image_side=8
    )
    other = net(end=torch.nn.Softmax(dim=1))
    other.load_state_dict(load_file(classifier.write_repaired(HEAD, tmp_path / "out")[0]))
    _check(classifier, TorchClassifier(module=other, class_names=NAMES, image_side=8))


def test_write_repaired__one_output_for_two_classes(tmp_path):
    classifier = TorchClassifier(
        module=net(last=torch.nn.Linear(6, 1)), class_names=["no", "yes"], image_side=8
    )
    head = Head(weights=HEAD.weights[:2], bias=HEAD.bias[:2])
    found = load_file(classifier.write_repaired(head, tmp_path / "out")[0])
    np.testing.assert_allclose(
        found["last.weight"].numpy()[0], head.weights[1] - head.weights[0], atol=1e-6
    )
    np.testing.assert_allclose(found["last.bias"].numpy(), [-1.5], atol=1e-6)


def test_write_repaired__layer_without_bias(tmp_path):
    classifier = TorchClassifier(
        module=net(last=torch.nn.Linear(6, 3, bias=False)), class_names=NAMES, image_side=8
    )
    with pytest.raises(ModelError, match=r"'last' has no bias.*Build the module with a bias"):
        classifier.write_repaired(HEAD, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    without = Head(weights=HEAD.weights, bias=np.zeros(3, np.float32))
    assert sorted(load_file(classifier.write_repaired(without, tmp_path / "out")[0])) == [
        "conv.bias",
        "conv.weight",
        "hidden.bias",
        "hidden.weight",
        "last.weight",
    ]


def test_write_repaired__weights_that_are_shared_or_computed(tmp_path):
    network = net(last=torch.nn.Linear(6, 6))
    network.hidden.weight = network.last.weight
    head = Head(weights=np.eye(6, dtype=np.float32), bias=np.zeros(6, np.float32))
    with pytest.raises(ModelError, match=r"shares its numbers with hidden\.weight"):
        TorchClassifier(module=network, image_side=8).write_repaired(head, tmp_path / "out")
    normed = net(last=torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(6, 3)))
    with pytest.raises(ModelError, match="computed from other numbers"):
        TorchClassifier(module=normed, class_names=NAMES, image_side=8).write_repaired(
            HEAD, tmp_path / "out"
        )
    assert list(tmp_path.iterdir()) == []


def test_write_repaired__no_head_and_existing_files(tmp_path):
    with pytest.raises(ModelError, match=r"no linear layer.*repaired_head\.safetensors"):
        TorchClassifier(module=without_layer(), image_side=8).write_repaired(HEAD, tmp_path / "out")
    classifier = TorchClassifier(module=net(), class_names=NAMES, image_side=8)
    (tmp_path / "Net_repaired.safetensors").write_text("mine")
    with pytest.raises(ModelError, match=r"nothing is overwritten: Net_repaired\.safetensors"):
        classifier.write_repaired(HEAD, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["Net_repaired.safetensors"]
    assert (tmp_path / "Net_repaired.safetensors").read_text() == "mine"


@pytest.mark.parametrize("trace", [False, True])
def test_write_repaired_script(tmp_path, trace):
    path = script(net(), tmp_path / "m.pt", trace=trace)
    content = path.read_bytes()
    classifier = TorchClassifier(path=path, class_names=NAMES, image_side=8)
    files = classifier.write_repaired(HEAD, tmp_path / "out")
    assert files == (tmp_path / "out" / "m_repaired.pt",)
    assert path.read_bytes() == content
    with zipfile.ZipFile(files[0]) as archive:
        assert [
            archive.read(name) for name in archive.namelist() if name.endswith("labels.txt")
        ] == [b"cat dog owl"]
    _check(classifier, TorchClassifier(path=files[0], class_names=NAMES, image_side=8))


def test_write_repaired__script_in_memory(tmp_path):
    made = script(net())
    classifier = TorchClassifier(module=made, class_names=NAMES, image_side=8)
    written = classifier.write_repaired(HEAD, tmp_path / "out")[0]
    _check(classifier, TorchClassifier(path=written, class_names=NAMES, image_side=8))
    assert made.last.weight.shape == (3, 6)


def test_write_repaired__timm_checkpoint(tmp_path):
    import timm

    torch.manual_seed(0)
    made = timm.create_model("test_resnet", pretrained=False, num_classes=3).eval()
    state = made.state_dict()
    save_file(state, tmp_path / "m.safetensors")
    options = {"model": "test_resnet", "class_names": NAMES}
    classifier = TimmClassifier(checkpoint=tmp_path / "m.safetensors", **options)
    width = classifier.head.weights.shape[1]
    head = Head(
        weights=np.random.default_rng(3).standard_normal((3, width)).astype(np.float32),
        bias=HEAD.bias,
    )
    written = classifier.write_repaired(head, tmp_path / "out")[0]
    found = load_file(written)
    changed = [name for name in state if not torch.equal(found[name], state[name])]
    assert len(changed) == 2
    np.testing.assert_array_equal(found[changed[0]].numpy(), head.weights)
    _check(classifier, TimmClassifier(checkpoint=written, **options), head)


def test_write_repaired__transformers_folder(tmp_path):
    import transformers

    home = tmp_path / "home"
    save_vit(home, names=NAMES)
    contents = {path.name: path.read_bytes() for path in home.iterdir()}
    classifier = TransformersClassifier(model=home)
    head = Head(
        weights=np.random.default_rng(3).standard_normal((3, 8)).astype(np.float32), bias=HEAD.bias
    )
    files = classifier.write_repaired(head, tmp_path / "out")
    assert [file.name for file in files] == [
        "model.safetensors",
        "config.json",
        "preprocessor_config.json",
    ]
    assert {path.name: path.read_bytes() for path in home.iterdir()} == contents
    loaded = transformers.AutoModelForImageClassification.from_pretrained(tmp_path / "out")
    np.testing.assert_array_equal(loaded.classifier.weight.detach().numpy(), head.weights)
    assert loaded.config.id2label == {0: "cat", 1: "dog", 2: "owl"}
    before, after = load_file(home / "model.safetensors"), load_file(files[0])
    assert {name for name in before if not torch.equal(before[name], after[name])} == {
        "classifier.weight",
        "classifier.bias",
    }
    _check(classifier, TransformersClassifier(model=tmp_path / "out"), head)
    with pytest.raises(
        ModelError, match=r"config\.json, model\.safetensors, preprocessor_config\.json"
    ):
        classifier.write_repaired(head, home)
    assert {path.name: path.read_bytes() for path in home.iterdir()} == contents
