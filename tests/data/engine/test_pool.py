"""The pool with workers that are threads and die on command; real processes are in test_processes.py and test_cluster.py."""

import pickle
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import islice

import pytest

from weakspot.core.errors import WeakspotError
from weakspot.data.engine.chunks import BatchPace, ChunkQueue, MapPace, OneByOne
from weakspot.data.engine.pool import WorkerPool
from weakspot.data.engine.worker import WorkerSide, batch_order, own_version
from weakspot.testing.engine_checks import DeadlyWork, doubled_in_odd_time, refusing_seven


class DeathError(Exception):
    pass


class ThreadWorker:
    def __init__(self, workers):
        self._workers, self._station, self._thread = (
            workers,
            WorkerSide(pickle.dumps),
            ThreadPoolExecutor(1),
        )
        self._is_dead = False

    def start(self, order):
        return self._call("start", None, order, own_version())

    def begin(self, number, items):
        self._call("begin", pickle.loads(items), number, items)

    def finish(self, number):
        return self._call("finish", None, number)

    def do(self, number, items):
        return self._call("do", pickle.loads(items), number, items)

    def death(self, error):
        return self._workers.death if isinstance(error, DeathError) else None

    def stop(self):
        self._workers.stopped.append(self)
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _call(self, name, items, *given):
        if self._workers.is_pending(self):
            return Future()
        return self._thread.submit(self._work, name, items, given)

    def _work(self, name, items, given):
        self._is_dead = self._is_dead or self._workers.dies(name, items)
        if self._is_dead:
            raise DeathError
        return getattr(self._station, name)(*given)


class ThreadWorkers:
    dumps = pickle.dumps

    def __init__(
        self, *, death="worker", deadly=(), n_times=0, n_wanted=2, n_pending=0, dies_at_start=False
    ):
        self.death, self._deadly, self._left = death, deadly, n_times
        self._n_wanted, self._n_pending, self._dies_at_start = n_wanted, n_pending, dies_at_start
        self.started, self.stopped = [], []

    def n_wanted(self):
        return self._n_wanted

    def start(self):
        self.started.append(ThreadWorker(self))
        return self.started[-1]

    def is_pending(self, worker):
        return self.started.index(worker) < self._n_pending

    def dies(self, name, items):
        if name == "start":
            return self._dies_at_start
        if self._left and items and set(items) & set(self._deadly):
            self._left -= 1
            return True
        return False


def doubled(workers, items, *, lost=None):
    return WorkerPool(
        workers, partial(OneByOne, doubled_in_odd_time), MapPace(queue_depth=4), lost
    ).results(ChunkQueue(items))


def lists(workers, items, *, batch_size=3, lost=None):
    order = batch_order(_number_lists, n_threads=1)
    return WorkerPool(
        workers, order, BatchPace(batch_size=batch_size, queue_depth=6), lost
    ).results(ChunkQueue(items))


def _number_lists():
    return DeadlyWork(function=doubled_in_odd_time)


def test_results__worker_dies_once__nothing_lost_or_doubled():
    workers = ThreadWorkers(deadly=(5,), n_times=1)
    assert list(doubled(workers, range(30))) == [2 * number for number in range(30)]
    assert len(workers.started) == 3
    assert set(workers.stopped) == set(workers.started)


def test_results__machines_taken_away_on_one_batch__it_stays_whole():
    workers = ThreadWorkers(death="machine", deadly=(4,), n_times=6)
    assert list(lists(workers, range(8))) == [[0, 2, 4], [6, 8, 10], [12, 14]]


def test_results__workers_die_on_a_batch__taken_apart_and_only_the_bad_item_lost():
    workers = ThreadWorkers(deadly=(4,), n_times=1_000)
    found = list(lists(workers, range(8), lost=lambda number: [-number]))
    assert found == [[0, 2, 4], [6], [-4], [10], [12, 14]]


def test_results__places_that_never_come__the_rest_goes_on():
    workers = ThreadWorkers(n_wanted=2, n_pending=1)
    assert list(doubled(workers, range(20))) == [2 * number for number in range(20)]


def test_results__workers_that_cannot_start():
    workers = ThreadWorkers(dies_at_start=True)
    with pytest.raises(WeakspotError, match="before they can start"):
        list(doubled(workers, range(20)))
    assert set(workers.stopped) == set(workers.started)


def test_results__no_more_workers_than_chunks():
    workers = ThreadWorkers(n_wanted=50)
    assert list(doubled(workers, range(3))) == [0, 2, 4]
    assert len(workers.started) <= 3
    nobody = ThreadWorkers()
    assert list(doubled(nobody, [])) == []
    assert nobody.started == []


def test_results__caller_stops_early__all_workers_are_stopped():
    workers = ThreadWorkers()
    results = doubled(workers, iter(int, 1))
    assert list(islice(results, 3)) == [0, 0, 0]
    results.close()
    assert set(workers.stopped) == set(workers.started)


def test_results__order_that_cannot_be_opened():
    broken = batch_order(_broken, n_threads=1)
    with pytest.raises(KeyError):
        list(
            WorkerPool(
                ThreadWorkers(), broken, BatchPace(batch_size=1, queue_depth=0), None
            ).results(ChunkQueue([1]))
        )


def _broken():
    refusing_seven(7)
