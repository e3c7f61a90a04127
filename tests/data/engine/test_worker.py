import pickle

from weakspot.core.errors import ConfigError
from weakspot.data.engine.worker import BatchOrder, MapOrder, WorkerSide, own_version, unpack_result
from weakspot.testing.engine_checks import NumberWork, refusing_seven


def started(order):
    worker = WorkerSide(pickle)
    assert unpack_result(worker.start(pickle.dumps(order), own_version())).error is None
    return worker


def test_do__results_up_to_the_first_error():
    found = unpack_result(
        started(MapOrder(function=refusing_seven)).do(0, pickle.dumps([1, 2, 7, 8]))
    )
    assert found.results == [1, 2]
    assert isinstance(found.error, KeyError)


def test_begin__a_later_batch_before_an_earlier_one_is_finished():
    worker = started(BatchOrder(build=NumberWork, n_threads=1))
    worker.begin(0, pickle.dumps([1, 2]))
    worker.begin(1, pickle.dumps([3]))
    found = [unpack_result(worker.finish(number)).results[0] for number in (0, 1)]
    assert [batch.doubled for batch in found] == [(2, 4), (6,)]
    assert found[0].built == found[1].built


def test_begin__items_that_cannot_be_read_are_told_at_the_end():
    worker = started(MapOrder(function=refusing_seven))
    worker.begin(0, b"nonsense")
    assert isinstance(unpack_result(worker.finish(0)).error, pickle.UnpicklingError)


def test_start__other_version():
    found = unpack_result(
        WorkerSide(pickle).start(pickle.dumps(MapOrder(function=refusing_seven)), "0.0.0")
    )
    assert isinstance(found.error, ConfigError)
    assert "the caller has 0.0.0" in str(found.error)


def test_do__before_any_order():
    assert "before its order" in str(
        unpack_result(WorkerSide(pickle).do(0, pickle.dumps([1]))).error
    )
