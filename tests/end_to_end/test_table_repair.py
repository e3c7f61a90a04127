"""A new user with a table: no image, no embedding, no classifier; words and columns are confirmed, and `repair` gives files."""

import csv
import json

import pytest
from tests.build import write_captioned_table
from typer.testing import CliRunner

from weakspot.cli.main import app
from weakspot.project.project import Project
from weakspot.repair.stage import RepairRequest

ENVIRONMENT = {"COLUMNS": "100", "NO_COLOR": "1"}


def _weakspot(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments], env=ENVIRONMENT)


def _lines(path):
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture(scope="module")
def table_project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("table")
    write_captioned_table(folder / "table.csv")
    assert _weakspot("init", folder / "t", "--data", folder / "table.csv").exit_code == 0
    done = _weakspot("run", "-p", folder / "t", "--method", "words", "--method", "attributes")
    assert done.exit_code == 0, done.output
    assert "dog: rain" in done.output
    assert "cat: green" in done.output
    return folder / "t"


@pytest.fixture(scope="module")
def written(table_project, tmp_path_factory):
    folder = tmp_path_factory.mktemp("home") / "repair"
    done = _weakspot("repair", "-p", table_project, "--write-to", folder)
    assert done.exit_code == 0, done.output
    return folder, done.output


def test_repair__every_file_that_makes_sense_without_a_layer(written):
    folder, said = written
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert files == {
        "README.txt",
        "how_many.csv",
        "plan.json",
        "to_collect.csv",
        "training_rows.txt",
        "training_weights.csv",
        "weights/just-train-twice/training_rows.txt",
        "weights/just-train-twice/training_weights.csv",
        "weights/worst-slice/group_objectives.json",
        "weights/worst-slice/training_rows.txt",
        "weights/worst-slice/training_weights.csv",
    }
    readme = (folder / "README.txt").read_text(encoding="utf-8")
    assert "Nothing was retrained" in readme
    assert "“dog: rain” fails on" in said
    assert "cannot be estimated" in said
    assert "to_label.csv" in said


def test_repair__pool_rows_fit_their_slice_and_come_in_order(written, table_project):
    folder, _ = written
    lines = _lines(folder / "to_collect.csv")
    wet = [line for line in lines if line["slice"] == "dog: rain"]
    assert len(wet) > 30
    assert all("rain" in line["column caption"] for line in wet)
    assert {line["label"] for line in wet} == {"dog", ""}
    assert [int(line["rank"]) for line in wet] == list(range(1, len(wet) + 1))
    order = [(line["label"] == "", line["is_wrong"] == "no") for line in wet]
    assert order == sorted(order)
    pool = [line for line in _lines(table_project.parent / "table.csv") if line["split"] == "pool"]
    fitting = [line for line in pool if "rain" in line["caption"] and line["label"] != "cat"]
    assert len(wet) == len(fitting)
    assert {line["is_wrong"] for line in wet if not line["label"]} == {""}


def test_repair__weights__slices_weigh_as_much_as_the_rest_and_wrong_rows_more(
    written, table_project
):
    folder, _ = written
    weights = {
        line["sample_id"]: float(line["weight"]) for line in _lines(folder / "training_weights.csv")
    }
    samples = Project.open(table_project).samples()
    dataset = samples.dataset
    ids = dataset.sample_ids()
    (wet,) = [
        one
        for one in Project.open(table_project).run_record().findings()
        if one.title == "dog: rain"
    ]
    dogs = [row for row, name in enumerate(ids) if name in weights and dataset.labels[row] == 1]
    members = set(wet.members(samples).tolist())
    inside = sum(weights[ids[row]] for row in dogs if row in members)
    outside = sum(weights[ids[row]] for row in dogs if row not in members)
    assert inside == pytest.approx(outside, rel=1e-3)
    twice = {
        line["sample_id"]: float(line["weight"])
        for line in _lines(folder / "weights" / "just-train-twice" / "training_weights.csv")
    }
    rows = [row for row, name in enumerate(ids) if name in twice]
    wrong = {twice[ids[row]] for row in rows if dataset.predictions[row] != dataset.labels[row]}
    right = {twice[ids[row]] for row in rows if dataset.predictions[row] == dataset.labels[row]}
    assert wrong.pop() == pytest.approx(5 * right.pop())
    assert not wrong
    assert not right


def test_repair__how_many__every_figure_says_what_it_is(written):
    folder, _ = written
    lines = _lines(folder / "how_many.csv")
    kinds = {line["kind"].split(":")[0] for line in lines}
    assert kinds <= {"measured", "counted", "estimate", "cannot be estimated"}
    rain = {line["what"]: line for line in lines if line["slice"] == "dog: rain"}
    assert rain["pool rows that fit"]["kind"] == "counted"
    assert rain["failure rate inside"]["kind"] == "measured"
    green = {line["what"]: line["value"] for line in lines if line["slice"] == "cat: green"}
    assert int(green["rows to add for the share that it has in evaluation"]) > 20


def test_repair__labels_come_back__rows_count_as_labelled(table_project, tmp_path):
    record = Project.open(table_project).repair()
    before = {need.title: need.n_pool_labelled for need in record.repairs[0].needs}
    request = record.repairs[0].labelling
    assert request is not None
    listed = Project.open(table_project).store.runs.run_folder(record.run_id) / request.file
    lines = _lines(listed)
    filled = tmp_path / "filled.csv"
    with filled.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, fieldnames=list(lines[0]))
        writer.writeheader()
        writer.writerows([{**line, "label": "dog"} for line in lines])
    again = Project.open(table_project).repair(request=RepairRequest(labels=filled))
    after = {need.title: need.n_pool_labelled for need in again.repairs[0].needs}
    assert after["dog: rain"] > before["dog: rain"]
    assert again.repairs[0].labelling is None


def test_repair__json__needs_are_in_it(table_project):
    done = _weakspot("repair", "-p", table_project, "--gain", "10", "--json")
    assert done.exit_code == 0
    needs = json.loads(done.stdout)["repairs"][0]["needs"]
    assert {need["title"] for need in needs} >= {"dog: rain", "cat: green"}
    assert all(need["estimates"] or need["why_no_estimate"] for need in needs)


def test_repair__nothing_confirmed__not_zero_and_says_why(tmp_path):
    write_captioned_table(tmp_path / "table.csv", n_rows=150, is_bad=False)
    assert _weakspot("init", tmp_path / "t", "--data", tmp_path / "table.csv").exit_code == 0
    assert _weakspot("run", "-p", tmp_path / "t", "--method", "words").exit_code == 0
    done = _weakspot("repair", "-p", tmp_path / "t")
    assert done.exit_code == 1
    assert "No slice was confirmed" in done.output
