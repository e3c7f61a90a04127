"""Two processes that work on one project at the same time: one waits or is told so, and nothing is damaged."""

import json
import subprocess
import sys

from tests.build import planted_project

from weakspot.project.project import Project

N_SAMPLES = 300


def test_run__twice_at_the_same_time__one_is_told_and_both_results_are_sound(tmp_path):
    folder = planted_project(tmp_path, N_SAMPLES).folder
    command = [sys.executable, "-m", "weakspot", "run", "--project", str(folder), "--json"]
    both = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    ended = [(process.communicate(timeout=300), process.returncode) for process in both]
    done = [json.loads(output) for (output, _), code in ended if code == 0]
    refused = [errors for (_, errors), code in ended if code != 0]
    assert done
    assert all(
        "is being written by process" in errors and "to do: Wait" in errors for errors in refused
    ), refused
    assert not any("Traceback" in errors for (_, errors), _ in ended)
    project = Project.open(folder)
    assert project.embed().n_new_embeddings == 0
    records = list(project.store.runs.records())
    assert [record.run_id for record in records] == sorted(record["run_id"] for record in done)
    assert all(record.evidence == records[0].evidence for record in records)
    assert list(project.store.data.rglob("*.tmp-*")) == []
