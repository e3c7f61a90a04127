from datetime import UTC, datetime, timedelta

import pytest

from weakspot.run import stage_clock
from weakspot.run.settings import Settings
from weakspot.run.stage_clock import RUN_TIME, StageClock, new_record


def record(after=()):
    return new_record(Settings(), inputs={}, criterion="wrong", after=after)


def test_new_record__clock_set_back__still_sorts_behind_earlier_runs():
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    earlier = (f"{tomorrow - timedelta(days=9):{RUN_TIME}}-ffffff", f"{tomorrow:{RUN_TIME}}-ffffff")
    found = record(earlier)
    assert sorted([*earlier, found.run_id])[-1] == found.run_id
    assert record([*earlier, found.run_id]).run_id > found.run_id


@pytest.mark.parametrize("after", [(), ("by-hand",), ("20000101T000000.000000-abcdef",)])
def test_new_record__nothing_newer__takes_the_time_of_the_clock(after):
    before = datetime.now(UTC)
    found = datetime.strptime(record(after).run_id.rpartition("-")[0], RUN_TIME).replace(tzinfo=UTC)
    assert before <= found <= datetime.now(UTC)


def test_stage__notes_images_and_the_share_that_was_waited(monkeypatch):
    waited, clock = iter([1.0, 2.0, 5.0, 25.0]), iter([100.0, 104.0, 200.0, 210.0])
    monkeypatch.setattr(stage_clock, "waited_seconds", lambda: next(waited))
    monkeypatch.setattr(stage_clock.time, "perf_counter", lambda: next(clock))
    kept = StageClock()
    with kept.stage("embed") as facts:
        facts["n_images"] = 8
    with kept.stage("threads"):
        pass
    assert [(one.seconds, one.n_images, one.waiting) for one in kept.stages] == [
        (4.0, 8, 0.25),
        (10.0, 0, 1.0),
    ]
