"""What can be repaired, what repairs did, and what can be taken away."""

import io
import shutil
import zipfile
from pathlib import Path

import pytest

from weakspot.app.browsing import loop_work
from weakspot.app.browsing.downloads import DownloadName, downloads, opened
from weakspot.app.browsing.repair_options import repair_options
from weakspot.app.browsing.repair_view import repair_results
from weakspot.app.browsing.workspace import Workspace
from weakspot.app.project import Project
from weakspot.core.errors import StoreError
from weakspot.core.run import no_stage_progress
from weakspot.report.repairs import repair_section


@pytest.fixture(scope="module")
def repaired(fruit_folder, tmp_path_factory) -> Workspace:
    project = Project.open(Path(shutil.copytree(fruit_folder, tmp_path_factory.mktemp("repaired") / "fruit")))
    loop_work.repair(project, {"is_comparison": True}, no_stage_progress)
    return Workspace(Project.open(project.folder))


def test_repair_options__fruit__slices_and_strategies_with_reasons(fruit_folder):
    workspace = Workspace(Project.open(fruit_folder))
    shown = repair_options(workspace)
    found, evidence = workspace.project.run_record().published()[0]
    assert [(one.slice_id, one.is_finding, one.inside.count) for one in shown.slices] == [
        (found.slice_id, True, evidence.failures_inside)
    ]
    strategies = {one.name: one for one in shown.strategies}
    assert shown.strategies[0].is_configured
    assert strategies["slice-balanced"].why_not == ""
    assert "pool" in strategies["pool-deepest"].why_not
    assert "groups" in strategies["group-dro"].why_not
    assert "synthetic" in strategies["synthetic"].why_not
    assert all(one.sentence for one in shown.strategies)
    assert (shown.why_not, shown.n_pool, "random choice" in shown.baselines) == ("", 0, True)


def test_repair_options__nothing_confirmed__says_so(fruit_folder, tmp_path):
    project = Project.open(Path(shutil.copytree(fruit_folder, tmp_path / "fruit")))
    project.store.runs.save(project.run_record().model_copy(update={"evidence": ()}))
    assert "nothing to repair" in repair_options(Workspace(project)).why_not


def test_repair_results__comparison__words_and_figures_of_the_report(repaired):
    record = repaired.project.run_record()
    shown = repair_results(repaired)
    section = repair_section(record.repairs[0])
    first = shown.repairs[0]
    assert [*first.sentences, *first.worse] == list(section.sentences)
    assert first.worse[0].startswith(("Got worse", "Lower", "No group got worse"))
    assert [arm.arm for arm in first.arms] == [arm.arm for arm in section.arms]
    overall = next(group for group in first.groups if group.kind == "overall")
    change = section.rows[0].after[0]
    assert change is not None
    assert overall.after[0] is not None
    assert (overall.after[0].right.count, overall.after[0].gained) == (change.right_after, change.gained)
    assert len(shown.comparison) > len(shown.repairs) > 2
    assert shown.comparison[0].is_chosen
    assert first.aftermath


def test_repair_results__nothing_repaired__empty(fruit_folder):
    shown = repair_results(Workspace(Project.open(fruit_folder)))
    assert (shown.repairs, shown.comparison, shown.note) == ([], [], "")


def test_downloads__repaired__head_plan_and_model_can_be_read(repaired):
    listed = {file.name: file for file in downloads(repaired).files}
    assert {DownloadName.HEAD, DownloadName.PLAN, DownloadName.MODEL, DownloadName.WEIGHTS, DownloadName.README} <= set(listed)
    head = b"".join(opened(repaired, DownloadName.HEAD).chunks())
    assert len(head) == listed[DownloadName.HEAD].size
    model = opened(repaired, DownloadName.MODEL)
    content = b"".join(model.chunks())
    assert len(content) == model.size
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["fruit_repaired.onnx"]


def test_downloads__plain_repair_of_the_command_line__head_alone(fruit_folder, tmp_path):
    project = Project.open(Path(shutil.copytree(fruit_folder, tmp_path / "fruit")))
    project.repair()
    workspace = Workspace(project)
    assert [file.name for file in downloads(workspace).files] == [DownloadName.HEAD]
    with pytest.raises(StoreError, match="no such file"):
        opened(workspace, DownloadName.PLAN)


def test_downloads__link_in_the_place_of_a_file__is_not_followed(fruit_folder, tmp_path):
    project = Project.open(Path(shutil.copytree(fruit_folder, tmp_path / "fruit")))
    record = project.repair()
    head = project.store.runs.folder / record.run_id / "repaired_head.safetensors"
    head.unlink()
    head.symlink_to(project.folder / "weakspot.toml")
    assert downloads(Workspace(project)).files == []
