import threading

import pytest

from weakspot.core.errors import ConfigError
from weakspot.data.engine.local import LocalEngine


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
        if thread.name.startswith("weakspot_"):
            thread.join()
    assert len(started) <= n_started + 1


@pytest.mark.parametrize("settings", [{"n_workers": -1}, {"queue_depth": -1}])
def test_local_engine__negative_settings(settings):
    with pytest.raises(ConfigError, match="must be at least 0"):
        LocalEngine(**settings)


class Work:
    """Batch work whose two halves are given as functions."""

    def __init__(self, prepare=lambda item: item, run=list):
        self.prepare, self.run = prepare, run


def batches(work, items, *, batch_size=2, **settings):
    return LocalEngine(**settings).map_batches(lambda: work, items, batch_size=batch_size)


def test_map_batches__next_batch_is_prepared_while_one_runs():
    prepared = threading.Event()

    def prepare(number):
        if number == 2:
            prepared.set()
        return number

    def run(ready):
        assert prepared.wait(timeout=60)
        return list(ready)

    assert list(batches(Work(prepare, run), range(5), n_workers=1, queue_depth=0)) == [
        [0, 1],
        [2, 3],
        [4],
    ]


def test_map_batches__model_goes_on_while_the_caller_is_busy():
    second = threading.Event()

    def run(ready):
        if ready[0] == 2:
            second.set()
        return list(ready)

    results = batches(Work(run=run), range(8), n_workers=1, queue_depth=0)
    assert next(results) == [0, 1]
    assert second.wait(timeout=60)
    assert list(results) == [[2, 3], [4, 5], [6, 7]]


def test_map_batches__run_by_one_thread_and_nothing_after_an_error():
    threads, ran = set(), []

    def run(ready):
        threads.add(threading.get_ident())
        ran.append(ready[0])
        if ready[0] == 2:
            raise ValueError("two")
        return list(ready)

    results = batches(Work(run=run), range(100), queue_depth=20)
    assert next(results) == [0, 1]
    with pytest.raises(ValueError, match="two"):
        next(results)
    assert ran == [0, 2]
    assert len(threads) == 1


def test_map_batches__close_waits_for_the_batch_that_runs():
    started, gate, ended = threading.Event(), threading.Event(), []

    def run(ready):
        if ready[0] == 2:
            started.set()
            gate.wait()
        ended.append(ready[0])
        return list(ready)

    results = batches(Work(run=run), range(100), queue_depth=20)
    next(results)
    started.wait()
    threading.Timer(0.05, gate.set).start()
    results.close()
    assert ended == [0, 2]


def test_map_batches__interrupt_reaches_the_caller():
    def interrupted(ready):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(batches(Work(run=interrupted), range(10)))
