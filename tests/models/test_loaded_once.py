import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from weakspot.models.loading import LoadedOnce, reloaded


class _Slow:
    def __init__(self):
        self.n_loads = 0
        self.fails = False
        self.start = threading.Barrier(4)

    @LoadedOnce
    def value(self):
        """Count."""
        if self.fails:
            raise ValueError("not yet")
        time.sleep(0.01)
        self.n_loads += 1
        return object()


def test_loaded_once__four_threads_load_once():
    slow = _Slow()

    def ask(_):
        slow.start.wait()
        return slow.value

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(ask, range(4)))
    assert slow.n_loads == 1
    assert len(set(map(id, found))) == 1


def test_loaded_once__failure_is_tried_again():
    slow = _Slow()
    slow.fails = True
    with pytest.raises(ValueError, match="not yet"):
        _ = slow.value
    slow.fails = False
    assert slow.value is slow.value


def test_reloaded__a_copy_that_has_loaded_nothing():
    class Part:
        def __init__(self, number):
            self.number = number
            self.loads = []

        @LoadedOnce
        def doubled(self):
            return 2 * self.number

    part = Part(2)
    assert part.doubled == 4
    other = reloaded(part, number=5)
    assert (other.number, other.doubled, part.number, part.doubled) == (5, 10, 2, 4)
    assert "doubled" not in vars(reloaded(other))
    assert type(other) is Part


def _load(part):
    return f"loaded by {part.name}"


class _Named:
    name = "one"


def test_loaded_once__can_be_sent_with_a_class_that_no_module_holds():
    sent = pickle.loads(pickle.dumps(LoadedOnce(_load)))
    part = _Named()
    assert sent.__get__(part) == sent.__get__(part) == "loaded by one"
    assert vars(part) == {"_load": "loaded by one"}
