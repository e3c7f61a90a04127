"""The loop as pages start it, on coloured tiles."""

import shutil
from pathlib import Path

import pytest

from weakspot.core.run import no_stage_progress
from weakspot.project.project import Project
from weakspot.web.services import loop
from weakspot.web.services.repair import EXPORTED, current_folder
from weakspot.web.services.work import do_work


@pytest.fixture
def project(fruit_folder, tmp_path) -> Project:
    copied = Project.open(Path(shutil.copytree(fruit_folder, tmp_path / "fruit")))
    # The images are elsewhere now, so the samples are read again.
    copied.ingest()
    return copied


def test_run__half_done_run__goes_on_with_it_and_comes_to_the_same(project):
    done = project.run_record()
    half = project.discover()
    stages: list[str] = []
    result = loop.run(project, lambda stage, _done, _total: stages.append(stage))
    assert result["run_id"] == half.run_id
    assert project.run_record().evidence == done.evidence
    assert result["n_published"] == len(done.published()) == 1
    assert result["n_repairs"] == 1
    assert {"discover", "verify", "repair"} <= set(stages)


def test_run__other_methods__a_run_of_its_own(project):
    before = project.run_record()
    result = loop.run(project, no_stage_progress, methods=("spotlight",))
    assert result["run_id"] != before.run_id
    assert {one.method for one in project.run_record().methods} == {"spotlight"}
    assert project.run_record(before.run_id) == before


def test_repair__twice__files_of_both_stay_and_are_named_without_the_folder(project):
    record = project.run_record()
    chosen = record.published()[0][0].slice_id
    given = {"run": record.run_id, "slice_ids": [chosen], "strategy": "up-weight"}
    do_work("repair", project, given, no_stage_progress)
    first = current_folder(project.store, project.run_record())
    result = loop.repair(project, no_stage_progress, run=record.run_id)
    repaired = project.run_record()
    second = current_folder(project.store, repaired)
    assert result["n_repairs"] == 1
    assert first is not None
    assert second is not None
    assert first.exists()
    assert first != second
    assert {"repaired_head.safetensors", "plan.json", "README.txt", "training_weights.csv"} <= {
        one.name for one in second.iterdir()
    }
    assert any(file.startswith(f"{EXPORTED}/") for file in repaired.repairs[0].files)
    assert not any(str(project.folder) in file for file in repaired.repairs[0].files)
    assert repaired.repairs[0].plan.repairer == "slice-balanced"


def test_report__run__written_beside_the_record(project):
    result = loop.report(project, no_stage_progress)
    assert result["files"] == ["report.html", "report.md", "report.json"]
    assert (project.store.runs.folder / str(result["run_id"]) / "report.html").is_file()
