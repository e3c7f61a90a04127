import shutil

import pytest

from weakspot.core.run import Decision, DecisionKind
from weakspot.project.project import Project
from weakspot.store.runs import RunStore

SAID = Decision(
    slice_id="0123456789ab",
    kind=DecisionKind.DISMISSED,
    by="Olga",
    time="2026-01-01T00:00:00+00:00",
)


@pytest.fixture
def folder(fruit_folder, tmp_path):
    return shutil.copytree(fruit_folder, tmp_path / "fruit")


def test_run__nothing_of_the_record_is_read_back(folder, monkeypatch):
    def refuse(_store, run_id):
        raise AssertionError(f"{run_id} was read")

    monkeypatch.setattr(RunStore, "load", refuse)
    assert Project.open(folder).run().repairs


def test_run__what_a_person_decides_meanwhile_is_kept(folder):
    def decide(stage, _done, _total):
        runs = project.store.runs
        if stage == "repair" and not runs.latest().decisions:
            runs.save(runs.latest().model_copy(update={"decisions": (SAID,)}))

    project = Project.open(folder, progress=decide)
    record = project.run()
    assert record.repairs
    assert record.decisions == (SAID,)
    assert project.run_record().decisions == (SAID,)


def test_run__steps_that_cannot_be_counted_say_that_they_are_under_way(folder):
    told = []
    Project.open(folder, progress=lambda *said: told.append(said)).run()
    steps = [(stage, done) for stage, done, _ in told if stage != "repair"]
    begun = steps[steps.index(("discover", 1)) :]
    assert begun == [
        ("discover", 1),
        ("describe", 0),
        ("describe", 1),
        ("verify", 0),
        ("describe", 0),
        ("describe", 1),
        ("verify", 1),
        ("advise", 0),
        ("advise", 1),
    ]
