import pickle

from weakspot.core.errors import ConfigError
from weakspot.engine.station import BatchOrder, MapOrder, Station, own_version
from weakspot.engine.travel import unpacked_outcome
from weakspot.testing.engine_work import NumberWork, refusing_seven


def started(order):
    station = Station(pickle)
    assert unpacked_outcome(station.start(pickle.dumps(order), own_version())).error is None
    return station


def test_do__results_up_to_the_first_error():
    found = unpacked_outcome(started(MapOrder(function=refusing_seven)).do(0, pickle.dumps([1, 2, 7, 8])))
    assert found.results == [1, 2]
    assert isinstance(found.error, KeyError)


def test_begin__a_later_batch_before_an_earlier_one_is_finished():
    station = started(BatchOrder(build=NumberWork, n_threads=1))
    station.begin(0, pickle.dumps([1, 2]))
    station.begin(1, pickle.dumps([3]))
    found = [unpacked_outcome(station.finish(number)).results[0] for number in (0, 1)]
    assert [batch.doubled for batch in found] == [(2, 4), (6,)]
    assert found[0].built == found[1].built


def test_begin__items_that_cannot_be_read_are_told_at_the_end():
    station = started(MapOrder(function=refusing_seven))
    station.begin(0, b"nonsense")
    assert isinstance(unpacked_outcome(station.finish(0)).error, pickle.UnpicklingError)


def test_start__other_version():
    found = unpacked_outcome(Station(pickle).start(pickle.dumps(MapOrder(function=refusing_seven)), "0.0.0"))
    assert isinstance(found.error, ConfigError)
    assert "the caller has 0.0.0" in str(found.error)


def test_do__before_any_order():
    assert "before its order" in str(unpacked_outcome(Station(pickle).do(0, pickle.dumps([1]))).error)
