import csv

import pytest
from tests.build import write_captioned_table

import weakspot
from weakspot.core.dataset import Split
from weakspot.core.errors import ModelError
from weakspot.project.project import Project
from weakspot.repair.collecting import COLLECT_INSTEAD, FOLDER
from weakspot.repair.stage import RepairRequest
from weakspot.run.settings import Settings

METHODS = {"discover": {"methods": ["words"]}, "verify": {"scheme": "cross-fit"}}


def _verified(folder, path, **more):
    settings = Settings.model_validate({**METHODS, **more})
    project = Project.create(folder, data=str(path), settings=settings)
    project.ingest()
    record = project.verify(project.discover().run_id)
    assert "dog: rain" in {found.title for found, _ in record.published()}
    return project


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return write_captioned_table(tmp_path_factory.mktemp("table") / "table.csv")


@pytest.fixture(scope="module")
def project(table, tmp_path_factory):
    return _verified(tmp_path_factory.mktemp("project"), table)


def test_collect_instead__folder_of_the_run__replaced_by_the_next(project):
    first = project.repair()
    folder = project.store.runs.run_folder(first.run_id)
    assert [name for name in first.repairs[0].files if not (folder / name).is_file()] == []
    old = folder / FOLDER / "left-over.txt"
    old.write_text("old")
    again = project.repair()
    assert again.repairs[0].files == first.repairs[0].files
    assert not old.exists()


def test_collect_instead__folder_of_the_user__never_overwritten(project, tmp_path):
    request = RepairRequest(write_to=tmp_path / "out")
    record = project.repair(request=request)
    assert str(tmp_path / "out" / "to_collect.csv") in record.repairs[0].files
    with pytest.raises(ModelError, match="nothing is overwritten"):
        project.repair(request=request)


def test_collect_instead__needs__counted_by_hand(project, table):
    record = project.repair()
    need = next(one for one in record.repairs[0].needs if one.title == "dog: rain")
    with table.open(newline="") as stream:
        lines = [line for line in csv.DictReader(stream) if "rain" in line["caption"]]
    counts = {
        split: [line for line in lines if line["split"] == split] for split in ("train", "pool")
    }
    assert need.n_training == sum(line["label"] == "dog" for line in counts["train"])
    assert need.n_pool_labelled == sum(line["label"] == "dog" for line in counts["pool"])
    assert need.n_pool - need.n_pool_labelled == sum(not line["label"] for line in counts["pool"])
    _, evidence = next(one for one in record.published() if one[0].title == "dog: rain")
    assert need.n_evaluation == evidence.measured_on.n_samples
    gain = evidence.n_inside * (evidence.rate_inside - evidence.rate_outside)
    assert need.largest_gain == pytest.approx(gain / evidence.measured_on.n_samples)
    assert "does not divide the class into kinds" in need.why_no_estimate


def test_collect_instead__strategy_that_needs_features__others_and_a_note(table, tmp_path):
    project = _verified(tmp_path / "p", table, repair={"method": "pool-coreset", "budget": 20})
    result = project.repair().repairs[0]
    assert result.plan.repairer == "slice-balanced"
    assert any(note.startswith("Weights of pool-coreset are missing") for note in result.notes)


def test_collect_instead__no_training_rows_and_no_pool__plan_and_counts_alone(table, tmp_path):
    with table.open(newline="") as stream:
        lines = [line for line in csv.DictReader(stream) if line["split"] == "validation"]
    with (tmp_path / "table.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, fieldnames=list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)
    project = _verified(tmp_path / "p", tmp_path / "table.csv")
    assert len(project.samples().dataset.rows_of(Split.TRAIN)) == 0
    result = project.repair().repairs[0]
    assert {name.rsplit("/", 1)[-1] for name in result.files} == {
        "README.txt",
        "how_many.csv",
        "plan.json",
    }
    assert "There are no labelled training samples to weigh." in result.notes
    need = result.needs[0]
    assert (need.n_training, need.n_to_match, need.n_pool) == (None, None, 0)
    assert "no training rows" in need.why_no_estimate


def test_run__table__note_says_what_repair_would_write(table, tmp_path):
    settings = Settings.model_validate(METHODS)
    record = weakspot.Project.create(tmp_path / "p", data=str(table), settings=settings).run()
    assert record.repairs == ()
    assert [note.note.endswith(COLLECT_INSTEAD) for note in record.notes][-1]
