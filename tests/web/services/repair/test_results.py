"""What can be repaired, what repairs did, and what can be taken away."""

import io
import shutil
import zipfile
from pathlib import Path

import pytest
from tests.build import write_captioned_table

from weakspot.core.errors import StoreError
from weakspot.core.evidence import ClassFinding, ClassFindingKind, Verdict
from weakspot.core.repairs import GroupKind
from weakspot.core.run import no_stage_progress
from weakspot.project.project import Project
from weakspot.report.repairs import repair_section
from weakspot.run.settings import Settings
from weakspot.web.services import loop
from weakspot.web.services.repair import (
    DownloadName,
    changed_images,
    chunks,
    downloads,
    go_back_to,
    open_download,
    repair_options,
    repair_results,
    results_of,
)
from weakspot.web.services.slice_editing import rename
from weakspot.web.services.slices import slice_page
from weakspot.web.services.workspace import Workspace

HANDED_BACK = [
    "repaired_head.safetensors",
    "repaired_model.zip",
    "plan.json",
    "training_weights.csv",
    "README.txt",
]
FOR_TABLES = [
    "to_collect.csv",
    "how_many.csv",
    "training_weights.csv",
    "weights.zip",
    "plan.json",
    "to_label.csv",
]


@pytest.fixture
def project(fruit_folder, tmp_path) -> Project:
    """A copy of the demo that a test may change."""
    return Project.open(Path(shutil.copytree(fruit_folder, tmp_path / "fruit")))


def _read(workspace: Workspace, name: DownloadName) -> bytes:
    stream, size = open_download(workspace, name)
    content = b"".join(chunks(stream))
    assert len(content) == size
    return content


@pytest.fixture(scope="module")
def repaired(fruit_folder, tmp_path_factory) -> Workspace:
    project = Project.open(
        Path(shutil.copytree(fruit_folder, tmp_path_factory.mktemp("repaired") / "fruit"))
    )
    loop.repair(project, no_stage_progress, is_comparison=True)
    return Workspace(Project.open(project.folder))


def test_repair_options__fruit__slices_and_strategies_with_reasons(fruit_folder):
    workspace = Workspace(Project.open(fruit_folder))
    shown = repair_options(workspace)
    found, evidence = workspace.project.run_record().published()[0]
    assert [(one.title, one.evidence, one.words.explained) for one in shown.slices] == [
        (found.title, evidence, "")
    ]
    strategies = {one.name: one for one in shown.strategies}
    assert shown.strategies[0].is_configured
    assert strategies["slice-balanced"].why_not == ""
    assert "pool" in strategies["pool-deepest"].why_not
    assert "groups" in strategies["group-dro"].why_not
    assert "synthetic" in strategies["synthetic"].why_not
    assert all(one.sentence for one in shown.strategies)
    assert (shown.why_not, shown.n_pool, "random choice" in shown.baselines) == ("", 0, True)


def test_repair_options__nothing_confirmed__says_so(project):
    project.store.runs.save(project.run_record().model_copy(update={"evidence": ()}))
    assert "nothing to repair" in repair_options(Workspace(project)).why_not


def test_repair_options__only_a_class_fails__it_can_be_repaired(project):
    finding = ClassFinding(
        kind=ClassFindingKind.WHOLE,
        class_name="apple",
        verdict=Verdict.CONFIRMED,
        sentence="apple fails as a whole",
    )
    changes = {"evidence": (), "class_findings": (finding,)}
    project.store.runs.save(project.run_record().model_copy(update=changes))
    shown = repair_options(Workspace(project))
    assert (shown.slices, shown.why_not, shown.only_collects) == ([], "", "")


def test_repair_results__comparison__words_and_figures_of_the_report(repaired):
    record = repaired.project.run_record()
    shown = repair_results(repaired)
    section = repair_section(record.repairs[0])
    first, told = shown.repairs[0], shown.repairs[0].section
    assert sorted([*told.sentences, *first.worse]) == sorted(section.sentences)
    assert first.worse[0].startswith(("Do not use", "Got worse", "Lower", "No group got worse"))
    assert [arm.arm for arm in told.arms] == [arm.arm for arm in section.arms]
    assert {arm.arm for arm in told.arms} | {row.strategy for row in shown.comparison} <= set(
        shown.names
    )
    assert (told.rows, told.accounting) == (section.rows, section.accounting)
    assert told.rows[0].kind == "overall"
    assert len(shown.comparison) > len(shown.repairs) > 2
    assert shown.comparison[0].is_chosen
    assert told.aftermath


def test_repair_results__written__without_places_of_files(repaired):
    assert repaired.project.run_record().repairs[0].files
    written = repair_results(repaired).model_dump_json()
    assert "handed-back" not in written
    assert str(repaired.project.folder) not in written


def test_repair_results__nothing_repaired__empty(fruit_folder):
    shown = repair_results(Workspace(Project.open(fruit_folder)))
    assert (shown.repairs, shown.comparison, shown.note) == ((), (), "")


def test_downloads__repaired__head_plan_and_model_can_be_read(repaired):
    listed = {file.name: file for file in downloads(repaired).files}
    assert set(map(DownloadName, HANDED_BACK)) <= set(listed)
    assert len(_read(repaired, DownloadName.HEAD)) == listed[DownloadName.HEAD].size
    with zipfile.ZipFile(io.BytesIO(_read(repaired, DownloadName.MODEL))) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["fruit_repaired.onnx"]


def test_downloads__plain_repair_of_the_command_line__head_alone(project):
    project.repair()
    workspace = Workspace(project)
    assert [file.name for file in downloads(workspace).files] == [DownloadName.HEAD]
    with pytest.raises(StoreError, match="no such file"):
        open_download(workspace, DownloadName.PLAN)


def test_repair__twice_then_renamed__both_are_kept_and_can_be_gone_back_to(project):
    found = project.run_record().published()[0][0]
    contents, names = [], (DownloadName.HEAD, DownloadName.PLAN)
    for strategy in ("slice-balanced", "plain"):
        loop.repair(Project.open(project.folder), no_stage_progress, strategy=strategy)
        workspace = Workspace(Project.open(project.folder))
        contents.append([_read(workspace, name) for name in names])
    assert contents[0] != contents[1]
    record = workspace.project.run_record()
    rename(workspace, record.run_id, found.slice_id, words="unripe ones", by="Ada")
    record = workspace.project.run_record()
    page = slice_page(workspace, record, record.slice_by_id(found.slice_id))
    assert [one.strategy for one in page.repairs] == ["plain", "slice-balanced"]
    shown = repair_results(workspace)
    assert [one.is_current for one in shown.kept] == [True, False]
    earlier = shown.kept[1]
    assert "unripe ones" in earlier.slices[0].title
    assert earlier.slices[0].n_samples == page.repairs[1].n_samples > 0
    _check_changed(workspace)
    back = go_back_to(workspace, earlier.repair_id)
    _check_changed(workspace)
    assert back.repairs[0].section.strategy == "slice-balanced"
    assert [one.is_current for one in back.kept] == [False, True]
    assert [_read(workspace, name) for name in names] == contents[0]


def _check_changed(workspace: Workspace) -> None:
    """Images that changed are of the discovery half, and as many as the repair measured there."""
    shown, half = changed_images(workspace), workspace.discovery
    arm = workspace.project.run_record().repairs[0].arms[0]
    there = next(one for one in arm.elsewhere if one.measured_on.digest == half.digest())
    overall = next(one for one in there.changes if one.kind is GroupKind.OVERALL)
    assert (shown.n_right_now, shown.n_broken) == (overall.gained, overall.lost)
    assert {image.row for image in [*shown.right_now, *shown.broken]} <= set(half.rows.tolist())
    assert all(image.is_failure for image in shown.right_now)
    assert not any(image.is_failure for image in shown.broken)


def test_downloads__link_in_the_place_of_a_file__is_not_followed(project):
    record = project.repair()
    head = project.store.runs.folder / record.run_id / "repaired_head.safetensors"
    head.unlink()
    head.symlink_to(project.folder / "weakspot.toml")
    assert downloads(Workspace(project)).files == []


def test_repair__table_without_images__offers_files_instead_of_a_dead_end(tmp_path):
    write_captioned_table(tmp_path / "table.csv")
    settings = Settings.model_validate(
        {"discover": {"methods": ["words"]}, "verify": {"scheme": "cross-fit"}}
    )
    project = Project.create(tmp_path / "t", data=str(tmp_path / "table.csv"), settings=settings)
    project.run()
    options = repair_options(Workspace(Project.open(project.folder)))
    assert options.why_not == ""
    assert "cannot be retrained here" in options.only_collects
    assert "dog: rain" in [one.title for one in options.slices]
    loop.repair(project, no_stage_progress)
    workspace = Workspace(Project.open(project.folder))
    shown = repair_results(workspace)
    assert shown.note == ""
    assert "“dog: rain” fails on" in shown.repairs[0].section.sentences[0]
    names = {one.name for one in downloads(workspace).files}
    assert set(map(DownloadName, FOR_TABLES)) <= names
    assert not {DownloadName.HEAD, DownloadName.MODEL} & names
    listed = _read(workspace, DownloadName.COLLECT).decode()
    assert listed.startswith("slice_id,slice,rank,sample_id,")
    with zipfile.ZipFile(io.BytesIO(_read(workspace, DownloadName.MORE_WEIGHTS))) as archive:
        assert "just-train-twice/training_weights.csv" in archive.namelist()


def test_repair_results__a_slice_made_worse_comes_before_all_else(repaired):
    record = repaired.project.run_record()
    arms = []
    for arm in record.repairs[0].arms:
        changes = [
            one.model_copy(update={"right_after": one.right_before - 1, "gained": 0, "lost": 1})
            if one.kind is GroupKind.SLICE
            else one
            for one in arm.changes
        ]
        arms.append(arm.model_copy(update={"changes": tuple(changes)}))
    worse = record.repairs[0].model_copy(update={"arms": tuple(arms)})
    shown = results_of(record.model_copy(update={"repairs": (worse,)})).repairs[0]
    assert shown.worse[0].startswith("Do not use this repair")
    assert not any("Do not use" in one for one in shown.section.sentences)
