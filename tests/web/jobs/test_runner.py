"""Work in real processes: some with a small worker that does as it is told, some with the real one on planted images."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from weakspot.core.errors import ConfigError
from weakspot.project.project import Project
from weakspot.repair.stage import RepairRequest
from weakspot.web.jobs import JobRunner, JobState, JobView
from weakspot.web.problems import RefusedError
from weakspot.web.services.work import check_arguments
from weakspot.web.state.store import StateStore

OBEDIENT = """\
import json, os, sys, threading, time
request = json.loads(sys.stdin.readline())
def say(message):
    print(json.dumps(message), flush=True)
def watch():
    os.read(0, 1)
    os._exit(130)
threading.Thread(target=watch, daemon=True).start()
print("noise that is no JSON", flush=True)
say({"stage": "first", "done": 1, "total": 2})
wait = request["arguments"].get("wait_for")
while wait and not os.path.exists(wait):
    time.sleep(0.01)
if request["arguments"].get("fail"):
    print("Traceback: secret", file=sys.stderr)
    say({"error": "It cannot be done. To do: something else."})
    sys.exit(1)
say({"stage": "second", "done": 2, "total": 2})
say({"result": {"pid": os.getpid()}})
"""
ENDED = (JobState.DONE, JobState.FAILED, JobState.CANCELLED, JobState.INTERRUPTED)


def seen(runner: JobRunner, job_id: str, *states: JobState, stage: str | None = None) -> JobView:
    """Wait until a work is in one of the states."""
    while True:
        view = runner.find(job_id)
        if view.state in states and stage in (None, view.stage):
            return view
        time.sleep(0.02)


@pytest.fixture
def state(tmp_path):
    (tmp_path / ".weakspot").mkdir()
    store = StateStore(f"sqlite:///{tmp_path / 'browser.sqlite'}")
    yield store
    store.close()


@pytest.fixture
def runner(tmp_path, state):
    made = JobRunner(tmp_path, state, command=(sys.executable, "-c", OBEDIENT))
    yield made
    made.close()


def test_start__worker_answers__result_and_last_stage_are_kept(runner):
    started = runner.start("run", {}, by="Ann")
    ended = seen(runner, started.job_id, *ENDED)
    assert (started.state, ended.state, ended.started_by) == (JobState.QUEUED, JobState.DONE, "Ann")
    assert (ended.stage, ended.done, ended.total, ended.message) == ("second", 2, 2, "")
    assert ended.result["pid"] != os.getpid()
    assert ended.finished is not None


def test_start__worker_fails__sentence_is_told_and_trace_is_not(runner, caplog):
    ended = seen(runner, runner.start("run", {"fail": True}, by="Ann").job_id, *ENDED)
    assert (ended.state, ended.message) == (
        JobState.FAILED,
        "It cannot be done. To do: something else.",
    )
    assert "Traceback: secret" in caplog.text


def test_start__two_works__second_waits_for_first(runner, tmp_path):
    go = tmp_path / "go"
    first = runner.start("run", {"wait_for": str(go)}, by="Ann")
    second = runner.start("report", {}, by="Ann")
    seen(runner, first.job_id, JobState.RUNNING, stage="first")
    assert runner.find(second.job_id).state is JobState.QUEUED
    assert [job.job_id for job in runner.newest()] == [second.job_id, first.job_id]
    go.touch()
    assert seen(runner, second.job_id, *ENDED).state is JobState.DONE
    assert runner.find(first.job_id).finished <= runner.find(second.job_id).finished


def test_cancel__running_and_waiting__both_stop_and_resume_as_the_same_works(runner, tmp_path):
    go = tmp_path / "go"
    running = runner.start("run", {"wait_for": str(go)}, by="Ann")
    waiting = runner.start("report", {}, by="Ann")
    seen(runner, running.job_id, JobState.RUNNING, stage="first")
    assert runner.cancel(waiting.job_id).state is JobState.CANCELLED
    runner.cancel(running.job_id)
    cancelled = seen(runner, running.job_id, *ENDED)
    assert (cancelled.state, cancelled.message) == (
        JobState.CANCELLED,
        "What was finished is kept.",
    )
    with pytest.raises(RefusedError, match="cannot be stopped"):
        runner.cancel(running.job_id)
    go.touch()
    assert runner.resume(running.job_id).state is JobState.QUEUED
    assert seen(runner, running.job_id, *ENDED).state is JobState.DONE
    with pytest.raises(RefusedError, match="nothing to resume"):
        runner.resume(running.job_id)


def test_cancel__ended_a_moment_ago_and_not_put_away_yet__refused(runner):
    job = runner.start("report", {}, by="Ann")
    ended = seen(runner, job.job_id, *ENDED)
    runner._running = (job.job_id, None)
    with pytest.raises(RefusedError, match="cannot be stopped"):
        runner.cancel(job.job_id)
    assert runner.find(job.job_id) == ended


def test_cancel__worker_that_ignores_signals__is_killed(tmp_path, state, monkeypatch):
    monkeypatch.setattr("weakspot.web.jobs.GRACE_SECONDS", 0.05)
    deaf = (
        "import json, signal, time\nfor number in (signal.SIGINT, signal.SIGTERM): signal.signal(number, signal.SIG_IGN)\n"
        "print(json.dumps({'stage': 'deaf', 'done': 0, 'total': None}), flush=True)\nwhile True: time.sleep(1)"
    )
    runner = JobRunner(tmp_path, state, command=(sys.executable, "-c", deaf))
    job = runner.start("run", {}, by="Ann")
    seen(runner, job.job_id, JobState.RUNNING, stage="deaf")
    runner.cancel(job.job_id)
    assert seen(runner, job.job_id, *ENDED).state is JobState.CANCELLED
    runner.close()


def test_start__worker_killed__interrupted_with_reason_and_resumable(runner, tmp_path):
    go = tmp_path / "go"
    job = runner.start("run", {"wait_for": str(go)}, by="Ann")
    seen(runner, job.job_id, JobState.RUNNING, stage="first")
    os.kill(runner.process_id, signal.SIGKILL)
    killed = seen(runner, job.job_id, *ENDED)
    assert killed.state is JobState.INTERRUPTED
    assert "signal 9" in killed.message
    go.touch()
    runner.resume(job.job_id)
    assert seen(runner, job.job_id, *ENDED).state is JobState.DONE


def test_close__work_under_way__is_interrupted_and_next_runner_resumes_it(tmp_path, state):
    go = tmp_path / "go"
    first = JobRunner(tmp_path, state, command=(sys.executable, "-c", OBEDIENT))
    jobs = [
        first.start("run", {"wait_for": str(go)}, by="Ann"),
        first.start("report", {}, by="Ann"),
    ]
    seen(first, jobs[0].job_id, JobState.RUNNING, stage="first")
    first.close()
    second = JobRunner(tmp_path, state, command=(sys.executable, "-c", OBEDIENT))
    assert {job.state for job in second.newest()} == {JobState.INTERRUPTED}
    go.touch()
    second.resume(jobs[0].job_id)
    assert seen(second, jobs[0].job_id, *ENDED).state is JobState.DONE
    second.close()


SERVER = """\
import sys, time
from pathlib import Path
from weakspot.web.jobs import JobRunner
from weakspot.web.state.store import StateStore
folder = Path(sys.argv[1])
runner = JobRunner(folder, StateStore(f"sqlite:///{folder / 'browser.sqlite'}"), command=(sys.executable, "-c", sys.argv[2]))
job = runner.start("run", {"wait_for": str(folder / "go")}, by="Ann")
while runner.find(job.job_id).stage != "first":
    time.sleep(0.02)
print(job.job_id, runner.process_id, flush=True)
time.sleep(1000)
"""


def test_runner__server_killed__worker_ends_and_work_is_interrupted(tmp_path, state):
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, str(tmp_path), OBEDIENT], stdout=subprocess.PIPE
    ) as server:
        assert server.stdout is not None
        job_id, worker = server.stdout.readline().decode().split()
        other = JobRunner(tmp_path, state)
        assert other.find(job_id).state is JobState.RUNNING, "another server lives and holds it"
        server.kill()
    while other.newest()[0].state is JobState.RUNNING:
        time.sleep(0.02)
    found = other.find(job_id)
    assert (found.state, found.message) == (
        JobState.INTERRUPTED,
        "The server was stopped before this was done; what was finished is kept.",
    )
    assert (
        not Path(f"/proc/{worker}").exists()
        or "Z" in Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2][:3]
    )
    other.close()


def test_find__unknown__refused(runner):
    for ask in (runner.find, runner.cancel, runner.resume):
        with pytest.raises(RefusedError, match="no such work"):
            ask("nothing")


def test_checked_arguments__unknown_or_wrong__refused():
    assert check_arguments("run", {"methods": ["directions"]}) == {"methods": ["directions"]}
    for kind, given in (
        ("nonsense", {}),
        ("run", {"methods": ["../../etc"] * 3, "path": "/"}),
        ("run", {"methods": "directions"}),
        ("repair", {"budget": -1}),
        ("repair", {"budget": 10**400}),
        ("repair", {"slice_ids": ["\ud800"]}),
        ("report", {"run": "x" * 30_000}),
        ("report", {"run": float("nan")}),
        ("counterfactual", {"class_name": "a\x00b", "captions": ["c"]}),
        ("attributes", {"path": "/"}),
        ("compare", {}),
        ("map", {"layout": "other"}),
    ):
        with pytest.raises(ConfigError):
            check_arguments(kind, given)


@pytest.fixture
def own_folder(fruit_folder, tmp_path) -> Path:
    return Path(shutil.copytree(fruit_folder, tmp_path / "fruit"))


def test_real_worker__cancelled_in_the_middle__resumes_to_the_same_result(own_folder):
    state = StateStore.beside(own_folder / ".weakspot")
    runner = JobRunner(own_folder, state)
    project = Project.open(own_folder)
    before = project.run_record()
    arguments = {
        "slice_ids": [found.slice_id for found, _ in before.published()],
        "is_comparison": True,
    }
    with project.store.writing():
        # As long as somebody else writes, the worker cannot write its first strategy down, so it is in the middle for certain.
        job = runner.start("repair", arguments, by="Ann")
        assert (
            seen(runner, job.job_id, *ENDED, JobState.RUNNING, stage="repair").state
            is JobState.RUNNING
        )
        runner.cancel(job.job_id)
        assert seen(runner, job.job_id, *ENDED).state is JobState.CANCELLED
    assert project.run_record() == before
    runner.resume(job.job_id)
    resumed = seen(runner, job.job_id, *ENDED)
    assert (resumed.state, resumed.message) == (JobState.DONE, "")
    predictions = project.run_record().repairs
    assert resumed.result["n_repairs"] == len(predictions) > 2
    uninterrupted = project.repair(None, RepairRequest(is_comparison=True)).repairs
    assert [one.arms for one in predictions] == [one.arms for one in uninterrupted]
    runner.close()
    state.close()


def test_real_worker__slice_that_is_not_there__fails_with_a_sentence_without_server_paths(
    own_folder,
):
    state = StateStore.beside(own_folder / ".weakspot")
    runner = JobRunner(own_folder, state)
    failed = seen(
        runner, runner.start("repair", {"slice_ids": ["nothing"]}, by="Ann").job_id, *ENDED
    )
    assert failed.state is JobState.FAILED
    assert "names no confirmed slice" in failed.message
    assert str(own_folder) not in failed.message
    runner.close()
    state.close()
