"""The first page: figures of the record, words of the report."""

import shutil

import numpy as np
import pytest
from PIL import Image

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.errors import StoreError
from weakspot.core.run import Advice, AdviceKind
from weakspot.project.project import Project
from weakspot.report.document import build_document
from weakspot.run.settings import Settings
from weakspot.store.project import ProjectStore
from weakspot.web.services.overview import (
    OTHERS,
    confusion,
    discoverer_choices,
    missing_notice,
    overview,
    run_facts,
    run_list,
    worst_images,
)
from weakspot.web.services.workspace import Workspace


@pytest.fixture(scope="module")
def workspace(fruit_folder) -> Workspace:
    return Workspace(Project.open(fruit_folder))


def test_overview__newest_run__numbers_of_the_record_and_words_of_the_report(workspace):
    record = workspace.project.run_record()
    shown, document = overview(workspace), build_document(record)
    assert (shown.run.headline, shown.run.summary) == (document.headline, list(document.summary))
    found, evidence = record.published()[0]
    worst = shown.run.worst[0]
    assert (worst.title, worst.evidence) == (found.title, evidence)
    assert worst.words.sentence == document.findings[0].sentence
    right = shown.run.accuracy
    assert (right.total - right.count, right.total) == (record.classifier.n_failed, 320)
    assert shown.splits == {"train": 160, "validation": 320, "test": 160}
    assert shown.discovery.total == len(workspace.discovery)
    assert shown.discovery.count == sum(problem.n_right for problem in workspace.problems.values())
    assert (shown.project, shown.n_quarantined, shown.has_report) == ("fruit", 0, False)
    assert shown.asked == [workspace.ledger.standing().sentence]
    assert shown.missing == ""


def test_overview__images_gone__said_without_the_place(fruit_folder, tmp_path):
    folder = tmp_path / "fruit"
    shutil.copytree(fruit_folder, folder, ignore=shutil.ignore_patterns("*.png", "*.jpg"))
    workspace = Workspace(Project.open(folder))
    assert "None of 60 images" in missing_notice(workspace)
    assert str(tmp_path) not in missing_notice(workspace)
    assert str(tmp_path) in workspace.missing_images().notice


def test_overview__confusion__counts_all_evaluated_samples(workspace):
    table = overview(workspace).confusion
    assert table.titles == ["apple", "pear"]
    assert np.sum(table.counts) == table.n_samples == 320
    facts = workspace.project.run_record().classifier.per_class
    assert (table.counts[0][1], table.counts[1][0]) == (facts["apple"][1], facts["pear"][1])


def test_overview__unknown_run__refused(workspace):
    with pytest.raises(StoreError, match="no such run"):
        overview(workspace, "nothing")


def test_overview__run_written_again__shown_as_it_is_now(fruit_folder, tmp_path):
    project = Project.open(shutil.copytree(fruit_folder, tmp_path / "fruit"))
    workspace = Workspace(project)
    assert overview(workspace).run is not None
    record = project.run_record()
    # What a work advises names the place of the project, which those who look need not know.
    command = f"weakspot repair -p {tmp_path}/fruit --compare"
    advice = Advice(kind=AdviceKind.RETRAIN, sentence=f"see {tmp_path}/fruit/next", command=command)
    project.store.runs.save(record.model_copy(update={"evidence": (), "advice": (advice,)}))
    shown = overview(workspace).run
    assert shown.worst == []
    assert shown.headline.startswith("No slice was found to test")
    (todo,) = shown.answer.to_do
    assert (todo.sentence, todo.command) == ("see fruit/next", "weakspot repair -p fruit --compare")


def test_overview__no_run__says_what_is_there_without_any_model(tmp_path):
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    (tmp_path / "manifest.csv").write_text("path,label,split\na.png,apple,validation\n")
    (tmp_path / "weakspot.toml").write_text(
        '[data]\nsource = "manifest.csv"\n[classifier]\nname = "onnx"\noptions = {path = "no"}\n'
    )
    project = Project.open(tmp_path)
    ProjectStore.create(tmp_path)
    before = overview(Workspace(project))
    assert (before.run, before.splits) == (None, {})
    project.ingest()
    shown = overview(Workspace(project))
    assert (shown.run, shown.confusion, shown.n_classes) == (None, None, 1)
    assert shown.splits == {"validation": 1}


def test_run_facts__many_slices__methods_are_counted(workspace):
    record = workspace.project.run_record()
    method, n_published = run_facts(record).methods[0], len(record.published())
    told = method.method, method.n_found, method.n_confirmed
    assert told == ("directions", len(record.slices), n_published)


def test_run_list__one_run__figures_of_the_record(workspace):
    record = workspace.project.run_record()
    (run,) = run_list(workspace)
    told = run.run_id, run.n_slices, run.n_published, run.is_repaired
    assert told == (record.run_id, len(record.slices), 1, False)


def test_worst_images__confirmed_slice__failures_of_the_discovery_half(workspace):
    record = workspace.project.run_record()
    shown = worst_images(workspace, record.run_id)
    found = record.published()[0][0]
    strips = shown.slices[found.slice_id]
    assert shown.tables == workspace.tables_key
    assert (len(strips["fails"]), len(strips["rest"])) == (6, 8)
    half = set(workspace.discovery.rows.tolist())
    assert {one.row for one in [*strips["fails"], *strips["rest"]]} <= half
    fails = {(one.label, one.answer, one.is_failure) for one in strips["fails"]}
    assert fails == {("apple", "pear", True)}
    members = set(found.members(workspace.samples_for(record)).tolist())
    assert {one.row for one in strips["fails"]} <= members
    assert not {one.row for one in strips["rest"]} & members
    assert {one.label for one in strips["rest"]} == {"apple"}


def test_discoverer_choices__defaults__configured_one_is_marked_and_baselines_are_left_out():
    found = {one.name: one for one in discoverer_choices(Settings())}
    assert found["directions"].is_configured
    assert not found["keywords"].is_configured
    assert found["hypothesis"].why_not
    assert "loss" not in found
    assert all(one.sentence for one in found.values())


def test_confusion__many_classes__most_confused_alone_and_the_rest_as_one():
    names = [f"class {number}" for number in range(100)]
    labels = np.repeat(np.arange(100), 10)
    said = labels.copy()
    said[labels == 7] = 8
    dataset = dataset_from_columns(
        class_names=names, labels=labels, splits=["validation"] * 1000, predictions=said
    )
    table = confusion(dataset, ("validation",))
    assert (len(table.titles), table.titles[-1], table.n_classes) == (31, OTHERS, 100)
    seven, eight = table.titles.index("class 7"), table.titles.index("class 8")
    counts = table.counts
    assert (counts[seven][eight], counts[seven][seven], counts[-1][-1]) == (10, 0, 700)
    assert np.sum(table.counts) == 1000


def test_confusion__several_labels__none():
    dataset = dataset_from_columns(class_names=["a"], label_lists=[[0]], splits=["validation"])
    assert confusion(dataset, ("validation",)) is None
