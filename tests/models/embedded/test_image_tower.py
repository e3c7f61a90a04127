import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.models.fake_providers import CUDA, FakeProviders

from weakspot.core.errors import ConfigError
from weakspot.models.embedded import image_tower
from weakspot.models.embedded.image_tower import (
    OpenTower,
    TowerChoice,
    choose_tower,
    float_tower_path,
    integer_tower_path,
    write_halves,
)
from weakspot.models.onnx import session
from weakspot.models.onnx.session import PROCESSOR, make_session, run_session


@pytest.fixture(autouse=True)
def forget(monkeypatch):
    monkeypatch.setattr(image_tower, "has_fast_int8", lambda: True)
    yield
    session._tried.cache_clear()


def chosen(tmp_path, **given) -> tuple[str, str]:
    choice = choose_tower(tmp_path, **given)
    return choice.provider.name, choice.precision


def test_choose_tower__integers_on_a_fast_processor_else_float32(tmp_path, monkeypatch):
    assert chosen(tmp_path) == ("cpu", "int8")
    assert chosen(tmp_path, providers=["cpu"]) == ("cpu", "int8")
    assert chosen(tmp_path, precision="float32") == ("cpu", "float32")
    monkeypatch.setattr(image_tower, "has_fast_int8", lambda: False)
    assert chosen(tmp_path) == ("cpu", "float32")


def test_choose_tower__half_precision_on_a_graphics_processor(tmp_path, monkeypatch):
    FakeProviders(CUDA).install(monkeypatch)
    assert chosen(tmp_path) == ("cuda", "float16")
    assert chosen(tmp_path, precision="float32") == ("cuda", "float32")
    assert chosen(tmp_path, precision="int8") == ("cpu", "int8")
    assert chosen(tmp_path, providers=["cpu"]) == ("cpu", "int8")


def test_choose_tower__integers_beat_what_only_speeds_up_float32(tmp_path, monkeypatch):
    FakeProviders("OpenVINOExecutionProvider").install(monkeypatch)
    assert chosen(tmp_path) == ("cpu", "int8")
    assert chosen(tmp_path, providers=["openvino"]) == ("openvino", "float32")
    monkeypatch.setattr(image_tower, "has_fast_int8", lambda: False)
    assert chosen(tmp_path) == ("openvino", "float32")


def test_choose_tower__what_failed_here_is_left_out_one_by_one(tmp_path, monkeypatch):
    FakeProviders(CUDA).install(monkeypatch)
    order = []
    for _ in range(4):
        choice = choose_tower(tmp_path)
        order.append(choice.sentence)
        choice.path(tmp_path).parent.mkdir(parents=True, exist_ok=True)
        choice.refuse(tmp_path)
    assert order == ["cuda, float16", "cuda, float32", "cpu, int8", "cpu, float32"]


def test_choose_tower__asked_for_and_not_installed(tmp_path):
    with pytest.raises(ConfigError, match="lacks a provider"):
        choose_tower(tmp_path, providers=["cuda"])


def test_tower_choice__files_and_endings_tell_precisions_apart(tmp_path):
    choices = [
        TowerChoice(provider=PROCESSOR, precision=one) for one in ("float32", "int8", "float16")
    ]
    paths = [one.path(tmp_path) for one in choices]
    assert paths[:2] == [float_tower_path(tmp_path), integer_tower_path(tmp_path)]
    assert len(set(paths)) == 3
    endings = [one.id_ending for one in choices]
    assert endings[0] == ""
    assert endings[1].startswith("+int8@")
    assert endings[2] == "+float16"


def test_write_halves__nearly_the_same_in_and_out_as_float32(tmp_path):
    random = np.random.default_rng(0)
    weights = random.normal(size=(16, 8)).astype(np.float32)
    given = helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["n", 16])
    made = helper.make_tensor_value_info("made", TensorProto.FLOAT, ["n", 8])
    node = helper.make_node("MatMul", ["rows", "weights"], ["made"])
    graph = helper.make_graph(
        [node], "g", [given], [made], [numpy_helper.from_array(weights, "weights")]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, str(tmp_path / "exact.onnx"))
    write_halves(tmp_path / "exact.onnx", tmp_path / "half.onnx")
    written = onnx.load(str(tmp_path / "half.onnx"))
    assert {one.data_type for one in written.graph.initializer} == {TensorProto.FLOAT16}
    rows = random.normal(size=(3, 16)).astype(np.float32)
    found = run_session(make_session(tmp_path / "half.onnx", threads=1), {"rows": rows})[0]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, rows @ weights, atol=0.02)


def write_means(path) -> None:
    """Write a tower whose embedding is the mean of every channel."""
    nodes = [
        helper.make_node("GlobalAveragePool", ["pixel_values"], ["mean"]),
        helper.make_node("Flatten", ["mean"], ["image_embeds"]),
    ]
    given = helper.make_tensor_value_info("pixel_values", TensorProto.FLOAT, ["n", 3, 4, 4])
    found = helper.make_tensor_value_info("image_embeds", TensorProto.FLOAT, ["n", 3])
    graph = helper.make_graph(nodes, "tower", [given], [found])
    versions = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=versions, ir_version=9), str(path))


def test_open_tower__several_calls_at_a_time_keep_the_order(tmp_path, monkeypatch):
    write_means(tmp_path / "tower.onnx")
    images = np.random.default_rng(0).normal(size=(7, 3, 4, 4)).astype(np.float32)
    calls = []
    run = image_tower.run_session
    monkeypatch.setattr(
        image_tower, "run_session", lambda *given, **kw: calls.append(given[1]) or run(*given, **kw)
    )
    means = images.mean(axis=(2, 3))
    expected = means / np.linalg.norm(means, axis=1, keepdims=True)
    for threads, sizes in ((1, [7]), (2, [1, 2, 2, 2]), (9, [1, 2, 2, 2])):
        calls.clear()
        tower = OpenTower(tmp_path / "tower.onnx", provider=PROCESSOR, threads=threads)
        np.testing.assert_allclose(tower.embed(images), expected, atol=1e-5)
        assert sorted(len(given["pixel_values"]) for given in calls) == sizes


@pytest.mark.parametrize(("threads", "a_call"), [(1, 1), (2, 1), (4, 1), (6, 2), (16, 4)])
def test_open_tower__threads_are_shared_by_the_calls(tmp_path, threads, a_call):
    write_means(tmp_path / "tower.onnx")
    tower = OpenTower(tmp_path / "tower.onnx", provider=PROCESSOR, threads=threads)
    assert tower._session.get_session_options().intra_op_num_threads == a_call


def test_open_tower__other_providers_take_the_whole_batch(tmp_path, monkeypatch):
    FakeProviders(CUDA).install(monkeypatch)
    write_means(tmp_path / "tower.onnx")
    tower = OpenTower(tmp_path / "tower.onnx", provider=choose_tower(tmp_path).provider)
    assert tower._n_calls == 1
