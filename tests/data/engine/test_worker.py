import pickle
from functools import partial

from weakspot.core.errors import ConfigError
from weakspot.data.engine.chunks import OneByOne
from weakspot.data.engine.worker import WorkerSide, own_version, unpack_result
from weakspot.testing.engine_checks import refusing_seven


def started(order):
    worker = WorkerSide(pickle.dumps)
    assert unpack_result(worker.start(pickle.dumps(order), own_version()))[1] is None
    return worker


def test_do__results_up_to_the_first_error():
    found = unpack_result(
        started(partial(OneByOne, refusing_seven)).do(0, pickle.dumps([1, 2, 7, 8]))
    )
    assert found[0] == [1, 2]
    assert isinstance(found[1], KeyError)


def test_begin__items_that_cannot_be_read_are_told_at_the_end():
    worker = started(partial(OneByOne, refusing_seven))
    worker.begin(0, b"nonsense")
    assert isinstance(unpack_result(worker.finish(0))[1], pickle.UnpicklingError)


def test_start__other_version():
    found = unpack_result(
        WorkerSide(pickle.dumps).start(pickle.dumps(partial(OneByOne, refusing_seven)), "0.0.0")
    )
    assert isinstance(found[1], ConfigError)
    assert "the caller has 0.0.0" in str(found[1])


def test_do__before_any_order():
    assert "before its order" in str(
        unpack_result(WorkerSide(pickle.dumps).do(0, pickle.dumps([1])))[1]
    )
