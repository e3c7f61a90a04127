import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

from weakspot.core.dataset import Task
from weakspot.core.errors import ConfigError, ModelError
from weakspot.core.roles import Classifier
from weakspot.models.onnx.classifier import OnnxClassifier

NAMES = ["cat", "dog", "owl", "yak"]
RANDOM = np.random.default_rng(0)
CONV = RANDOM.standard_normal((5, 3, 3, 3)).astype(np.float32)
WEIGHTS = RANDOM.standard_normal((4, 5)).astype(np.float32)
BIAS = RANDOM.standard_normal(4).astype(np.float32)


def _images(n_images=5):
    pixels = np.random.default_rng(1).integers(0, 256, (n_images, 12, 20, 3), dtype=np.uint8)
    return [Image.fromarray(item) for item in pixels]


def _body(layout="channels-first"):
    turn = (
        []
        if layout == "channels-first"
        else [helper.make_node("Transpose", ["x"], ["x1"], perm=[0, 3, 1, 2])]
    )
    return [
        *turn,
        helper.make_node("Conv", ["x1" if turn else "x", "conv"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("GlobalAveragePool", ["c"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
    ]


def _save(
    path,
    ending,
    constants,
    *,
    batch="n",
    sizes=(3, 8, 8),
    kind=TensorProto.FLOAT,
    outputs=("y",),
    metadata=None,
    body=None,
    external=None,
):
    graph = helper.make_graph(
        [*(body or _body()), *ending],
        "tiny",
        [helper.make_tensor_value_info("x", kind, [batch, *sizes])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [
            numpy_helper.from_array(np.asarray(value), name)
            for name, value in {"conv": CONV, **constants}.items()
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    helper.set_model_props(model, metadata or {})
    if external is None:
        onnx.save(model, str(path))
    else:
        onnx.save(model, str(path), save_as_external_data=True, location=external, size_threshold=0)
    return path


def _gemm_softmax():
    return [
        helper.make_node("Gemm", ["f", "w", "b"], ["z"], transB=1),
        helper.make_node("Softmax", ["z"], ["y"], axis=1),
    ]


def _expected_features(classifier, images):
    """Mean of a 3x3 convolution, written out with numpy."""
    rows = []
    for image in images:
        pixels = np.pad(np.asarray(classifier.prepare(image), np.float64), ((0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(pixels, (3, 3), axis=(1, 2))
        rows.append(np.einsum("chwij,ocij->o", windows, CONV) / 64)
    return np.array(rows)


def _check(classifier, n_images=5):
    images = _images(n_images)
    output = classifier.classify([classifier.prepare(image) for image in images])
    logits = _expected_features(classifier, images) @ WEIGHTS.T + BIAS
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    np.testing.assert_allclose(
        output.probabilities, powers / powers.sum(axis=1, keepdims=True), atol=1e-4
    )
    np.testing.assert_allclose(
        classifier.head.probabilities(output.features), output.probabilities, atol=1e-5
    )
    np.testing.assert_allclose(output.features, _expected_features(classifier, images), atol=1e-4)


def test_classify__gemm_and_softmax(tmp_path):
    path = _save(tmp_path / "m.onnx", _gemm_softmax(), {"w": WEIGHTS, "b": BIAS})
    classifier = OnnxClassifier(path=path, class_names=NAMES)
    assert isinstance(classifier, Classifier)
    assert classifier.image_side == 8
    assert classifier.task is Task.SINGLE_LABEL
    assert classifier.features_note is None
    _check(classifier)


def test_classify__same_twice_and_one_by_one(tmp_path):
    classifier = OnnxClassifier(
        path=_save(tmp_path / "m.onnx", _gemm_softmax(), {"w": WEIGHTS, "b": BIAS}),
        class_names=NAMES,
    )
    prepared = [classifier.prepare(image) for image in _images()]
    together = classifier.classify(prepared)
    np.testing.assert_array_equal(
        together.probabilities, classifier.classify(prepared).probabilities
    )
    single = np.concatenate([classifier.classify([item]).probabilities for item in prepared])
    np.testing.assert_allclose(together.probabilities, single, atol=1e-6)


def test_session__idle_threads_leave_the_cores_to_the_decoders(tmp_path):
    path = _save(tmp_path / "m.onnx", _gemm_softmax(), {"w": WEIGHTS, "b": BIAS})
    options = OnnxClassifier(
        path=path, class_names=NAMES
    )._loaded.runner.session.get_session_options()
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"


@pytest.mark.parametrize("batch", [1, 2, 4])
def test_classify__fixed_batch(tmp_path, batch):
    path = _save(tmp_path / "m.onnx", _gemm_softmax(), {"w": WEIGHTS, "b": BIAS}, batch=batch)
    _check(OnnxClassifier(path=path, class_names=NAMES), n_images=5)


def test_classify__no_images(tmp_path):
    classifier = OnnxClassifier(
        path=_save(tmp_path / "m.onnx", _gemm_softmax(), {"w": WEIGHTS, "b": BIAS})
    )
    output = classifier.classify([])
    assert output.probabilities.shape == (0, 4)
    assert output.features.shape == (0, 5)


def test_head__gemm_with_alpha_beta_and_no_transpose(tmp_path):
    ending = [helper.make_node("Gemm", ["f", "w", "b"], ["y"], alpha=0.5, beta=2.0)]
    path = _save(tmp_path / "m.onnx", ending, {"w": WEIGHTS.T * 2, "b": BIAS / 2})
    classifier = OnnxClassifier(path=path, class_names=NAMES)
    np.testing.assert_allclose(classifier.head.weights, WEIGHTS, atol=1e-6)
    np.testing.assert_allclose(classifier.head.bias, BIAS, atol=1e-6)
    _check(classifier)


def test_head__matmul_plus_add_in_both_orders(tmp_path):
    for number, operands in enumerate((["z", "b"], ["b", "z"])):
        ending = [
            helper.make_node("MatMul", ["f", "w"], ["z"]),
            helper.make_node("Add", operands, ["y"]),
        ]
        _check(
            OnnxClassifier(
                path=_save(tmp_path / f"{number}.onnx", ending, {"w": WEIGHTS.T, "b": BIAS}),
                class_names=NAMES,
            )
        )


def test_head__constant_node_transposed_weights_and_reshape(tmp_path):
    ending = [
        helper.make_node("Constant", [], ["k"], value=numpy_helper.from_array(WEIGHTS, "k")),
        helper.make_node("Transpose", ["k"], ["kt"], perm=[1, 0]),
        helper.make_node("MatMul", ["f", "kt"], ["z"]),
        helper.make_node("Add", ["z", "b"], ["s"]),
        helper.make_node("Reshape", ["s", "shape"], ["r"]),
        helper.make_node("LogSoftmax", ["r"], ["y"], axis=1),
    ]
    path = _save(tmp_path / "m.onnx", ending, {"b": BIAS, "shape": np.array([-1, 4])})
    _check(OnnxClassifier(path=path, class_names=NAMES))


def test_head__quantised_last_layer_is_said(tmp_path):
    ending = [
        helper.make_node("DequantizeLinear", ["wq", "scale"], ["w"]),
        helper.make_node("Gemm", ["f", "w", "b"], ["y"], transB=1),
    ]
    constants = {"wq": np.round(WEIGHTS * 10).astype(np.int8), "scale": np.float32(0.1), "b": BIAS}
    classifier = OnnxClassifier(
        path=_save(tmp_path / "m.onnx", ending, constants), class_names=NAMES
    )
    assert classifier.head is None
    assert classifier.features_note == "the last layer is quantised (DequantizeLinear)"
    output = classifier.classify([classifier.prepare(image) for image in _images(2)])
    assert output.features is None
    assert output.probabilities.shape == (2, 4)


def test_head__no_linear_layer_is_said(tmp_path):
    classifier = OnnxClassifier(
        path=_save(tmp_path / "m.onnx", [helper.make_node("Relu", ["f"], ["y"])], {})
    )
    assert classifier.head is None
    assert "ends in Relu" in classifier.features_note


def test_head__reshape_that_mixes_is_refused(tmp_path):
    """The transposition after the layer makes it no longer the layer that gives the scores."""
    ending = [
        helper.make_node("Gemm", ["f", "w", "b"], ["z"], transB=1),
        helper.make_node("Transpose", ["z"], ["t"], perm=[1, 0]),
        helper.make_node("Reshape", ["t", "shape"], ["y"]),
    ]
    path = _save(tmp_path / "m.onnx", ending, {"w": WEIGHTS, "b": BIAS, "shape": np.array([-1, 4])})
    assert OnnxClassifier(path=path, class_names=NAMES).head is None


def test_classify__channels_last_uint8(tmp_path):
    body = [
        helper.make_node("Cast", ["x0"], ["x2"], to=TensorProto.FLOAT),
        helper.make_node("Transpose", ["x2"], ["x"], perm=[0, 3, 1, 2]),
        *_body(),
    ]
    graph_path = tmp_path / "m.onnx"
    _save(graph_path, _gemm_softmax(), {"w": WEIGHTS / 255, "b": BIAS}, body=body)
    model = onnx.load(str(graph_path))
    model.graph.input[0].CopyFrom(
        helper.make_tensor_value_info("x0", TensorProto.UINT8, ["n", 8, 8, 3])
    )
    onnx.save(model, str(graph_path))
    classifier = OnnxClassifier(path=graph_path, class_names=NAMES)
    prepared = classifier.prepare(_images(1)[0])
    assert prepared.shape == (8, 8, 3)
    assert prepared.dtype == np.uint8
    output = classifier.classify([prepared])
    np.testing.assert_allclose(
        classifier.head.probabilities(output.features), output.probabilities, atol=1e-5
    )


def test_classify__multi_label_sigmoid(tmp_path):
    ending = [
        helper.make_node("Gemm", ["f", "w", "b"], ["z"], transB=1),
        helper.make_node("Sigmoid", ["z"], ["y"]),
    ]
    path = _save(tmp_path / "m.onnx", ending, {"w": WEIGHTS, "b": BIAS})
    classifier = OnnxClassifier(path=path, class_names=NAMES, task="multi-label")
    images = _images()
    output = classifier.classify([classifier.prepare(image) for image in images])
    logits = _expected_features(classifier, images) @ WEIGHTS.T + BIAS
    np.testing.assert_allclose(output.probabilities, 1 / (1 + np.exp(-logits)), atol=1e-4)
    assert classifier.head.task is Task.MULTI_LABEL
    np.testing.assert_allclose(
        classifier.head.probabilities(output.features), output.probabilities, atol=1e-5
    )


def test_classify__one_output_for_two_classes(tmp_path):
    ending = [
        helper.make_node("Gemm", ["f", "w", "b"], ["z"], transB=1),
        helper.make_node("Sigmoid", ["z"], ["y"]),
    ]
    path = _save(tmp_path / "m.onnx", ending, {"w": WEIGHTS[:1], "b": BIAS[:1]})
    classifier = OnnxClassifier(path=path, class_names=["no", "yes"])
    images = _images()
    output = classifier.classify([classifier.prepare(image) for image in images])
    logits = _expected_features(classifier, images) @ WEIGHTS[0] + BIAS[0]
    np.testing.assert_allclose(output.probabilities[:, 1], 1 / (1 + np.exp(-logits)), atol=1e-4)
    np.testing.assert_allclose(
        classifier.head.probabilities(output.features), output.probabilities, atol=1e-5
    )


def test_class_names__from_metadata(tmp_path):
    for number, text in enumerate(
        (
            '["cat", "dog", "owl", "yak"]',
            "{0: 'cat', 1: 'dog', 2: 'owl', 3: 'yak'}",
            "cat\ndog\nowl\nyak",
        )
    ):
        path = _save(
            tmp_path / f"{number}.onnx",
            _gemm_softmax(),
            {"w": WEIGHTS, "b": BIAS},
            metadata={"names": text},
        )
        assert OnnxClassifier(path=path).class_names == ("cat", "dog", "owl", "yak")
    assert (
        OnnxClassifier(
            path=_save(tmp_path / "none.onnx", _gemm_softmax(), {"w": WEIGHTS, "b": BIAS})
        ).class_names
        is None
    )


def test_outputs__several_must_be_chosen(tmp_path):
    path = _save(
        tmp_path / "m.onnx", _gemm_softmax(), {"w": WEIGHTS, "b": BIAS}, outputs=("y", "z", "f")
    )
    with pytest.raises(ModelError, match=r"several outputs.*\['y', 'z', 'f'\]"):
        _ = OnnxClassifier(path=path).class_names
    with pytest.raises(ModelError, match="no such output"):
        _ = OnnxClassifier(path=path, output="q").class_names
    _check(OnnxClassifier(path=path, output="z", class_names=NAMES))


def test_feature_output__other_tensor(tmp_path):
    path = _save(tmp_path / "m.onnx", _gemm_softmax(), {"w": WEIGHTS, "b": BIAS})
    classifier = OnnxClassifier(path=path, feature_output="c")
    assert classifier.classify([classifier.prepare(_images(1)[0])]).features.shape == (1, 320)
    assert classifier.head is None
    _check(OnnxClassifier(path=path, feature_output="f", class_names=NAMES))
    with pytest.raises(ModelError, match="no such tensor"):
        _ = OnnxClassifier(path=path, feature_output="nowhere").head


def test_external_data__read_and_missing(tmp_path):
    path = _save(
        tmp_path / "m.onnx", _gemm_softmax(), {"w": WEIGHTS, "b": BIAS}, external="m.weights"
    )
    _check(OnnxClassifier(path=path, class_names=NAMES))
    first = OnnxClassifier(path=path).classifier_id
    weights = tmp_path / "m.weights"
    numbers = np.frombuffer(weights.read_bytes(), np.float32).copy()
    numbers[0] += 1
    weights.write_bytes(numbers.tobytes())
    assert OnnxClassifier(path=path).classifier_id != first
    weights.unlink()
    with pytest.raises(ModelError, match=r"missing: m\.weights"):
        _ = OnnxClassifier(path=path).head


def test_image_side__dynamic_size_needs_it(tmp_path):
    path = _save(
        tmp_path / "m.onnx", _gemm_softmax(), {"w": WEIGHTS, "b": BIAS}, sizes=(3, "h", "w")
    )
    with pytest.raises(ConfigError, match="Set image_side"):
        _ = OnnxClassifier(path=path).image_side
    _check(OnnxClassifier(path=path, image_side=8, class_names=NAMES))


def test_image_side__must_fit_the_graph(tmp_path):
    path = _save(tmp_path / "m.onnx", _gemm_softmax(), {"w": WEIGHTS, "b": BIAS})
    with pytest.raises(ConfigError, match="height: the graph takes 8, the settings say 16"):
        _ = OnnxClassifier(path=path, image_side=16).image_side


def test_classifier_id__weights_and_preprocessing(tmp_path):
    path = _save(tmp_path / "m.onnx", _gemm_softmax(), {"w": WEIGHTS, "b": BIAS})
    other = _save(tmp_path / "deeper.onnx", _gemm_softmax(), {"w": WEIGHTS * 2, "b": BIAS})
    first = OnnxClassifier(path=path).classifier_id
    assert first.startswith("onnx:m.onnx@")
    assert OnnxClassifier(path=path).classifier_id == first
    assert OnnxClassifier(path=path, mean=[0.5, 0.5, 0.5]).classifier_id != first
    assert OnnxClassifier(path=other).classifier_id.partition("@")[2] != first.partition("@")[2]


def test_load__bad_files(tmp_path):
    with pytest.raises(ModelError, match="no such ONNX file"):
        _ = OnnxClassifier(path=tmp_path / "none.onnx").head
    for number, content in enumerate((b"", b"not a graph at all", bytes(range(256)) * 4)):
        path = tmp_path / f"{number}.onnx"
        path.write_bytes(content)
        with pytest.raises(ModelError, match="no ONNX file"):
            _ = OnnxClassifier(path=path).head
    whole = _save(tmp_path / "m.onnx", _gemm_softmax(), {"w": WEIGHTS, "b": BIAS}).read_bytes()
    (tmp_path / "cut.onnx").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelError):
        _ = OnnxClassifier(path=tmp_path / "cut.onnx").head


def test_load__two_inputs_are_listed(tmp_path):
    path = _save(tmp_path / "m.onnx", _gemm_softmax(), {"w": WEIGHTS, "b": BIAS})
    model = onnx.load(str(path))
    model.graph.input.append(helper.make_tensor_value_info("mask", TensorProto.FLOAT, ["n", 4]))
    onnx.save(model, str(path))
    with pytest.raises(ModelError, match=r"exactly one input.*\['x', 'mask'\]"):
        _ = OnnxClassifier(path=path).head


def test_settings__class_names_and_provider(tmp_path):
    path = _save(tmp_path / "m.onnx", _gemm_softmax(), {"w": WEIGHTS, "b": BIAS})
    with pytest.raises(ModelError, match="4 probabilities an image, but there are 2 class names"):
        _ = OnnxClassifier(path=path, class_names=["a", "b"]).head
    with pytest.raises(ConfigError, match="lacks a provider"):
        _ = OnnxClassifier(path=path, providers=["NoSuchExecutionProvider"]).head
    with pytest.raises(ConfigError, match="no such option"):
        _ = OnnxClassifier(path=path, sise=3).head
