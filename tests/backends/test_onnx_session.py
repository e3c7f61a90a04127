import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from weakspot.backends.onnx_session import available_providers, make_session, run_session
from weakspot.core.errors import ModelError


@pytest.fixture
def doubling(tmp_path):
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    found = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "x"], ["y"])], "doubling", [given], [found]
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9),
        str(tmp_path / "g.onnx"),
    )
    return tmp_path / "g.onnx"


def test_make_session__runs(doubling):
    session = make_session(doubling, threads=1, spin=True)
    assert run_session(session, {"x": np.array([1.0, 2.5], dtype=np.float32)})[0].tolist() == [
        2.0,
        5.0,
    ]


def test_make_session__a_provider_that_is_not_there(doubling):
    with pytest.raises(ModelError, match="lacks a provider.*CPUExecutionProvider"):
        make_session(doubling, providers=["NothingExecutionProvider"])


def test_run_session__refused_input(doubling):
    with pytest.raises(ModelError, match=r"refused its input.*doubling.*\(3,\)"):
        run_session(make_session(doubling), {"x": np.zeros(3, dtype=np.float32)}, where="doubling")


def test_available_providers__has_the_processor():
    assert "CPUExecutionProvider" in available_providers()
