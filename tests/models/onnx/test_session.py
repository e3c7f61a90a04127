import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from tests.models.fake_providers import CPU, DML, FakeProviders

from weakspot.core.errors import ConfigError, ModelError
from weakspot.models.onnx import session as providers
from weakspot.models.onnx.session import fallback_notes, make_session, run_session


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
    with pytest.raises(ConfigError, match="lacks a provider.*CPUExecutionProvider"):
        make_session(doubling, providers=["NothingExecutionProvider"])


def test_run_session__refused_input(doubling):
    with pytest.raises(ModelError, match=r"refused its input.*doubling.*\(3,\)"):
        run_session(make_session(doubling), {"x": np.zeros(3, dtype=np.float32)}, where="doubling")


def test_make_session__a_graph_that_a_provider_cannot_open_goes_to_the_processor_with_a_note(
    doubling, monkeypatch
):
    fakes = FakeProviders(DML, refusing=[DML]).install(monkeypatch)
    session = make_session(doubling, threads=1)
    assert session.get_providers() == [CPU]
    assert "cannot open g.onnx" in fallback_notes()[0]
    with pytest.raises(ModelError, match="cannot open the graph"):
        make_session(doubling, providers=["directml"])
    fakes.refusing = []
    assert make_session(doubling).get_providers() == [DML, CPU]
    assert fakes.opened[-1] == (DML, {}, False)
    providers._tried.cache_clear()
