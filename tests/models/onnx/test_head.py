import warnings

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, numpy_helper
from PIL import Image
from tests.models.tiny_graphs import (
    BIAS,
    CONV,
    NAMES,
    WEIGHTS,
    entry,
    gemm,
    node,
    pooled,
    save_graph,
)

from weakspot.core.errors import ModelError
from weakspot.core.heads import Head
from weakspot.core.roles import TakesHead
from weakspot.models.onnx.classifier import OnnxClassifier
from weakspot.models.onnx.graph import OnnxGraph, check_graph, write_graph

HEAD = Head(
    weights=np.random.default_rng(5).standard_normal((4, 5)).astype(np.float32),
    bias=np.array([0.5, -1.0, 2.0, 0.25], np.float32),
)
PIXELS = np.random.default_rng(1).random((3, 3, 8, 8)).astype(np.float32)
USUAL = {"w": WEIGHTS, "b": BIAS}
PLACES = ["rows", "columns"]
TWIN = node("Gemm", ["f", "w", "b"], ["twin"], transB=1)


def _save(path, ending=None, constants=USUAL, *, outputs=("y",), body=None, batch="n", **options):
    kind = options.pop("kind", TensorProto.FLOAT)
    nodes = [*(pooled() if body is None else body), *(gemm("y") if ending is None else ending)]
    conv = CONV.astype(np.float16) if kind == TensorProto.FLOAT16 else CONV
    return save_graph(
        path,
        nodes,
        [entry("x", kind, [batch, 3, 8, 8])],
        [entry(name, kind, PLACES) for name in outputs],
        {"conv": conv, **constants},
        metadata={"names": str(NAMES), "made": "by hand"},
        **options,
    )


def _session(model):
    content = model if isinstance(model, str) else model.SerializeToString()
    return onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])


def _run(path, *names, pixels=PIXELS):
    return _session(str(path)).run(list(names) or None, {"x": pixels})


def _features(path, pixels=PIXELS):
    model = onnx.load(str(path))
    model.graph.output.append(onnx.ValueInfoProto(name="f"))
    return _session(model).run(["f"], {"x": pixels})[0]


def _constants(model):
    return {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}


def _kinds(model):
    return [one.op_type for one in model.graph.node]


def _others(model, names=("w", "b"), outputs=("y",)):
    """The model as bytes, without the constants and nodes that a repair may touch."""
    rest = onnx.ModelProto()
    rest.CopyFrom(model)
    touched = [one for one in rest.graph.initializer if one.name.removesuffix("_repaired") in names]
    for tensor in touched:
        rest.graph.initializer.remove(tensor)
    for one in [one for one in rest.graph.node if one.output[0] in outputs]:
        rest.graph.node.remove(one)
    return rest.SerializeToString(deterministic=True)


def _repaired(path, folder, head=HEAD, **options):
    before = path.read_bytes()
    classifier = OnnxClassifier(path=path, **options)
    assert isinstance(classifier, TakesHead)
    files = classifier.write_repaired(head, folder)
    assert path.read_bytes() == before
    assert files[0] == folder / f"{path.stem}_repaired.onnx"
    return files


def _check(path, folder, **options):
    written = _repaired(path, folder, **options)[0]
    features = _features(path)
    np.testing.assert_array_equal(_features(written), features)
    np.testing.assert_allclose(_run(written)[0], HEAD.logits(features), atol=1e-5)
    onnx.checker.check_model(str(written))
    return onnx.load(str(written))


def test_write_repaired__gemm_changes_two_constants_only(tmp_path):
    path = _save(tmp_path / "m.onnx")
    model = _check(path, tmp_path / "out")
    assert _others(model, outputs=()) == _others(onnx.load(str(path)), outputs=())
    constants = _constants(model)
    np.testing.assert_array_equal(constants["w"], HEAD.weights)
    np.testing.assert_array_equal(constants["b"], HEAD.bias)
    assert sorted(constants) == ["b", "conv", "w"]
    assert sorted(tmp_path.iterdir()) == [path, tmp_path / "out"]


def test_write_repaired__gemm_factors_are_folded_in(tmp_path):
    ending = [node("Gemm", ["f", "w", "b"], ["y"], alpha=0.5, beta=4.0)]
    path = _save(tmp_path / "m.onnx", ending, {"w": WEIGHTS.T * 2, "b": BIAS[None] / 4})
    model = _check(path, tmp_path / "out")
    assert _others(model) == _others(onnx.load(str(path)))
    assert [item.name for item in model.graph.node[-1].attribute] == []
    assert list(model.graph.initializer[-1].dims) == [1, 4]


@pytest.mark.parametrize("inputs", [["f", "w"], ["f", "w", ""]])
def test_write_repaired__gemm_without_bias_gets_one(tmp_path, inputs):
    path = _save(tmp_path / "m.onnx", [node("Gemm", inputs, ["y"], transB=1)], {"w": WEIGHTS})
    model = _check(path, tmp_path / "out")
    assert list(model.graph.node[-1].input) == ["f", "w", "y_bias_repaired"]


def test_write_repaired__gemm_with_one_number_as_bias(tmp_path):
    path = _save(tmp_path / "m.onnx", constants={"w": WEIGHTS, "b": np.array([0.5], np.float32)})
    assert list(_constants(_check(path, tmp_path / "out"))) == ["conv", "w", "b_repaired"]


@pytest.mark.parametrize("operands", [["z", "b"], ["b", "z"]])
def test_write_repaired__matmul_and_add_in_both_orders(tmp_path, operands):
    ending = [node("MatMul", ["f", "w"], ["z"]), node("Add", operands, ["y"])]
    path = _save(tmp_path / "m.onnx", ending, {"w": WEIGHTS.T, "b": BIAS})
    model = _check(path, tmp_path / "out")
    assert _others(model, outputs=()) == _others(onnx.load(str(path)), outputs=())


def test_write_repaired__matmul_without_add_gets_one(tmp_path):
    ending = [node("MatMul", ["f", "w"], ["z"]), node("LogSoftmax", ["z"], ["y"], axis=1)]
    path = _save(tmp_path / "m.onnx", ending, {"w": WEIGHTS.T}, outputs=("y", "z"))
    written = _repaired(path, tmp_path / "out", output="y")[0]
    model = onnx.load(str(written))
    assert _kinds(model)[2:] == ["Flatten", "MatMul", "Add", "LogSoftmax"]
    assert [output.name for output in model.graph.output] == ["y", "z"]
    np.testing.assert_allclose(_run(written, "z")[0], HEAD.logits(_features(path)), atol=1e-5)
    without = Head(weights=HEAD.weights, bias=np.zeros(4, np.float32))
    plain = onnx.load(str(_repaired(path, tmp_path / "plain", head=without, output="y")[0]))
    assert _kinds(plain)[-2:] == ["MatMul", "LogSoftmax"]


def test_write_repaired__constant_nodes_and_transposed_weights(tmp_path):
    ending = [
        node("Constant", [], ["k"], value=numpy_helper.from_array(WEIGHTS, "k")),
        node("Constant", [], ["kb"], value=numpy_helper.from_array(BIAS, "kb")),
        node("Transpose", ["k"], ["kt"], perm=[1, 0]),
        node("MatMul", ["f", "kt"], ["z"]),
        node("Add", ["z", "kb"], ["y"]),
    ]
    path = _save(tmp_path / "m.onnx", ending, {})
    model = _check(path, tmp_path / "out")
    touched = ("k", "kb", "kt", "z", "y")
    rest = _others(onnx.load(str(path)), outputs=touched)
    assert _others(model, names=("kt", "kb"), outputs=touched) == rest
    assert _kinds(model)[-2:] == ["MatMul", "Add"]


def test_write_repaired__shared_weights_stay_for_the_other(tmp_path):
    path = _save(tmp_path / "m.onnx", [*gemm("y"), TWIN], outputs=("y", "twin"))
    written = _repaired(path, tmp_path / "out", output="y")[0]
    np.testing.assert_array_equal(_run(written, "twin")[0], _run(path, "twin")[0])
    np.testing.assert_allclose(_run(written, "y")[0], HEAD.logits(_features(path)), atol=1e-5)
    constants = _constants(onnx.load(str(written)))
    np.testing.assert_array_equal(constants["w"], WEIGHTS)
    np.testing.assert_array_equal(constants["w_repaired"], HEAD.weights)


def test_write_repaired__weights_read_inside_a_branch_stay(tmp_path):
    """A node inside an If reads the same weights; that reader must be seen although it is in another graph."""
    then, other = (
        onnx.helper.make_graph([node("Identity", ["w"], [name])], name, [], [entry(name, shape=[4, 5])])
        for name in ("then", "else")
    )  # fmt: skip
    ending = [*gemm("y"), node("If", ["yes"], ["copy"], then_branch=then, else_branch=other)]
    constants = {**USUAL, "yes": np.array(True)}
    path = _save(tmp_path / "m.onnx", ending, constants, outputs=("y", "copy"))
    written = _repaired(path, tmp_path / "out", output="y")[0]
    np.testing.assert_array_equal(_run(written, "copy")[0], WEIGHTS)


def test_write_repaired__names_that_are_taken(tmp_path):
    ending = [
        node("Relu", ["f"], ["w_repaired"]),
        node("Gemm", ["w_repaired", "w", "b"], ["y"], transB=1),
        TWIN,
    ]
    path = _save(tmp_path / "m.onnx", ending, outputs=("y", "twin"))
    written = _repaired(path, tmp_path / "out", output="y")[0]
    np.testing.assert_array_equal(_run(written, "twin")[0], _run(path, "twin")[0])


@pytest.mark.parametrize("place", ["m.weights", "parts/m.weights"])
def test_write_repaired__external_data_is_copied(tmp_path, place):
    home = tmp_path / "home"
    (home / place).parent.mkdir(parents=True)
    path = _save(home / "m.onnx", external=place)
    numbers = (home / place).read_bytes()
    files = _repaired(path, tmp_path / "out")
    assert files == (tmp_path / "out" / "m_repaired.onnx", tmp_path / "out" / place)
    (home / place).unlink()
    path.unlink()
    assert files[1].read_bytes() == numbers
    np.testing.assert_allclose(_run(files[0])[0], HEAD.logits(_features(files[0])), atol=1e-5)


def test_write_repaired__weight_file_of_the_layer_alone_is_not_copied(tmp_path):
    path = _save(tmp_path / "m.onnx")
    model = onnx.load(str(path))
    (tmp_path / "w.bin").write_bytes(WEIGHTS.tobytes())
    kept = next(tensor for tensor in model.graph.initializer if tensor.name == "w")
    onnx.external_data_helper.set_external_data(kept, location="w.bin")
    kept.ClearField("raw_data")
    path.write_bytes(model.SerializeToString())
    assert _repaired(path, tmp_path / "out") == (tmp_path / "out" / "m_repaired.onnx",)


def test_write_repaired__half_precision_is_kept(tmp_path):
    halves = {name: values.astype(np.float16) for name, values in USUAL.items()}
    path = _save(tmp_path / "m.onnx", constants=halves, kind=TensorProto.FLOAT16)
    written = _repaired(path, tmp_path / "out")[0]
    found = _constants(onnx.load(str(written)))["w"]
    np.testing.assert_array_equal(found, HEAD.weights.astype(np.float16))
    assert OnnxClassifier(path=path).layer_kind == "float16"


def test_write_repaired__weights_kept_small_and_cast(tmp_path):
    """Weights are kept as float16 and made float32 by a Cast; the layer itself computes in float32, which is kept."""
    ending = [node("Cast", ["small"], ["w"], to=TensorProto.FLOAT), *gemm("y")]
    constants = {"small": WEIGHTS.astype(np.float16), "b": BIAS}
    model = _check(_save(tmp_path / "m.onnx", ending, constants), tmp_path / "out")
    assert _kinds(model)[2:] == ["Flatten", "Gemm"]
    assert list(_constants(model)) == ["conv", "b", "w_repaired"]


def test_write_repaired__double_precision(tmp_path):
    body = [*pooled()[:2], node("Flatten", ["p"], ["g"])]
    body += [node("Cast", ["g"], ["f"], to=TensorProto.DOUBLE)]
    ending = [*gemm(), node("Cast", ["z"], ["y"], to=TensorProto.FLOAT)]
    doubles = {name: values.astype(np.float64) for name, values in USUAL.items()}
    model = _check(_save(tmp_path / "m.onnx", ending, doubles, body=body), tmp_path / "out")
    assert model.graph.initializer[1].data_type == TensorProto.DOUBLE


@pytest.mark.parametrize(
    ("kind", "task"), [("Softmax", "single-label"), ("Sigmoid", "multi-label")]
)
def test_write_repaired__softmax_and_sigmoid_stay(tmp_path, kind, task):
    path = _save(tmp_path / "m.onnx", gemm(end=kind))
    classifier = OnnxClassifier(path=path, task=task)
    head = Head(weights=HEAD.weights, bias=HEAD.bias, task=classifier.task)
    written = classifier.write_repaired(head, tmp_path / "out")[0]
    assert _kinds(onnx.load(str(written)))[-1] == kind
    np.testing.assert_allclose(_run(written)[0], head.probabilities(_features(path)), atol=1e-5)


def test_write_repaired__one_output_for_two_classes(tmp_path):
    path = _save(tmp_path / "m.onnx", gemm(end="Sigmoid"), {"w": WEIGHTS[:1], "b": BIAS[:1]})
    head = Head(weights=HEAD.weights[:2], bias=HEAD.bias[:2])
    classifier = OnnxClassifier(path=path, class_names=["no", "yes"])
    written = classifier.write_repaired(head, tmp_path / "out")[0]
    expected = head.probabilities(_features(path))[:, 1]
    np.testing.assert_allclose(_run(written)[0][:, 0], expected, atol=1e-5)


@pytest.mark.parametrize("batch", [1, 2])
def test_write_repaired__fixed_batch(tmp_path, batch):
    path = _save(tmp_path / "m.onnx", batch=batch)
    written = OnnxClassifier(path=_repaired(path, tmp_path / "out")[0])
    output = written.classify([written.prepare(Image.new("RGB", (8, 8), (200, 30, 90)))])
    np.testing.assert_allclose(output.probabilities, HEAD.probabilities(output.features), atol=1e-5)
    assert written.class_names == tuple(NAMES)


def test_write_repaired__constants_that_are_inputs_too(tmp_path):
    """Old files list constants among the inputs; such an input must keep its name and shape."""
    path = _save(tmp_path / "m.onnx", constants={"w": WEIGHTS, "b": np.array([0.5], np.float32)})
    model = onnx.load(str(path))
    model.graph.input.extend([entry("w", shape=[4, 5]), entry("b", shape=[1])])
    onnx.save(model, str(path))
    written = _check(path, tmp_path / "out")
    assert [given.name for given in written.graph.input] == ["x", "w", "b"]
    assert list(_constants(written)) == ["conv", "w", "b", "b_repaired"]


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (Head(weights=HEAD.weights[:, :4], bias=HEAD.bias), "4 classes and 5 features"),
        (Head(weights=HEAD.weights[:3], bias=HEAD.bias[:3]), "single-label with 4 classes"),
        (Head(weights=HEAD.weights * np.nan, bias=HEAD.bias), "NaN"),
        (Head(weights=HEAD.weights * np.float32(1e6), bias=HEAD.bias), "too large for float16"),
    ],
)
def test_write_repaired__heads_that_do_not_fit(tmp_path, head, message):
    halves = {name: values.astype(np.float16) for name, values in USUAL.items()}
    is_half = "float16" in message
    graph = {"constants": halves, "kind": TensorProto.FLOAT16} if is_half else {}
    classifier = OnnxClassifier(path=_save(tmp_path / "m.onnx", **graph))
    with pytest.raises(ModelError, match=message):
        classifier.write_repaired(head, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]


def test_write_repaired__quantised_layer_is_refused(tmp_path):
    ending = [node("DequantizeLinear", ["wq", "scale"], ["w"]), *gemm("y")]
    constants = {"wq": np.round(WEIGHTS * 10).astype(np.int8), "scale": np.float32(0.1), "b": BIAS}
    classifier = OnnxClassifier(path=_save(tmp_path / "m.onnx", ending, constants))
    with pytest.raises(ModelError, match=r"quantised \(Dequant.*repaired_head\.safetensors"):
        classifier.write_repaired(HEAD, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_write_repaired__nothing_is_overwritten(tmp_path):
    home = tmp_path / "home"
    path = _save(home / "m.onnx", external="m.weights")
    numbers = (home / "m.weights").read_bytes()
    _repaired(path, tmp_path / "out")
    (tmp_path / "file").write_text("mine")
    for folder, message in (
        (home, r"nothing is overwritten: m\.weights"),
        (tmp_path / "out", r"m\.weights, m_repaired\.onnx"),
        (tmp_path / "file", "a file, not a folder"),
    ):
        with pytest.raises(ModelError, match=message):
            OnnxClassifier(path=path).write_repaired(HEAD, folder)
    assert sorted(one.name for one in home.iterdir()) == ["m.onnx", "m.weights"]
    assert (home / "m.weights").read_bytes() == numbers
    assert (tmp_path / "file").read_text() == "mine"


def test_write_repaired__file_that_changed_meanwhile(tmp_path):
    path = _save(tmp_path / "m.onnx")
    classifier = OnnxClassifier(path=path)
    _ = classifier.head
    _save(path, constants={"w": WEIGHTS * 2, "b": BIAS})
    with pytest.raises(ModelError, match="changed since it was loaded"):
        classifier.write_repaired(HEAD, tmp_path / "out")


def test_check_graph__other_scores_are_found(tmp_path):
    graph = OnnxGraph(_save(tmp_path / "m.onnx"))
    layer, *_ = graph.end("y")
    (tmp_path / "out").mkdir()
    written = write_graph(graph, layer, HEAD, tmp_path / "out")
    check_graph(graph, layer, HEAD, written, [PIXELS])
    shifted = Head(weights=HEAD.weights, bias=HEAD.bias + np.float32(1e-3))
    with pytest.raises(ModelError, match="scores are not those of the head"):
        check_graph(graph, layer, shifted, written, [PIXELS])


def test_write_repaired__export_of_torch(tmp_path):
    """A network as torch's exporter writes it."""
    torch.manual_seed(0)
    layers = [torch.nn.Conv2d(3, 5, 3), torch.nn.BatchNorm2d(5), torch.nn.ReLU()]
    layers += [torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(5, 4)]
    net = torch.nn.Sequential(*layers).eval()
    path = tmp_path / "m.onnx"
    axes = {"dynamic_axes": {"x": {0: "n"}}, "input_names": ["x"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(net, (torch.zeros(1, 3, 8, 8),), str(path), dynamo=False, **axes)
    written = _repaired(path, tmp_path / "out", class_names=NAMES)[0]
    with torch.no_grad():
        features = net[:-1](torch.from_numpy(PIXELS)).numpy()
    np.testing.assert_allclose(_run(written)[0], HEAD.logits(features), atol=1e-5)
