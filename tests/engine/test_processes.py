import os
import signal
from functools import partial

import pytest

from weakspot.core.errors import ConfigError, MissingExtraError, WeakspotError
from weakspot.engine.local import LocalEngine
from weakspot.engine.processes import ProcessEngine
from weakspot.testing.engine_work import Deadly, DeadlyWork, NumberWork, asking_for_torch, hungry

DOUBLED = [2 * number for number in range(40)]


def minus(number):
    return -number


def test_map__killed_workers__nothing_lost_or_doubled(tmp_path):
    deadly = Deadly(numbers=(3, 20, 21), marks=str(tmp_path))
    assert list(ProcessEngine(n_workers=2, queue_depth=8).map(deadly, range(40))) == DOUBLED
    assert len(list(tmp_path.iterdir())) == 3


def test_map__item_that_always_kills__goes_to_lost():
    found = list(ProcessEngine(n_workers=1, queue_depth=8).map(Deadly(numbers=(5,)), range(12), lost=minus))
    assert found == [-5 if number == 5 else 2 * number for number in range(12)]


def test_map__item_that_always_kills__is_named_where_nothing_stands_in():
    results = ProcessEngine(n_workers=1).map(Deadly(numbers=(1,)), range(3))
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
    assert found == [list(batch.doubled) for batch in LocalEngine().map_batches(NumberWork, range(60), batch_size=4)]


def test_map_batches__item_that_always_kills__only_its_batch_is_taken_apart():
    deadly = partial(DeadlyWork, function=Deadly(numbers=(5,)))
    found = list(ProcessEngine(queue_depth=4).map_batches(deadly, range(12), batch_size=4, lost=lambda number: [-number]))
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


@pytest.mark.parametrize("settings", [{"n_workers": -1}, {"queue_depth": -1}, {"memory_megabytes": -1}])
def test_process_engine__negative_settings(settings):
    with pytest.raises(ConfigError, match="must not be negative"):
        ProcessEngine(**settings)
