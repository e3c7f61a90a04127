import pytest
from tests.build import write_fruit_table

from weakspot.core.errors import DataError, StoreError
from weakspot.gate.watch import (
    LOCK_FILE,
    RoundRequest,
    Watcher,
    WatchRound,
    last_run,
    note_turn,
    read_journal,
)
from weakspot.store import atomic
from weakspot.store.project import ProjectStore


class _Enough(BaseException):
    """Ends a watcher after so many pauses."""


class _Pauses:
    def __init__(self, *steps):
        self.seconds = []
        self._steps = list(steps)

    def __call__(self, seconds):
        self.seconds.append(seconds)
        if not self._steps:
            raise _Enough
        self._steps.pop(0)()


def _watched(folder, *steps, every=10.0):
    told, pauses = [], _Pauses(*steps)
    watcher = Watcher(
        RoundRequest(folder=folder),
        every=every,
        tell=told.append,
        pause=pauses,
    )
    with pytest.raises(_Enough):
        watcher.forever()
    return told, pauses.seconds


def test_watcher__goes_on_through_errors_with_longer_pauses(tmp_path):
    folder = write_fruit_table(tmp_path / "fruit")
    manifest, aside = folder / "manifest.csv", folder / "aside.csv"
    told, seconds = _watched(
        folder,
        lambda: manifest.rename(aside),
        lambda: None,
        lambda: None,
        lambda: aside.rename(manifest),
    )
    assert [turn.kind for turn in told] == [
        "run",
        *["error"] * 3,
        "unchanged",
    ]
    assert seconds == [10.0, 20.0, 40.0, 80.0, 10.0]
    assert "manifest.csv" in told[1].error
    assert told[-1].run_id == told[0].run_id


def test_watcher__pauses_never_grow_beyond_an_hour(tmp_path):
    folder = write_fruit_table(tmp_path / "fruit")
    (folder / "manifest.csv").unlink()
    _, seconds = _watched(folder, *[lambda: None] * 9, every=300.0)
    assert seconds[-1] == 3600.0


def test_watcher__two_do_not_work_at_once(tmp_path):
    folder = write_fruit_table(tmp_path / "fruit")
    data = ProjectStore.create(folder).data
    with atomic.exclusive(data / LOCK_FILE), pytest.raises(StoreError, match="Another watcher"):
        Watcher(RoundRequest(folder=folder)).once()


def test_once__writes_down_what_it_did_and_goes_on_from_there(tmp_path):
    folder = write_fruit_table(tmp_path / "fruit")
    first = Watcher(RoundRequest(folder=folder)).once()
    again = Watcher(RoundRequest(folder=folder)).once()
    assert (again.kind, again.run_id) == ("unchanged", first.run_id)
    assert list(read_journal(ProjectStore.open(folder).data)) == [first]


def test_once__an_error_is_raised_and_written_down(tmp_path):
    folder = write_fruit_table(tmp_path / "fruit")
    (folder / "manifest.csv").write_text("key,label\n")
    with pytest.raises(DataError):
        Watcher(RoundRequest(folder=folder)).once()
    assert [turn.kind for turn in read_journal(ProjectStore.open(folder).data)] == ["error"]


def test_journal__a_line_that_was_cut_off_is_passed_over_and_closed(tmp_path):
    turn = WatchRound(kind="run", time="2026-01-01", run_id="a")
    note_turn(tmp_path, turn)
    with (tmp_path / "watch.jsonl").open("ab") as stream:
        stream.write(b'{"kind": "run", "ti')
    assert last_run(tmp_path) == turn
    later = turn.model_copy(update={"run_id": "b"})
    note_turn(tmp_path, later)
    assert list(read_journal(tmp_path)) == [turn, later]


def test_journal__errors_are_no_state(tmp_path):
    turn = WatchRound(kind="run", time="2026-01-01", run_id="a")
    for one in (turn, WatchRound(kind="error", time="2026-01-02", error="down")):
        note_turn(tmp_path, one)
    assert last_run(tmp_path) == turn
