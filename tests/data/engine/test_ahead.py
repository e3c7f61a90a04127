import os
import threading

from weakspot.core.machine import waited_seconds
from weakspot.data.engine.chunks import AheadOfTime


class Gated:
    """Prepares nothing before the gate is open."""

    def __init__(self):
        self.gate = threading.Event()
        self.priorities = []

    def prepare(self, item):
        self.gate.wait()
        self.priorities.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        return item + 1

    def run(self, ready):
        return sum(ready)


def test_run__time_until_items_are_prepared_counts_as_waiting():
    work = Gated()
    ahead = AheadOfTime(work, 1)
    prepared, before = ahead.prepare([1]), waited_seconds()
    threading.Timer(0.02, work.gate.set).start()
    assert ahead.run(prepared) == 2
    assert waited_seconds() > before
    ahead.close()


def test_prepare__threads_give_way_to_all_others():
    work = Gated()
    work.gate.set()
    own = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    AheadOfTime(work, 1).prepare([1])[0].result()
    assert work.priorities == [19]
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == own
