import json
import re
import shutil

import pytest
from PIL import Image

from weakspot.core.errors import ConfigError, StoreError
from weakspot.project.project import Project
from weakspot.web.auth.login import add_person
from weakspot.web.services.studies import PhraseFigures
from weakspot.web.services.workspace import Workspace
from weakspot.web.state.store import StateStore
from weakspot.web.state.studies import keep_phrase
from weakspot.web.static import MARKER, READER, ExportRequest, answer_key, export_static

SECRET = """
[generator]
name = "endpoint"
[generator.options]
url = "https://me:swordfish@drawing.example/v1"
api_key = "hunter2"
"""
INDEX = '<!doctype html><html><head><script defer src="./assets/app.js"></script></head><body></body></html>'


@pytest.fixture(scope="session")
def built_pages(tmp_path_factory):
    """Pages as the build leaves them."""
    folder = tmp_path_factory.mktemp("built")
    (folder / "assets").mkdir()
    (folder / "assets" / "app.js").write_text("")
    (folder / "index.html").write_text(INDEX)
    return folder


@pytest.fixture(scope="session")
def told_folder(planted_folder, tmp_path_factory):
    """The planted project with a secret and a phrase that somebody said."""
    folder = shutil.copytree(planted_folder, tmp_path_factory.mktemp("told") / "shapes")
    text = (folder / "weakspot.toml").read_text()
    (folder / "weakspot.toml").write_text(text + SECRET)
    return folder


def _export(project, folder, pages, **changes):
    request = ExportRequest(project=project, folder=folder, pages=pages, **changes)
    return export_static(request, say=lambda _text: None)


@pytest.fixture(scope="session")
def exported(told_folder, built_pages, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported") / "pages"
    return _export(told_folder, folder, built_pages, most_samples=60), folder


@pytest.fixture(scope="session")
def content(exported):
    return read_export(exported[1])


def read_export(folder):
    """What the scripts of an export set."""
    made = {}
    for path in sorted((folder / "data").glob("*.js")):
        for text in re.findall(r"JSON\.parse\((\".*\")\)", path.read_text()):
            part = json.loads(json.loads(text))
            if "answers" in part and "images" in part:
                made = part
            else:
                made["answers"].update(part)
    return made


def test_export__answers_are_the_servers_own(content, owner, parts):
    shown = ["slices", "repair/results", "attributes", "classes/samples?title=disc"]
    shown += ["map?layout=pca", "overview", f"overview?run={parts.workspace.record().run_id}"]
    for path in shown:
        assert content["answers"][f"/api/{path}"] == owner.get(f"/api/{path}").json(), path


def test_export__scores_of_suggested_phrases_are_there(content):
    suggested = content["answers"]["/api/classes/suggestions?title=disc"]["words"]
    assert suggested
    body = {"is_submitted": False, "limit": 200_000, "offset": 0, "source": "own", "title": "disc"}
    key = answer_key("/api/classes/phrase", [], body | {"phrase": suggested[0]["words"]})
    assert content["answers"][key]["score"] == pytest.approx(suggested[0]["score"])


def test_export__reader_is_a_viewer_who_changes_nothing(content):
    session = content["answers"]["/api/session"]
    assert session["person"]["role"] == "viewer"
    assert session["is_read_only"] is True
    assert session["csrf_token"] == ""


def test_export__images_of_samples_as_files(exported, content):
    summary, folder = exported
    assert len(content["images"]) == summary.n_images == 60
    written = [int(path.stem) for path in (folder / "images").glob("*.jpg")]
    assert sorted(written) == sorted(content["images"])
    with Image.open(folder / "images" / f"{content['images'][0]}.jpg") as image:
        assert max(image.size) <= 160
    assert any("60 of 900 samples" in note for note in summary.notes)
    tables = content["answers"]["/api/map?layout=pca"]["tables"]
    row = content["images"][0]
    assert content["answers"][f"/api/samples/{row}?tables={tables}"]["row"] == row


def test_export__no_secret_and_no_path_leaves_the_machine(exported, told_folder):
    _, folder = exported
    for path in folder.rglob("*"):
        if path.suffix in (".js", ".html", ".json"):
            text = path.read_text()
            places = str(told_folder), str(told_folder.parent), "manifest.csv"
            for hidden in ("hunter2", "swordfish", *places):
                assert hidden not in text, (path.name, hidden)
            # Names of files are shown, with folders of the project itself; where that lies is not.
            assert not re.search(r"\"(/|[A-Za-z]:)[^\"]*\.png", text), path.name


def test_export__scripts_come_before_the_pages_own(exported):
    html = (exported[1] / "index.html").read_text()
    assert re.findall(r'src="([^"]+)"', html) == ["./data/data-0.js", "./assets/app.js"]
    assert (exported[1] / "assets" / "app.js").exists()


def test_export__project_is_not_changed(exported, told_folder):
    assert not (told_folder / ".weakspot" / "browser.sqlite").exists()


def test_export__history_of_phrases_comes_from_a_copy_of_the_state(
    own_folder, built_pages, tmp_path
):
    state = StateStore.beside(Project.open(own_folder).store.data)
    with state.writing() as rows:
        add_person(rows, person_id=READER.person_id, name=READER.name, role=READER.role)
    earlier = PhraseFigures(
        class_title="disc", phrase="said before", threshold=None, score=0.5, held_out_score=0.4
    )
    keep_phrase(state, READER, earlier, study_id=None)
    state.close()
    _export(own_folder, tmp_path / "out", built_pages, most_samples=0)
    answers = read_export(tmp_path / "out")["answers"]
    [kept] = answers["/api/classes/history?title=disc"]["phrases"]
    assert kept["phrase"] == "said before"
    assert any('"phrase":"said before"' in key for key in answers)


def test_export__little_room__leaves_out_and_says_so(told_folder, built_pages, tmp_path):
    summary = _export(told_folder, tmp_path / "out", built_pages, most_megabytes=0.06)
    written = [path for kind in ("images", "data") for path in (tmp_path / "out" / kind).iterdir()]
    assert sum(path.stat().st_size for path in written) < 200_000
    assert any("left out" in note for note in summary.notes)


def test_export__folder_that_holds_something__refused(told_folder, built_pages, tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    for is_forced in (False, True):
        with pytest.raises(ConfigError, match="holds something else"):
            _export(told_folder, tmp_path, built_pages, is_forced=is_forced)
    assert (tmp_path / "letter.txt").read_text() == "dear"


def test_export__earlier_export__replaced_only_if_forced(told_folder, built_pages, tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / MARKER).write_text("{}")
    (folder / "old.txt").write_text("old")
    with pytest.raises(ConfigError, match="earlier export"):
        _export(told_folder, folder, built_pages, most_samples=0)
    _export(told_folder, folder, built_pages, most_samples=0, is_forced=True)
    assert not (folder / "old.txt").exists()
    assert (folder / "index.html").exists()


def test_export__pages_not_built__says_how(told_folder, tmp_path):
    with pytest.raises(ConfigError, match="not built") as caught:
        _export(told_folder, tmp_path / "out", tmp_path)
    assert "build_pages" in str(caught.value.fix)


def test_export__unknown_run__nothing_is_written(told_folder, built_pages, tmp_path):
    with pytest.raises(StoreError):
        _export(told_folder, tmp_path / "out", built_pages, run_id="20200101T000000.000000-ffffff")
    assert not (tmp_path / "out").exists()


def test_export__project_without_runs__pages_say_so(told_folder, built_pages, tmp_path):
    bare = shutil.copytree(told_folder, tmp_path / "bare")
    shutil.rmtree(bare / ".weakspot" / "runs")
    assert Workspace(Project.open(bare)).record() is None
    _export(bare, tmp_path / "out", built_pages, most_samples=5)
    answers = read_export(tmp_path / "out")["answers"]
    assert answers["/api/overview"]["run"] is None
