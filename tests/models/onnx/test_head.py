import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

from weakspot.core.errors import ModelError
from weakspot.core.heads import Head
from weakspot.core.roles import TakesHead
from weakspot.models.onnx.classifier import OnnxClassifier
from weakspot.models.onnx.graph import OnnxGraph
from weakspot.models.onnx.head import check_graph, write_graph

NAMES = ["cat", "dog", "owl", "yak"]
RANDOM = np.random.default_rng(0)
CONV = RANDOM.standard_normal((5, 3, 3, 3)).astype(np.float32)
WEIGHTS = RANDOM.standard_normal((4, 5)).astype(np.float32)
BIAS = RANDOM.standard_normal(4).astype(np.float32)
HEAD = Head(
    weights=RANDOM.standard_normal((4, 5)).astype(np.float32),
    bias=np.array([0.5, -1.0, 2.0, 0.25], np.float32),
)
PIXELS = np.random.default_rng(1).random((3, 3, 8, 8)).astype(np.float32)
GEMM = [helper.make_node("Gemm", ["f", "w", "b"], ["y"], transB=1, name="last")]


def _save(
    path,
    ending,
    constants,
    *,
    outputs=("y",),
    external=None,
    batch="n",
    kind=TensorProto.FLOAT,
    body=None,
    info=(),
):
    usual = [
        helper.make_node("Conv", ["x", "conv"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("GlobalAveragePool", ["c"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
    ]
    conv = CONV.astype(np.float16) if kind == TensorProto.FLOAT16 else CONV
    graph = helper.make_graph(
        [*(usual if body is None else body), *ending],
        "tiny",
        [helper.make_tensor_value_info("x", kind, [batch, 3, 8, 8])],
        [helper.make_tensor_value_info(name, kind, ["rows", "columns"]) for name in outputs],
        [
            numpy_helper.from_array(np.asarray(value), name)
            for name, value in {"conv": conv, **constants}.items()
        ],
        value_info=list(info),
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9, producer_name="maker"
    )
    helper.set_model_props(model, {"names": '["cat", "dog", "owl", "yak"]', "made": "by hand"})
    if external is None:
        onnx.save(model, str(path))
    else:
        onnx.save(model, str(path), save_as_external_data=True, location=external, size_threshold=0)
    return path


def _run(path, *names, pixels=PIXELS):
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(
        list(names) or None, {"x": pixels}
    )


def _features(path, pixels=PIXELS):
    model = onnx.load(str(path))
    model.graph.output.append(onnx.ValueInfoProto(name="f"))
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(["f"], {"x": pixels})[0]


def _others(model, names=("w", "b"), outputs=("y",)):
    """The model as bytes, without the constants and nodes that a repair may touch."""
    rest = onnx.ModelProto()
    rest.CopyFrom(model)
    for tensor in [
        tensor
        for tensor in rest.graph.initializer
        if tensor.name.removesuffix("_repaired") in names
    ]:
        rest.graph.initializer.remove(tensor)
    for node in [node for node in rest.graph.node if node.output[0] in outputs]:
        rest.graph.node.remove(node)
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
    path = _save(tmp_path / "m.onnx", GEMM, {"w": WEIGHTS, "b": BIAS})
    model = _check(path, tmp_path / "out")
    assert _others(model, outputs=()) == _others(onnx.load(str(path)), outputs=())
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    np.testing.assert_array_equal(constants["w"], HEAD.weights)
    np.testing.assert_array_equal(constants["b"], HEAD.bias)
    assert sorted(constants) == ["b", "conv", "w"]
    assert sorted(tmp_path.iterdir()) == [path, tmp_path / "out"]


def test_write_repaired__gemm_factors_are_folded_in(tmp_path):
    ending = [helper.make_node("Gemm", ["f", "w", "b"], ["y"], alpha=0.5, beta=4.0)]
    path = _save(tmp_path / "m.onnx", ending, {"w": WEIGHTS.T * 2, "b": BIAS[None] / 4})
    model = _check(path, tmp_path / "out")
    assert _others(model) == _others(onnx.load(str(path)))
    assert [item.name for item in model.graph.node[-1].attribute] == []
    assert list(model.graph.initializer[-1].dims) == [1, 4]


def test_write_repaired__gemm_without_bias_gets_one(tmp_path):
    for number, inputs in enumerate((["f", "w"], ["f", "w", ""])):
        ending = [helper.make_node("Gemm", inputs, ["y"], transB=1)]
        path = _save(tmp_path / f"{number}.onnx", ending, {"w": WEIGHTS})
        model = _check(path, tmp_path / f"out{number}")
        assert list(model.graph.node[-1].input) == ["f", "w", "y_bias_repaired"]


def test_write_repaired__gemm_with_one_number_as_bias(tmp_path):
    path = _save(tmp_path / "m.onnx", GEMM, {"w": WEIGHTS, "b": np.array([0.5], np.float32)})
    model = _check(path, tmp_path / "out")
    assert [tensor.name for tensor in model.graph.initializer] == ["conv", "w", "b_repaired"]


def test_write_repaired__matmul_and_add_in_both_orders(tmp_path):
    for number, operands in enumerate((["z", "b"], ["b", "z"])):
        ending = [
            helper.make_node("MatMul", ["f", "w"], ["z"]),
            helper.make_node("Add", operands, ["y"]),
        ]
        path = _save(tmp_path / f"{number}.onnx", ending, {"w": WEIGHTS.T, "b": BIAS})
        model = _check(path, tmp_path / f"out{number}")
        assert _others(model, outputs=()) == _others(onnx.load(str(path)), outputs=())


def test_write_repaired__matmul_without_add_gets_one(tmp_path):
    ending = [
        helper.make_node("MatMul", ["f", "w"], ["z"]),
        helper.make_node("LogSoftmax", ["z"], ["y"], axis=1),
    ]
    path = _save(tmp_path / "m.onnx", ending, {"w": WEIGHTS.T}, outputs=("y", "z"))
    written = _repaired(path, tmp_path / "out", output="y")[0]
    model = onnx.load(str(written))
    assert [node.op_type for node in model.graph.node] == [
        "Conv",
        "GlobalAveragePool",
        "Flatten",
        "MatMul",
        "Add",
        "LogSoftmax",
    ]
    assert [output.name for output in model.graph.output] == ["y", "z"]
    np.testing.assert_allclose(_run(written, "z")[0], HEAD.logits(_features(path)), atol=1e-5)
    without = Head(weights=HEAD.weights, bias=np.zeros(4, np.float32))
    plain = onnx.load(str(_repaired(path, tmp_path / "plain", head=without, output="y")[0]))
    assert [node.op_type for node in plain.graph.node][-2:] == ["MatMul", "LogSoftmax"]


def test_write_repaired__constant_nodes_and_transposed_weights(tmp_path):
    ending = [
        helper.make_node("Constant", [], ["k"], value=numpy_helper.from_array(WEIGHTS, "k")),
        helper.make_node("Constant", [], ["kb"], value=numpy_helper.from_array(BIAS, "kb")),
        helper.make_node("Transpose", ["k"], ["kt"], perm=[1, 0]),
        helper.make_node("MatMul", ["f", "kt"], ["z"]),
        helper.make_node("Add", ["z", "kb"], ["y"]),
    ]
    path = _save(tmp_path / "m.onnx", ending, {})
    model = _check(path, tmp_path / "out")
    touched = ("k", "kb", "kt", "z", "y")
    assert _others(model, names=("kt", "kb"), outputs=touched) == _others(
        onnx.load(str(path)), outputs=touched
    )
    assert [node.op_type for node in model.graph.node][-2:] == ["MatMul", "Add"]


def test_write_repaired__shared_weights_stay_for_the_other(tmp_path):
    ending = [*GEMM, helper.make_node("Gemm", ["f", "w", "b"], ["twin"], transB=1)]
    path = _save(tmp_path / "m.onnx", ending, {"w": WEIGHTS, "b": BIAS}, outputs=("y", "twin"))
    written = _repaired(path, tmp_path / "out", output="y")[0]
    np.testing.assert_array_equal(_run(written, "twin")[0], _run(path, "twin")[0])
    np.testing.assert_allclose(_run(written, "y")[0], HEAD.logits(_features(path)), atol=1e-5)
    constants = {
        tensor.name: numpy_helper.to_array(tensor)
        for tensor in onnx.load(str(written)).graph.initializer
    }
    np.testing.assert_array_equal(constants["w"], WEIGHTS)
    np.testing.assert_array_equal(constants["w_repaired"], HEAD.weights)


def test_write_repaired__weights_read_inside_a_branch_stay(tmp_path):
    """A node inside an If reads the same weights; that reader must be seen although it is in another graph."""
    branch = [
        helper.make_graph(
            [helper.make_node("Identity", ["w"], [name])],
            name,
            [],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 5])],
        )
        for name in ("then", "else")
    ]
    ending = [
        *GEMM,
        helper.make_node("If", ["yes"], ["copy"], then_branch=branch[0], else_branch=branch[1]),
    ]
    path = _save(
        tmp_path / "m.onnx",
        ending,
        {"w": WEIGHTS, "b": BIAS, "yes": np.array(True)},
        outputs=("y", "copy"),
    )
    written = _repaired(path, tmp_path / "out", output="y")[0]
    np.testing.assert_array_equal(_run(written, "copy")[0], WEIGHTS)


def test_write_repaired__external_data_is_copied(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    path = _save(home / "m.onnx", GEMM, {"w": WEIGHTS, "b": BIAS}, external="m.weights")
    numbers = (home / "m.weights").read_bytes()
    files = _repaired(path, tmp_path / "out")
    assert files == (tmp_path / "out" / "m_repaired.onnx", tmp_path / "out" / "m.weights")
    (home / "m.weights").unlink()
    path.unlink()
    assert files[1].read_bytes() == numbers
    np.testing.assert_allclose(_run(files[0])[0], HEAD.logits(_features(files[0])), atol=1e-5)


def test_write_repaired__weight_file_of_the_layer_alone_is_not_copied(tmp_path):
    path = _save(tmp_path / "m.onnx", GEMM, {"w": WEIGHTS, "b": BIAS})
    model = onnx.load(str(path))
    (tmp_path / "w.bin").write_bytes(WEIGHTS.tobytes())
    kept = next(tensor for tensor in model.graph.initializer if tensor.name == "w")
    onnx.external_data_helper.set_external_data(kept, location="w.bin")
    kept.ClearField("raw_data")
    path.write_bytes(model.SerializeToString())
    assert _repaired(path, tmp_path / "out") == (tmp_path / "out" / "m_repaired.onnx",)


def test_write_repaired__half_precision_is_kept(tmp_path):
    kind, half = TensorProto.FLOAT16, np.float16
    path = _save(
        tmp_path / "m.onnx", GEMM, {"w": WEIGHTS.astype(half), "b": BIAS.astype(half)}, kind=kind
    )
    written = _repaired(path, tmp_path / "out")[0]
    constants = {
        tensor.name: numpy_helper.to_array(tensor)
        for tensor in onnx.load(str(written)).graph.initializer
    }
    np.testing.assert_array_equal(constants["w"], HEAD.weights.astype(half))
    assert OnnxClassifier(path=path).layer_kind == "float16"
    large = Head(weights=HEAD.weights * np.float32(1e6), bias=HEAD.bias)
    with pytest.raises(ModelError, match="too large for float16"):
        OnnxClassifier(path=path).write_repaired(large, tmp_path / "large")
    assert not (tmp_path / "large").exists()


def test_write_repaired__softmax_and_sigmoid_stay(tmp_path):
    for kind, task in (("Softmax", "single-label"), ("Sigmoid", "multi-label")):
        ending = [
            helper.make_node("Gemm", ["f", "w", "b"], ["z"], transB=1),
            helper.make_node(kind, ["z"], ["y"]),
        ]
        path = _save(tmp_path / f"{kind}.onnx", ending, {"w": WEIGHTS, "b": BIAS})
        classifier = OnnxClassifier(path=path, task=task)
        head = Head(weights=HEAD.weights, bias=HEAD.bias, task=classifier.task)
        written = classifier.write_repaired(head, tmp_path / "out")[0]
        assert onnx.load(str(written)).graph.node[-1].op_type == kind
        np.testing.assert_allclose(_run(written)[0], head.probabilities(_features(path)), atol=1e-5)


def test_write_repaired__one_output_for_two_classes(tmp_path):
    ending = [
        helper.make_node("Gemm", ["f", "w", "b"], ["z"], transB=1),
        helper.make_node("Sigmoid", ["z"], ["y"]),
    ]
    path = _save(tmp_path / "m.onnx", ending, {"w": WEIGHTS[:1], "b": BIAS[:1]})
    head = Head(weights=HEAD.weights[:2], bias=HEAD.bias[:2])
    written = OnnxClassifier(path=path, class_names=["no", "yes"]).write_repaired(
        head, tmp_path / "out"
    )[0]
    np.testing.assert_allclose(
        _run(written)[0][:, 0], head.probabilities(_features(path))[:, 1], atol=1e-5
    )


@pytest.mark.parametrize("batch", [1, 2])
def test_write_repaired__fixed_batch(tmp_path, batch):
    path = _save(tmp_path / "m.onnx", GEMM, {"w": WEIGHTS, "b": BIAS}, batch=batch)
    written = _repaired(path, tmp_path / "out")[0]
    found = OnnxClassifier(path=written)
    image = Image.new("RGB", (8, 8), (200, 30, 90))
    output = found.classify([found.prepare(image)])
    np.testing.assert_allclose(output.probabilities, HEAD.probabilities(output.features), atol=1e-5)
    assert found.class_names == tuple(NAMES)


def test_write_repaired__names_that_are_taken(tmp_path):
    ending = [
        helper.make_node("Relu", ["f"], ["w_repaired"]),
        helper.make_node("Gemm", ["w_repaired", "w", "b"], ["y"], transB=1),
        helper.make_node("Gemm", ["f", "w", "b"], ["twin"], transB=1),
    ]
    path = _save(tmp_path / "m.onnx", ending, {"w": WEIGHTS, "b": BIAS}, outputs=("y", "twin"))
    written = _repaired(path, tmp_path / "out", output="y")[0]
    np.testing.assert_array_equal(_run(written, "twin")[0], _run(path, "twin")[0])


def test_write_repaired__quantised_layer_is_refused(tmp_path):
    ending = [helper.make_node("DequantizeLinear", ["wq", "scale"], ["w"]), *GEMM]
    constants = {"wq": np.round(WEIGHTS * 10).astype(np.int8), "scale": np.float32(0.1), "b": BIAS}
    path = _save(tmp_path / "m.onnx", ending, constants)
    with pytest.raises(
        ModelError, match=r"quantised \(DequantizeLinear\).*repaired_head\.safetensors"
    ):
        OnnxClassifier(path=path).write_repaired(HEAD, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_write_repaired__heads_that_do_not_fit(tmp_path):
    classifier = OnnxClassifier(path=_save(tmp_path / "m.onnx", GEMM, {"w": WEIGHTS, "b": BIAS}))
    wrong = {
        "4 classes and 5 features": Head(weights=HEAD.weights[:, :4], bias=HEAD.bias),
        "single-label with 4 classes": Head(weights=HEAD.weights[:3], bias=HEAD.bias[:3]),
        "NaN": Head(weights=HEAD.weights * np.nan, bias=HEAD.bias),
    }
    for message, head in wrong.items():
        with pytest.raises(ModelError, match=message):
            classifier.write_repaired(head, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.onnx"]


def test_write_repaired__nothing_is_overwritten(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    path = _save(home / "m.onnx", GEMM, {"w": WEIGHTS, "b": BIAS}, external="m.weights")
    numbers = (home / "m.weights").read_bytes()
    with pytest.raises(ModelError, match=r"nothing is overwritten: m\.weights"):
        OnnxClassifier(path=path).write_repaired(HEAD, home)
    assert sorted(found.name for found in home.iterdir()) == ["m.onnx", "m.weights"]
    assert (home / "m.weights").read_bytes() == numbers
    _repaired(path, tmp_path / "out")
    with pytest.raises(ModelError, match=r"m\.weights, m_repaired\.onnx"):
        OnnxClassifier(path=path).write_repaired(HEAD, tmp_path / "out")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ModelError, match="a file, not a folder"):
        OnnxClassifier(path=path).write_repaired(HEAD, tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


def test_write_repaired__file_that_changed_meanwhile(tmp_path):
    path = _save(tmp_path / "m.onnx", GEMM, {"w": WEIGHTS, "b": BIAS})
    classifier = OnnxClassifier(path=path)
    _ = classifier.head
    _save(path, GEMM, {"w": WEIGHTS * 2, "b": BIAS})
    with pytest.raises(ModelError, match="changed since it was loaded"):
        classifier.write_repaired(HEAD, tmp_path / "out")


def test_check_graph__other_scores_are_found(tmp_path):
    graph = OnnxGraph(_save(tmp_path / "m.onnx", GEMM, {"w": WEIGHTS, "b": BIAS}))
    layer = graph.end("y").layer
    (tmp_path / "out").mkdir()
    written = write_graph(graph, layer, HEAD, tmp_path / "out")
    check_graph(graph, layer, HEAD, written, [PIXELS])
    shifted = Head(weights=HEAD.weights, bias=HEAD.bias + np.float32(1e-3))
    with pytest.raises(ModelError, match="scores are not those of the head"):
        check_graph(graph, layer, shifted, written, [PIXELS])


def test_write_repaired__weights_kept_small_and_cast(tmp_path):
    """Weights are kept as float16 and made float32 by a Cast; the layer itself computes in float32, which is kept."""
    ending = [
        helper.make_node("Cast", ["small"], ["w"], to=TensorProto.FLOAT),
        helper.make_node("Gemm", ["f", "w", "b"], ["y"], transB=1),
    ]
    path = _save(tmp_path / "m.onnx", ending, {"small": WEIGHTS.astype(np.float16), "b": BIAS})
    model = _check(path, tmp_path / "out")
    assert [node.op_type for node in model.graph.node] == [
        "Conv",
        "GlobalAveragePool",
        "Flatten",
        "Gemm",
    ]
    assert [tensor.name for tensor in model.graph.initializer] == ["conv", "b", "w_repaired"]


def test_write_repaired__constants_that_are_inputs_too(tmp_path):
    """Old files list constants among the inputs; such an input must keep its name and shape."""
    path = _save(tmp_path / "m.onnx", GEMM, {"w": WEIGHTS, "b": np.array([0.5], np.float32)})
    model = onnx.load(str(path))
    model.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [4, 5]))
    model.graph.input.append(helper.make_tensor_value_info("b", TensorProto.FLOAT, [1]))
    onnx.save(model, str(path))
    written = _check(path, tmp_path / "out")
    assert [given.name for given in written.graph.input] == ["x", "w", "b"]
    assert [tensor.name for tensor in written.graph.initializer] == ["conv", "w", "b", "b_repaired"]


def test_write_repaired__weights_in_a_folder_below(tmp_path):
    home = tmp_path / "home"
    (home / "parts").mkdir(parents=True)
    path = _save(home / "m.onnx", GEMM, {"w": WEIGHTS, "b": BIAS}, external="parts/m.weights")
    files = _repaired(path, tmp_path / "out")
    assert files[1:] == (tmp_path / "out" / "parts" / "m.weights",)
    np.testing.assert_allclose(_run(files[0])[0], HEAD.logits(_features(path)), atol=1e-5)


def test_write_repaired__double_precision(tmp_path):
    body = [
        helper.make_node("Conv", ["x", "conv"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("GlobalAveragePool", ["c"], ["p"]),
        helper.make_node("Flatten", ["p"], ["g"]),
        helper.make_node("Cast", ["g"], ["f"], to=TensorProto.DOUBLE),
    ]
    ending = [
        helper.make_node("Gemm", ["f", "w", "b"], ["z"], transB=1),
        helper.make_node("Cast", ["z"], ["y"], to=TensorProto.FLOAT),
    ]
    path = _save(
        tmp_path / "m.onnx",
        ending,
        {"w": WEIGHTS.astype(np.float64), "b": BIAS.astype(np.float64)},
        body=body,
    )
    model = _check(path, tmp_path / "out")
    assert model.graph.initializer[1].data_type == TensorProto.DOUBLE


def test_write_repaired__export_of_torch(tmp_path):
    """A network as torch's exporter writes it."""
    import warnings

    import torch

    torch.manual_seed(0)
    layers = [
        torch.nn.Conv2d(3, 5, 3),
        torch.nn.BatchNorm2d(5),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
    ]
    net = torch.nn.Sequential(*layers, torch.nn.Linear(5, 4)).eval()
    path = tmp_path / "m.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            net,
            (torch.zeros(1, 3, 8, 8),),
            str(path),
            dynamo=False,
            dynamic_axes={"x": {0: "n"}},
            input_names=["x"],
        )
    written = _repaired(path, tmp_path / "out", class_names=NAMES)[0]
    with torch.no_grad():
        features = net[:-1](torch.from_numpy(PIXELS)).numpy()
    np.testing.assert_allclose(_run(written)[0], HEAD.logits(features), atol=1e-5)
