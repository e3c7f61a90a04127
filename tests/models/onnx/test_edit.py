import numpy as np
import pytest
from onnx import helper, numpy_helper
from tests.models.tiny_graphs import entry, gemm, node, save_graph

from weakspot.core.heads import Head
from weakspot.models.onnx.graph import OnnxGraph, changed_elsewhere, edited

HEAD = Head(
    weights=np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], np.float32),
    bias=np.array([0.5, -0.5], np.float32),
)


@pytest.fixture
def graph(tmp_path):
    """Mean colour, doubled, and a linear layer."""
    nodes = [
        node("GlobalAveragePool", ["x"], ["p"], name="pool"),
        node("Mul", ["p", "two"], ["d"]),
        node("Flatten", ["d"], ["f"]),
        *gemm("y"),
    ]
    numbers = {
        "two": np.float32(2),
        "w": np.zeros((2, 3), np.float32),
        "b": np.zeros(2, np.float32),
    }
    given, found = entry("x", shape=["n", 3, 4, 4]), entry("y", shape=["n", 2])
    return OnnxGraph(save_graph(tmp_path / "m.onnx", nodes, [given], [found], numbers))


def test_edited__the_model_itself_stays(graph):
    before = graph.model.SerializeToString(deterministic=True)
    edit = edited(graph.model, graph.end("y")[0], HEAD, where="m")
    assert graph.model.SerializeToString(deterministic=True) == before
    assert edit.initialisers == {"w", "b"}
    assert edit.nodes == set()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda model: setattr(model, "producer_name", "other"), "the model's own fields changed"),
        (
            lambda model: helper.set_model_props(model, {"made": "later"}),
            "the model's own fields changed",
        ),
        (
            lambda model: setattr(model.opset_import[0], "version", 18),
            "the model's own fields changed",
        ),
        (lambda model: setattr(model.graph.output[0], "name", "q"), "inputs, outputs or notes"),
        (lambda model: setattr(model.graph, "name", "q"), "inputs, outputs or notes"),
        (lambda model: setattr(model.graph.node[0], "name", "q"), "a node changed"),
        (
            lambda model: model.graph.node.append(helper.make_node("Relu", ["f"], ["q"])),
            "a node changed",
        ),
        (
            lambda model: setattr(model.graph.initializer[0], "raw_data", bytes(4)),
            "a constant changed",
        ),
        (
            lambda model: model.graph.initializer.append(numpy_helper.from_array(np.zeros(1), "q")),
            "a constant changed",
        ),
    ],
)
def test_changed_elsewhere__anything_beside_the_layer(graph, change, message):
    edit = edited(graph.model, graph.end("y")[0], HEAD, where="m")
    assert changed_elsewhere(graph.model, edit.model, edit) is None
    change(edit.model)
    assert message in changed_elsewhere(graph.model, edit.model, edit)
