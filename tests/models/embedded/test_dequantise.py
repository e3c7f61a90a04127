import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from weakspot.core.errors import ModelError
from weakspot.models.embedded.image_tower import dequantise, dequantise_file

WEIGHTS = np.array([[10, -20, 30], [-40, 50, 60]], dtype=np.int8)


def quantised_model(scale: np.ndarray, zero_point: np.ndarray) -> onnx.ModelProto:
    """One quantised product as onnxruntime's dynamic quantiser writes it."""
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["given"], ["codes", "code_scale", "code_zero"]),
        helper.make_node(
            "MatMulInteger", ["codes", "weights", "code_zero", "weight_zero"], ["sums"]
        ),
        helper.make_node("Cast", ["sums"], ["float_sums"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["code_scale", "weight_scale"], ["scale"]),
        helper.make_node("Mul", ["float_sums", "scale"], ["answer"]),
    ]
    constants = {
        "weights": WEIGHTS,
        "weight_scale": scale.astype(np.float32),
        "weight_zero": zero_point.astype(np.int8),
    }
    graph = helper.make_graph(
        nodes,
        "product",
        [helper.make_tensor_value_info("given", TensorProto.FLOAT, ["rows", 2])],
        [helper.make_tensor_value_info("answer", TensorProto.FLOAT, ["rows", 3])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def run(model: onnx.ModelProto, given: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"given": given.astype(np.float32)})[0]


def test_dequantise__one_scale_for_the_tensor() -> None:
    model = quantised_model(np.array(0.5), np.array(10))

    assert dequantise(model) == 1

    # Weights (q - 10) / 2: [[0, -15, 10], [-25, 20, 25]]; (1, 2) gives (-50, 25, 60).
    np.testing.assert_array_equal(run(model, np.array([[1.0, 2.0]])), [[-50.0, 25.0, 60.0]])
    assert [node.op_type for node in model.graph.node] == ["MatMul"]
    assert len(model.graph.initializer) == 1


def test_dequantise__one_scale_per_column() -> None:
    model = quantised_model(np.array([0.1, 0.2, 1.0]), np.array([0, 0, 10]))

    dequantise(model)

    # Columns: (1, -4), (-4, 10), (20, 50); (1, 2) gives (-7, 16, 120).
    np.testing.assert_allclose(run(model, np.array([[1.0, 2.0]])), [[-7.0, 16.0, 120.0]], rtol=1e-6)


def test_dequantise__answer_does_not_depend_on_the_batch() -> None:
    quantised, exact = (
        quantised_model(np.array(0.5), np.array(0)),
        quantised_model(np.array(0.5), np.array(0)),
    )
    dequantise(exact)
    alone, with_a_large_neighbour = np.array([[0.3, -0.4]]), np.array([[0.3, -0.4], [90.0, 70.0]])

    assert np.abs(run(quantised, alone) - run(quantised, with_a_large_neighbour)[:1]).max() > 0.1
    np.testing.assert_array_equal(run(exact, alone), run(exact, with_a_large_neighbour)[:1])


def test_dequantise__graph_without_quantised_products() -> None:
    model = quantised_model(np.array(0.5), np.array(0))
    dequantise(model)

    with pytest.raises(ModelError, match="holds no dynamically quantised"):
        dequantise(model)


def test_dequantise__unknown_form() -> None:
    model = quantised_model(np.array(0.5), np.array(0))
    model.graph.node[4].op_type = "Div"

    with pytest.raises(ModelError, match="not of the known form: float_sums should feed one Mul"):
        dequantise(model)


def test_dequantise_file__writes_one_file_and_no_rest(tmp_path) -> None:
    onnx.save(quantised_model(np.array(0.5), np.array(0)), tmp_path / "int8.onnx")

    assert dequantise_file(tmp_path / "int8.onnx", tmp_path / "cache" / "float.onnx") == 1

    assert [entry.name for entry in (tmp_path / "cache").iterdir()] == ["float.onnx"]
    np.testing.assert_array_equal(
        run(onnx.load(tmp_path / "cache" / "float.onnx"), np.array([[1.0, 0.0]])),
        [[5.0, -10.0, 15.0]],
    )
