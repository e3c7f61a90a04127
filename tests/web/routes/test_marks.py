"""Marks as pages use them: on one, on many, on all of a filter; they count only when they are applied, and never where nobody looks."""

import csv
import io
import json
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from tests.web.conftest import TOKEN, browser, entered

from weakspot.core.dataset import Split, as_given
from weakspot.project.project import Project
from weakspot.run.halves import used_rows
from weakspot.store.corrections import CORRECTIONS_FILE
from weakspot.web.application import create_app
from weakspot.web.services.workspace import Workspace


@pytest.fixture
def discs(owner):
    """Three wrong discs of the discovery half, as a page lists them."""
    page = owner.get("/api/images", params={"label": "disc", "result": "wrong", "limit": 3}).json()
    return page["tables"], page["images"]


def _mark(client, tables, images, *, seen=None, **said):
    body = {"rows": [one["row"] for one in images], "tables": tables, **said}
    headers = {} if seen is None else {"X-Seen-Change": str(seen)}
    return client.post("/api/marks", json=body, headers=headers)


def _total(client, **query):
    return client.get("/api/images", params=query).json()["total"]


def test_add_mark__three_labels__filter_list_and_download_name_them(owner, discs):
    tables, images = discs
    answer = _mark(owner, tables, images, kind="label", labels=["square"])
    assert answer.status_code == 200, answer.text
    assert answer.json()["sentence"] == "Marked 3 images: label is wrong, it is square"
    assert answer.headers["X-Change"] == "1"
    assert _total(owner, mark="label") == _total(owner, mark="any") == 3
    assert _total(owner, mark="none") == _total(owner) - 3
    listed = owner.get("/api/images", params={"mark": "label"}).json()["images"]
    assert {one["marks"][0] for one in listed} == {"label is wrong, it is square"}
    text = owner.get("/api/marks/files/csv").text
    lines = list(csv.DictReader(io.StringIO(text)))
    assert {line["file"] for line in lines} == {one["name"] for one in images}
    assert {(line["label"], line["right_label"], line["by"]) for line in lines} == {
        ("disc", "square", "owner")
    }
    assert all(line["path"].endswith(line["file"]) for line in lines)


def test_add_mark__all_of_a_filter__with_a_tag(owner):
    asked = {"query": {"label": "disc", "result": "wrong"}, "kind": "tag", "text": "look again"}
    n_wrong = _total(owner, label="disc", result="wrong")
    assert owner.post("/api/marks", json=asked).json()["n_samples"] == n_wrong
    assert _total(owner, mark="tag:look again") == n_wrong
    assert owner.get("/api/image-choices").json()["tags"] == ["look again"]
    removal = {"query": {"mark": "tag"}, "kind": "tag", "text": "look again"}
    assert owner.post("/api/marks/removal", json=removal).status_code == 200
    assert _total(owner, mark="any") == 0


def test_add_mark__longest_tag__can_be_asked_for(owner, discs):
    tag = "x" * 500
    assert _mark(owner, *discs, kind="tag", text=tag).is_success
    assert _total(owner, mark=f"tag:{tag}") == 3


def test_add_mark__somebody_was_faster__409_with_what_they_did(owner, discs):
    tables, images = discs
    assert _mark(owner, tables, images[:1], seen=0, kind="label", labels=["square"]).is_success
    refused = _mark(owner, tables, images, seen=0, kind="unusable")
    assert refused.status_code == 409
    assert "owner was faster" in refused.json()["what"]
    assert images[0]["name"] in refused.json()["what"]
    assert _total(owner, mark="unusable") == 0
    assert _mark(owner, tables, images, seen=1, kind="unusable").is_success


@pytest.mark.parametrize(
    ("said", "status", "what"),
    [
        ({"kind": "label", "labels": ["horse"]}, 422, "no class"),
        ({"kind": "label", "labels": ["disc", "square"]}, 422, "one label"),
        ({"kind": "note", "text": " "}, 422, "needs words"),
        ({"kind": "tag", "text": "two\nlines"}, 422, "one line"),
    ],
)
def test_add_mark__what_cannot_be_said__refused(owner, discs, said, status, what):
    answer = _mark(owner, *discs, **said)
    assert answer.status_code == status
    assert what in answer.json()["what"]


def test_add_mark__samples_that_nobody_may_look_at__refused_in_every_way(owner, parts, discs):
    workspace = parts.workspace
    hidden = int(workspace.confirmation.rows[0])
    body = {"rows": [hidden], "tables": discs[0], "kind": "unusable"}
    assert owner.post("/api/marks", json=body).status_code == 422
    assert owner.post("/api/selections", json=body | {"kind": None}).status_code == 422
    hidden_id = workspace.samples.dataset.sample_ids(np.array([hidden]))[0]
    assert owner.get(f"/api/sample-ids/{hidden_id}/marks").status_code == 404
    table = f"sample_id,right_label\n{hidden_id},square\n".encode()
    read = owner.post("/api/uploads/marks", files={"file": ("marks.csv", table)}).json()
    assert read == {"n_marked": 0, "n_same": 0, "n_unknown": 0, "n_unseen": 1}
    body["tables"] = "other"
    assert owner.post("/api/marks", json=body).status_code == 409


def test_add_mark__viewer__may_see_but_not_say(owner, parts, discs):
    tables, images = discs
    assert _mark(owner, tables, images, kind="note", text="a shadow").is_success
    viewer = entered(browser(create_app(replace(parts, is_read_only=True))), TOKEN)
    assert _mark(viewer, tables, images, kind="unusable").status_code == 403
    said = viewer.get(f"/api/sample-ids/{images[0]['sample_id']}/marks").json()["marks"]
    assert [(one["text"], one["by"]) for one in said] == [("a shadow", "owner")]
    assert "path" not in viewer.get("/api/marks/files/csv").text.split("\n")[0].split(",")
    assert viewer.get("/api/marks/files/cvat").status_code == 403


def test_apply__labels_and_unusable__count_from_then_on_and_can_be_undone(owner, parts, discs):
    tables, images = discs
    before = parts.workspace.confirmation_digest, parts.workspace.discovery.rows.tolist()
    given = parts.workspace.samples.dataset.labels.tolist()
    assert owner.post("/api/marks/apply").status_code == 422
    _mark(owner, tables, images[:2], kind="label", labels=["square"])
    _mark(owner, tables, images[2:], kind="unusable")
    assert parts.workspace.tables_key == tables
    assert owner.get("/api/marks").json()["n_waiting"] == 3
    assert owner.post("/api/marks/apply").json()["n_applied"] == 3
    assert parts.workspace.tables_key != tables
    found = parts.workspace.samples.dataset
    rows = [one["row"] for one in images]
    square = found.class_code("square")
    assert found.labels[rows].tolist() == [square, square, -1]
    assert as_given(found).labels.tolist() == given
    assert parts.workspace.confirmation_digest == before[0]
    assert parts.workspace.discovery.rows.tolist() == [one for one in before[1] if one != rows[2]]
    shown = owner.get(f"/api/sample-ids/{images[0]['sample_id']}").json()
    assert (shown["labels"], shown["given_labels"]) == (["square"], ["disc"])
    inputs = parts.workspace.prepared.inputs["samples"]
    assert inputs == parts.workspace.tables_key
    assert (parts.workspace.project.folder / CORRECTIONS_FILE).exists()
    newest = owner.get("/api/activity").json()["done"][0]
    assert newest["sentence"] == "Applied 2 corrected labels, took out 1 unusable images"
    assert owner.post("/api/activity/undo", json={"item": newest["item"]}).is_success
    assert parts.workspace.tables_key == tables
    assert not (parts.workspace.project.folder / CORRECTIONS_FILE).exists()


def test_apply__cross_fitted_runs__labels_that_prove_are_left_alone(own_folder, parts, owner):
    path = own_folder / "weakspot.toml"
    text = path.read_text()
    text = text if "[verify]" in text else f"{text}\n[verify]\n"
    path.write_text(text.replace("[verify]", '[verify]\nscheme = "cross-fit"'))
    crossed = replace(parts, workspace=Workspace(Project.open(own_folder)))
    client = entered(browser(create_app(crossed)), TOKEN)
    tables = crossed.workspace.tables_key
    proving = int(used_rows(crossed.workspace.samples, crossed.workspace.project.settings)[0])
    training = int(crossed.workspace.samples.dataset.rows_of(Split.TRAIN)[0])
    for row in (proving, training):
        _mark(client, tables, [{"row": row}], kind="unusable")
    found = client.get("/api/marks").json()
    assert (found["n_waiting"], found["n_of_proof"]) == (1, 1)


def test_download_marks__other_tools__their_own_readers_bring_them_back(owner, parts, discs):
    tables, images = discs
    _mark(owner, tables, images[:2], kind="label", labels=["square"])
    _mark(owner, tables, images[2:], kind="note", text="half of it is missing")
    archive = zipfile.ZipFile(io.BytesIO(owner.get("/api/marks/files/label-studio").content))
    tasks = json.loads(archive.read("tasks.json"))
    versions = [task["predictions"][0]["model_version"] for task in tasks]
    assert versions.count("marks of weakspot") == 2
    assert any("half of it is missing (owner)" in task["data"]["why"] for task in tasks)
    for task in tasks:
        task["annotations"] = [{"result": task["predictions"][0]["result"]}]
    owner.post("/api/marks/removal", json={"query": {"mark": "any"}})
    answered = json.dumps(tasks).encode()
    read = owner.post(
        "/api/uploads/marks", params={"tool": "label-studio"}, files={"file": ("x.json", answered)}
    )
    assert read.json()["n_marked"] >= 2, read.text
    assert _total(owner, mark="label") == read.json()["n_marked"]
    cvat = zipfile.ZipFile(io.BytesIO(owner.get("/api/marks/files/cvat").content))
    assert len([name for name in cvat.namelist() if name.startswith("images/")]) >= 2
    cleanlab = zipfile.ZipFile(io.BytesIO(owner.get("/api/marks/files/cleanlab").content))
    assert "marked_issues.parquet" in cleanlab.namelist()


def test_upload_marks__own_table__comes_back_as_it_left(owner, discs):
    tables, images = discs
    _mark(owner, tables, images[:1], kind="label", labels=["square"])
    _mark(owner, tables, images[1:2], kind="unusable")
    _mark(owner, tables, images, kind="tag", text="=dangerous")
    table = owner.get("/api/marks/files/csv").content
    owner.post("/api/marks/removal", json={"query": {"mark": "any"}})
    assert _total(owner, mark="any") == 0
    read = owner.post("/api/uploads/marks", files={"file": ("marks.csv", table)}).json()
    assert read["n_marked"] == 5
    counts = {"label": 1, "unusable": 1, "note": 0, "tag": 3}
    assert owner.get("/api/marks").json()["counts"] == counts
    assert _total(owner, mark="tag:=dangerous") == 3
    nonsense = owner.post("/api/uploads/marks", files={"file": ("marks.csv", b"\xff\xfe")})
    assert nonsense.status_code == 422
    assert owner.post("/api/uploads/marks", files={"file": ("m.csv", b"a\n1\n")}).status_code == 422


def test_upload_marks__words_on_several_lines_or_too_many__one_line_and_no_accident(owner, discs):
    _, images = discs
    identity = images[0]["sample_id"]
    lines = [("note", "two\nlines\x00 of it"), ("tag", "'so called'"), ("tag", "'=sum")]
    stream = io.StringIO()
    csv.writer(stream).writerows(
        [("sample_id", "mark", "text"), *((identity, *one) for one in lines)]
    )
    read = owner.post("/api/uploads/marks", files={"file": ("m.csv", stream.getvalue().encode())})
    assert read.json()["n_marked"] == 3, read.text
    said = owner.get(f"/api/sample-ids/{identity}/marks").json()["marks"]
    assert sorted(one["text"] for one in said) == ["'so called'", "=sum", "two lines of it"]
    large = f"sample_id,mark,text\n{identity},note,{'x' * 200_000}\n".encode()
    assert owner.post("/api/uploads/marks", files={"file": ("m.csv", large)}).status_code == 422


def test_pick_out__rows__are_an_address_that_everybody_sees(owner, discs):
    tables, images = discs
    body = {"rows": [one["row"] for one in images], "tables": tables}
    name = owner.post("/api/selections", json=body).json()["selection_id"]
    assert _total(owner, selection=name) == 3
    rows = owner.get("/api/image-rows", params={"selection": name}).json()
    assert rows["total"] == 3
    listed = owner.get("/api/image-list", params={"selection": name}).text
    assert all(one["name"] in listed for one in images)
    assert owner.get("/api/images", params={"selection": "0" * 16}).status_code == 422
