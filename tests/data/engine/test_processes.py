import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from weakspot.core.errors import ConfigError, MissingExtraError, WeakspotError
from weakspot.data.engine.local import LocalEngine
from weakspot.data.engine.processes import ProcessEngine
from weakspot.models.onnx.session import make_session
from weakspot.testing.engine_checks import (
    Deadly,
    DeadlyWork,
    NumberWork,
    OnnxWork,
    asking_for_torch,
    hungry,
)

DOUBLED = [2 * number for number in range(40)]


def minus(number):
    return -number


def test_map__killed_workers__nothing_lost_or_doubled(tmp_path):
    deadly = Deadly(numbers=(3, 20, 21), marks=str(tmp_path))
    assert list(ProcessEngine(n_workers=2, queue_depth=8).map(deadly, range(40))) == DOUBLED
    assert len(list(tmp_path.iterdir())) == 3


def test_map__item_that_always_kills__goes_to_lost():
    found = list(
        ProcessEngine(n_workers=1, queue_depth=0).map(Deadly(numbers=(5,)), range(12), lost=minus)
    )
    assert found == [-5 if number == 5 else 2 * number for number in range(12)]


def test_map__item_that_always_kills__is_named_where_nothing_stands_in():
    results = ProcessEngine(n_workers=1, queue_depth=0).map(Deadly(numbers=(1,)), range(3))
    assert next(results) == 0
    with pytest.raises(WeakspotError, match="died again and again on one item.*Given: '1'"):
        next(results)


def test_map_batches__killed_worker__same_batches_as_local():
    """A batch that a worker was killed on is run again as a whole: its numbers are the same."""
    engine, killed = ProcessEngine(n_workers=2, queue_depth=8), []
    found = []
    for batch in engine.map_batches(NumberWork, range(60), batch_size=4):
        if not killed:
            killed.append(batch.process)
            os.kill(batch.process, signal.SIGKILL)
        found.append(list(batch.doubled))
    assert found == [
        list(batch.doubled)
        for batch in LocalEngine().map_batches(NumberWork, range(60), batch_size=4)
    ]


def test_map_batches__item_that_always_kills__only_its_batch_is_taken_apart():
    deadly = partial(DeadlyWork, function=Deadly(numbers=(5,)))
    found = list(
        ProcessEngine(queue_depth=4).map_batches(
            deadly, range(12), batch_size=4, lost=lambda number: [-number]
        )
    )
    assert found == [[0, 2, 4, 6], [8], [-5], [12], [14], [16, 18, 20, 22]]


def test_map__memory_bound__item_that_is_too_hungry():
    engine = ProcessEngine(n_workers=1, memory_megabytes=3_000)
    with pytest.raises(MemoryError):
        list(engine.map(hungry, [1]))
    greedy = Deadly(numbers=(2,), then=hungry)
    assert list(engine.map(greedy, range(4), lost=minus)) == [0, 2, -2, 6]


def test_map_batches__build_that_kills_its_process():
    with pytest.raises(WeakspotError, match="before they can start"):
        list(ProcessEngine().map_batches(partial(Deadly(numbers=(0,)), 0), range(3), batch_size=2))


def test_map__error_with_its_type_and_its_words():
    with pytest.raises(MissingExtraError) as caught:
        list(ProcessEngine(n_workers=1).map(asking_for_torch, [1]))
    assert caught.value.extra == "torch"
    assert "pip install 'weakspot[torch]'" in str(caught.value)
    assert "asking_for_torch" in caught.value.__notes__[0]


def test_map__function_that_cannot_be_sent():
    with pytest.raises(ConfigError, match=r"The work cannot be sent.*Sendable"):
        list(ProcessEngine(n_workers=1).map(lambda number: number, [1]))


def test_map__close_ends_the_processes():
    batches = ProcessEngine(n_workers=1).map_batches(NumberWork, iter(int, 1), batch_size=2)
    process = next(batches).process
    batches.close()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


@pytest.mark.parametrize(
    "settings", [{"n_workers": -1}, {"queue_depth": -1}, {"memory_megabytes": -1}]
)
def test_process_engine__negative_settings(settings):
    with pytest.raises(ConfigError, match="must be at least 0"):
        ProcessEngine(**settings)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_map_batches__workers_do_not_outlive_the_caller(how):
    """However the caller ends; a second without the first would keep a model in memory for ever.

    A shell starts jobs in the background with SIGINT ignored, and children inherit that: the caller asks for it.
    """
    code = (
        "import signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from weakspot.data.engine.processes import ProcessEngine\n"
        "from weakspot.testing.engine_checks import NumberWork\n"
        "for batch in ProcessEngine().map_batches(NumberWork, iter(int, 1), batch_size=2):\n"
        "    print(batch.process, flush=True)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as caller:
        worker = int(caller.stdout.readline())
        caller.send_signal(how)
        _, said = caller.communicate(timeout=60)
    assert ("KeyboardInterrupt" in said) == (how == signal.SIGINT)
    for _ in range(600):
        if not Path(f"/proc/{worker}").exists():
            return
        time.sleep(0.1)
    raise AssertionError("The worker is still there after a minute.")


@pytest.fixture(scope="module")
def tower(tmp_path_factory):
    draw = np.random.default_rng(0)
    held = {
        "patch": draw.normal(0, 0.1, size=(96, 3, 8, 8)).astype(np.float32),
        "flat": np.array([0, 96, -1]),
        "up": draw.normal(0, 0.1, size=(96, 512)).astype(np.float32),
        "down": draw.normal(0, 0.1, size=(512, 64)).astype(np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["pixels", "patch"], ["patches"], strides=[8, 8]),
        helper.make_node("Reshape", ["patches", "flat"], ["rows"]),
        helper.make_node("Transpose", ["rows"], ["tokens"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["tokens", "up"], ["wide"]),
        helper.make_node("Tanh", ["wide"], ["bent"]),
        helper.make_node("MatMul", ["bent", "down"], ["narrow"]),
        helper.make_node("ReduceMean", ["narrow"], ["embeddings"], axes=[1], keepdims=0),
    ]
    pixels = helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["n", 3, 64, 64])
    embeddings = helper.make_tensor_value_info("embeddings", TensorProto.FLOAT, ["n", 64])
    graph = helper.make_graph(
        nodes,
        "tower",
        [pixels],
        [embeddings],
        [numpy_helper.from_array(held[name], name) for name in held],
    )
    path = tmp_path_factory.mktemp("tower") / "tower.onnx"
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9),
        str(path),
    )
    return path


@pytest.mark.parametrize("threads", [2, 3])
def test_onnxruntime__same_bits_with_any_number_of_threads(tower, threads):
    pixels = np.random.default_rng(1).normal(size=(7, 3, 64, 64)).astype(np.float32)
    one, several = (
        make_session(tower, threads=number).run(None, {"pixels": pixels})[0]
        for number in (1, threads)
    )
    assert one.tobytes() == several.tobytes()


def test_map_batches__same_bits_in_another_process(tower):
    build = partial(OnnxWork, str(tower))
    local = list(LocalEngine().map_batches(build, range(20), batch_size=8))
    other = list(ProcessEngine(n_workers=2).map_batches(build, range(20), batch_size=8))
    assert [rows.shape for rows in other] == [(8, 64), (8, 64), (4, 64)]
    assert [rows.tobytes() for rows in other] == [rows.tobytes() for rows in local]
