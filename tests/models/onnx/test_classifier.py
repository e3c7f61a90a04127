import numpy as np
import onnx
import pytest
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

from weakspot.core.dataset import Task
from weakspot.core.errors import ConfigError, ModelError
from weakspot.core.roles import Classifier
from weakspot.models.onnx.classifier import OnnxClassifier

USUAL = {"w": WEIGHTS, "b": BIAS}
QUANTISED = {"wq": np.round(WEIGHTS * 10).astype(np.int8), "scale": np.float32(0.1), "b": BIAS}


def _images(n_images=5):
    pixels = np.random.default_rng(1).integers(0, 256, (n_images, 12, 20, 3), dtype=np.uint8)
    return [Image.fromarray(item) for item in pixels]


def _save(path, ending=None, constants=USUAL, *, shape=("n", 3, 8, 8), outputs=("y",), **options):
    nodes = [*pooled(), *(gemm(end="Softmax") if ending is None else ending)]
    ends = [entry(name) for name in outputs]
    return save_graph(
        path, nodes, [entry("x", shape=shape)], ends, {"conv": CONV, **constants}, **options
    )


def _prepared(classifier, n_images=5):
    return [classifier.prepare(image) for image in _images(n_images)]


def _expected_features(prepared):
    """Mean of a 3x3 convolution, written out with numpy."""
    rows = []
    for image in prepared:
        pixels = np.pad(np.asarray(image, np.float64), ((0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(pixels, (3, 3), axis=(1, 2))
        rows.append(np.einsum("chwij,ocij->o", windows, CONV) / 64)
    return np.array(rows)


def _check(classifier):
    prepared = _prepared(classifier)
    output, features = classifier.classify(prepared), _expected_features(prepared)
    powers = np.exp(features @ WEIGHTS.T + BIAS)
    expected = powers / powers.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(output.probabilities, expected, atol=1e-4)
    np.testing.assert_allclose(output.features, features, atol=1e-4)
    found = classifier.head.probabilities(output.features)
    np.testing.assert_allclose(found, output.probabilities, atol=1e-5)


def test_classify__gemm_and_softmax(tmp_path):
    classifier = OnnxClassifier(path=_save(tmp_path / "m.onnx"), class_names=NAMES)
    assert isinstance(classifier, Classifier)
    assert classifier.image_side == 8
    assert classifier.task is Task.SINGLE_LABEL
    assert classifier.features_note is None
    _check(classifier)
    # Idle threads leave the cores to the decoders.
    options = classifier._loaded.runner.session.get_session_options()
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"


def test_classify__same_twice_and_one_by_one_and_nothing_for_nothing(tmp_path):
    classifier = OnnxClassifier(path=_save(tmp_path / "m.onnx"), class_names=NAMES)
    prepared = _prepared(classifier)
    together = classifier.classify(prepared).probabilities
    np.testing.assert_array_equal(together, classifier.classify(prepared).probabilities)
    single = np.concatenate([classifier.classify([item]).probabilities for item in prepared])
    np.testing.assert_allclose(together, single, atol=1e-6)
    none = classifier.classify([])
    assert (none.probabilities.shape, none.features.shape) == ((0, 4), (0, 5))


CONSTANT_WEIGHTS = [
    node("Constant", [], ["k"], value=numpy_helper.from_array(WEIGHTS, "k")),
    node("Transpose", ["k"], ["kt"], perm=[1, 0]),
    node("MatMul", ["f", "kt"], ["z"]),
    node("Add", ["z", "b"], ["s"]),
    node("Reshape", ["s", "shape"], ["r"]),
    node("LogSoftmax", ["r"], ["y"], axis=1),
]


@pytest.mark.parametrize(
    ("ending", "constants"),
    [
        (
            [node("Gemm", ["f", "w", "b"], ["y"], alpha=0.5, beta=2.0)],
            {"w": WEIGHTS.T * 2, "b": BIAS / 2},
        ),
        *(
            ([node("MatMul", ["f", "w"], ["z"]), node("Add", order, ["y"])], {"w": WEIGHTS.T, "b": BIAS})
            for order in (["z", "b"], ["b", "z"])
        ),
        (CONSTANT_WEIGHTS, {"b": BIAS, "shape": np.array([-1, 4])}),
    ],
)  # fmt: skip
def test_head__any_form_of_a_linear_layer(tmp_path, ending, constants):
    path = _save(tmp_path / "m.onnx", ending, constants)
    classifier = OnnxClassifier(path=path, class_names=NAMES)
    np.testing.assert_allclose(classifier.head.weights, WEIGHTS, atol=1e-6)
    np.testing.assert_allclose(classifier.head.bias, BIAS, atol=1e-6)
    _check(classifier)


MIXED = [
    *gemm(),
    node("Transpose", ["z"], ["t"], perm=[1, 0]),
    node("Reshape", ["t", "shape"], ["y"]),
]


@pytest.mark.parametrize(
    ("ending", "constants", "note"),
    [
        (
            [node("DequantizeLinear", ["wq", "scale"], ["w"]), *gemm("y")],
            QUANTISED,
            "the last layer is quantised (DequantizeLinear)",
        ),
        ([node("Relu", ["f"], ["y"])], {}, "ends in Relu"),
        # The transposition after the layer makes it no longer the layer that gives the scores.
        (MIXED, {**USUAL, "shape": np.array([-1, 4])}, ""),
    ],
)
def test_head__none_is_said(tmp_path, ending, constants, note):
    classifier = OnnxClassifier(path=_save(tmp_path / "m.onnx", ending, constants))
    assert classifier.head is None
    assert note in classifier.features_note
    output = classifier.classify(_prepared(classifier, 2))
    assert output.features is None
    assert len(output.probabilities) == 2


@pytest.mark.parametrize("batch", [1, 2, 4])
def test_classify__fixed_batch(tmp_path, batch):
    path = _save(tmp_path / "m.onnx", shape=(batch, 3, 8, 8))
    _check(OnnxClassifier(path=path, class_names=NAMES))


def test_classify__channels_last_uint8(tmp_path):
    body = [
        node("Cast", ["x0"], ["x2"], to=TensorProto.FLOAT),
        node("Transpose", ["x2"], ["x"], perm=[0, 3, 1, 2]),
        *pooled(),
        *gemm(end="Softmax"),
    ]
    given = entry("x0", TensorProto.UINT8, ["n", 8, 8, 3])
    constants = {"conv": CONV, "w": WEIGHTS / 255, "b": BIAS}
    path = save_graph(tmp_path / "m.onnx", body, [given], [entry("y")], constants)
    classifier = OnnxClassifier(path=path, class_names=NAMES)
    prepared = _prepared(classifier, 1)
    assert (prepared[0].shape, prepared[0].dtype) == ((8, 8, 3), np.uint8)
    output = classifier.classify(prepared)
    found = classifier.head.probabilities(output.features)
    np.testing.assert_allclose(found, output.probabilities, atol=1e-5)


@pytest.mark.parametrize(
    ("task", "names", "rows"), [("multi-label", NAMES, 4), ("single-label", ["no", "yes"], 1)]
)
def test_classify__sigmoid_of_many_labels_or_of_the_second_class(tmp_path, task, names, rows):
    constants = {"w": WEIGHTS[:rows], "b": BIAS[:rows]}
    path = _save(tmp_path / "m.onnx", gemm(end="Sigmoid"), constants)
    classifier = OnnxClassifier(path=path, class_names=names, task=task)
    prepared = _prepared(classifier)
    output = classifier.classify(prepared)
    logits = _expected_features(prepared) @ WEIGHTS[:rows].T + BIAS[:rows]
    expected = 1 / (1 + np.exp(-logits))
    np.testing.assert_allclose(output.probabilities[:, -rows:], expected, atol=1e-4)
    assert classifier.head.task == task
    found = classifier.head.probabilities(output.features)
    np.testing.assert_allclose(found, output.probabilities, atol=1e-5)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('["cat", "dog", "owl", "yak"]', tuple(NAMES)),
        ("{0: 'cat', 1: 'dog', 2: 'owl', 3: 'yak'}", tuple(NAMES)),
        ("cat\ndog\nowl\nyak", tuple(NAMES)),
        (None, None),
    ],
)
def test_class_names__from_metadata(tmp_path, text, names):
    path = _save(tmp_path / "m.onnx", metadata=text and {"names": text})
    assert OnnxClassifier(path=path).class_names == names


def test_outputs__one_of_several_and_another_tensor_as_features(tmp_path):
    path = _save(tmp_path / "m.onnx", outputs=("y", "z", "f"))
    _check(OnnxClassifier(path=path, output="z", class_names=NAMES))
    _check(OnnxClassifier(path=path, output="y", feature_output="f", class_names=NAMES))
    classifier = OnnxClassifier(path=path, output="y", feature_output="c")
    assert classifier.classify(_prepared(classifier, 1)).features.shape == (1, 320)
    assert classifier.head is None


def test_image_side__dynamic_size_takes_any(tmp_path):
    path = _save(tmp_path / "m.onnx", shape=("n", 3, "h", "w"))
    _check(OnnxClassifier(path=path, image_side=8, class_names=NAMES))


@pytest.mark.parametrize(
    ("graph", "options", "error", "message"),
    [
        ({"outputs": ("y", "z", "f")}, {}, ModelError, r"several outputs.*\['y', 'z', 'f'\]"),
        ({}, {"output": "q"}, ModelError, "no such output"),
        ({}, {"feature_output": "nowhere"}, ModelError, "no such tensor"),
        ({"shape": ("n", 3, "h", "w")}, {}, ConfigError, "Set image_side"),
        ({}, {"image_side": 16}, ConfigError, "height: the graph takes 8, the settings say 16"),
        ({}, {"class_names": ["a", "b"]}, ModelError, "an image, but there are 2 class names"),
        ({}, {"providers": ["NoSuchExecutionProvider"]}, ConfigError, "lacks a provider"),
        ({}, {"sise": 3}, ConfigError, "no such option"),
    ],
)
def test_settings__what_does_not_fit_the_graph(tmp_path, graph, options, error, message):
    path = _save(tmp_path / "m.onnx", **graph)
    with pytest.raises(error, match=message):
        _ = OnnxClassifier(path=path, **options).head


def test_external_data__read_and_missing(tmp_path):
    path = _save(tmp_path / "m.onnx", external="m.weights")
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


def test_classifier_id__weights_and_preprocessing(tmp_path):
    path = _save(tmp_path / "m.onnx")
    other = _save(tmp_path / "deeper.onnx", constants={"w": WEIGHTS * 2, "b": BIAS})
    first = OnnxClassifier(path=path).classifier_id
    assert first.startswith("onnx:m.onnx@")
    assert OnnxClassifier(path=path).classifier_id == first
    assert OnnxClassifier(path=path, mean=[0.5, 0.5, 0.5]).classifier_id != first
    assert OnnxClassifier(path=other).classifier_id.partition("@")[2] != first.partition("@")[2]


@pytest.mark.parametrize("content", [b"", b"not a graph at all", bytes(range(256)) * 4, None])
def test_load__bad_files(tmp_path, content):
    path = _save(tmp_path / "m.onnx")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] if content is None else content)
    with pytest.raises(ModelError, match=None if content is None else "no ONNX file"):
        _ = OnnxClassifier(path=path).head
    path.unlink()
    with pytest.raises(ModelError, match="no such ONNX file"):
        _ = OnnxClassifier(path=path).head


def test_load__two_inputs_are_listed(tmp_path):
    path = _save(tmp_path / "m.onnx")
    model = onnx.load(str(path))
    model.graph.input.append(entry("mask", shape=["n", 4]))
    onnx.save(model, str(path))
    with pytest.raises(ModelError, match=r"exactly one input.*\['x', 'mask'\]"):
        _ = OnnxClassifier(path=path).head
