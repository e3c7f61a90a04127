import threading

import pytest

from weakspot.core.errors import ConfigError
from weakspot.core.roles import Engine
from weakspot.engine.local import LocalEngine


def test_map__in_order_whatever_finishes_first():
    later = threading.Event()

    def slow_first(number):
        if number == 0:
            later.wait()
        elif number == 1:
            later.set()
        return number * 10

    assert list(LocalEngine(n_workers=2, queue_depth=2).map(slow_first, range(5))) == [0, 10, 20, 30, 40]


def test_map__bounded_number_under_way():
    taken = []

    def items():
        for number in range(100):
            taken.append(number)
            yield number

    results = LocalEngine(n_workers=2, queue_depth=3).map(lambda number: number, items())
    assert next(results) == 0
    assert len(taken) <= 2 + 3 + 1
    assert list(results) == list(range(1, 100))


def test_map__error_in_its_turn():
    def fail_on_two(number):
        if number == 2:
            raise ValueError("two")
        return number

    results = LocalEngine(n_workers=3).map(fail_on_two, range(10))
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(ValueError, match="two"):
        next(results)


def test_map__error_of_the_source_of_items():
    def items():
        yield 1
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        list(LocalEngine(n_workers=1, queue_depth=4).map(str, items()))


def test_map__interrupt_reaches_the_caller():
    def interrupted(number):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(LocalEngine(n_workers=1).map(interrupted, range(10)))


def test_map__close_starts_nothing_new():
    gate = threading.Event()
    started = []

    def work(number):
        started.append(number)
        if number > 0:
            gate.wait()
        return number

    results = LocalEngine(n_workers=1, queue_depth=20).map(work, range(1000))
    assert next(results) == 0
    results.close()
    n_started = len(started)
    gate.set()
    for thread in threading.enumerate():
        if thread.name.startswith("weakspot"):
            thread.join()
    assert len(started) <= n_started + 1


def test_map__nothing():
    assert list(LocalEngine().map(str, [])) == []


def test_local_engine__is_an_engine():
    assert isinstance(LocalEngine(), Engine)


@pytest.mark.parametrize("settings", [{"n_workers": -1}, {"queue_depth": -1}])
def test_local_engine__negative_settings(settings):
    with pytest.raises(ConfigError, match="must not be negative"):
        LocalEngine(**settings)
