import time

import pytest

from weakspot.core.machine import waited_seconds, waiting


def test_waiting__counts_what_is_within_also_when_it_fails(monkeypatch):
    clock = iter([10.0, 12.5, 20.0, 21.0])
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    before = waited_seconds()
    with waiting():
        pass
    with pytest.raises(ValueError, match="late"), waiting():
        raise ValueError("late")
    assert waited_seconds() - before == pytest.approx(3.5)
