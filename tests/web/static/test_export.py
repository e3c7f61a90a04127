import json
import re
import shutil

import pytest
from PIL import Image

from weakspot.core.errors import ConfigError, StoreError
from weakspot.project.project import Project
from weakspot.web.auth.login import add_person
from weakspot.web.services.workspace import Workspace
from weakspot.web.state.store import StateStore
from weakspot.web.static import MARKER, ExportRequest, export_static

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


@pytest.fixture(scope="session")
def exported(told_folder, built_pages, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported") / "pages"
    request = ExportRequest(project=told_folder, folder=folder, pages=built_pages, most_samples=60)
    return export_static(request, say=lambda _text: None), folder


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
    for key in (
        "/api/slices",
        "/api/repair/results",
        "/api/attributes",
        "/api/classes/samples?title=disc",
        "/api/map?layout=pca",
    ):
        assert content["answers"][key] == owner.get(key).json(), key
    run_id = parts.workspace.record().run_id
    overview = owner.get("/api/overview").json()
    assert (
        content["answers"]["/api/overview"]
        == content["answers"][f"/api/overview?run={run_id}"]
        == overview
    )


def test_export__scores_of_suggested_phrases_are_there(content):
    suggested = content["answers"]["/api/classes/suggestions?title=disc"]["words"]
    assert suggested
    body = {
        "is_submitted": False,
        "limit": 200_000,
        "offset": 0,
        "phrase": suggested[0]["words"],
        "source": "own",
        "title": "disc",
    }
    key = f"POST /api/classes/phrase {json.dumps(body, separators=(',', ':'))}"
    assert content["answers"][key]["score"] == pytest.approx(suggested[0]["score"])


def test_export__reader_is_a_viewer_who_changes_nothing(content):
    session = content["answers"]["/api/session"]
    assert session["person"]["role"] == "viewer"
    assert session["is_read_only"] is True
    assert session["csrf_token"] == ""


def test_export__images_of_samples_as_files(exported, content):
    summary, folder = exported
    assert len(content["images"]) == summary.n_images == 60
    assert sorted(int(path.stem) for path in (folder / "images").glob("*.jpg")) == sorted(
        content["images"]
    )
    with Image.open(folder / "images" / f"{content['images'][0]}.jpg") as image:
        assert max(image.size) <= 160
    assert any("60 of 900 samples" in note for note in summary.notes)
    tables = content["answers"]["/api/map?layout=pca"]["tables"]
    assert (
        content["answers"][f"/api/samples/{content['images'][0]}?tables={tables}"]["row"]
        == content["images"][0]
    )


def test_export__no_secret_and_no_path_leaves_the_machine(exported, told_folder):
    _, folder = exported
    for path in folder.rglob("*"):
        if path.suffix in (".js", ".html", ".json"):
            text = path.read_text()
            for hidden in (
                "hunter2",
                "swordfish",
                str(told_folder),
                str(told_folder.parent),
                "manifest.csv",
            ):
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
    from weakspot.web.services.studies import PhraseFigures
    from weakspot.web.state.studies import keep_phrase
    from weakspot.web.static import READER

    state = StateStore.beside(Project.open(own_folder).store.data)
    _add_owner(state, READER)
    earlier = PhraseFigures(
        class_title="disc", phrase="said before", threshold=None, score=0.5, held_out_score=0.4
    )
    keep_phrase(state, READER, earlier, study_id=None)
    state.close()
    request = ExportRequest(
        project=own_folder, folder=tmp_path / "out", pages=built_pages, most_samples=0
    )
    export_static(request, say=lambda _text: None)
    answers = read_export(tmp_path / "out")["answers"]
    assert [one["phrase"] for one in answers["/api/classes/history?title=disc"]["phrases"]] == [
        "said before"
    ]
    assert any('"phrase":"said before"' in key for key in answers)


def _add_owner(state, person):
    with state.writing() as rows:
        add_person(rows, person_id=person.person_id, name=person.name, role=person.role)


def test_export__little_room__leaves_out_and_says_so(told_folder, built_pages, tmp_path):
    request = ExportRequest(
        project=told_folder, folder=tmp_path / "out", pages=built_pages, most_megabytes=0.06
    )
    summary = export_static(request, say=lambda _text: None)
    data = sum(
        path.stat().st_size
        for kind in ("images", "data")
        for path in (tmp_path / "out" / kind).iterdir()
    )
    assert data < 200_000
    assert any("left out" in note for note in summary.notes)


def test_export__folder_that_holds_something__refused(told_folder, built_pages, tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    for is_forced in (False, True):
        request = ExportRequest(
            project=told_folder, folder=tmp_path, pages=built_pages, is_forced=is_forced
        )
        with pytest.raises(ConfigError, match="holds something else"):
            export_static(request, say=lambda _text: None)
    assert (tmp_path / "letter.txt").read_text() == "dear"


def test_export__earlier_export__replaced_only_if_forced(told_folder, built_pages, tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / MARKER).write_text("{}")
    (folder / "old.txt").write_text("old")
    request = ExportRequest(project=told_folder, folder=folder, pages=built_pages, most_samples=0)
    with pytest.raises(ConfigError, match="earlier export"):
        export_static(request, say=lambda _text: None)
    forced = ExportRequest(
        project=told_folder, folder=folder, pages=built_pages, most_samples=0, is_forced=True
    )
    export_static(forced, say=lambda _text: None)
    assert not (folder / "old.txt").exists()
    assert (folder / "index.html").exists()


def test_export__pages_not_built__says_how(told_folder, tmp_path):
    with pytest.raises(ConfigError, match="not built") as caught:
        export_static(
            ExportRequest(project=told_folder, folder=tmp_path / "out", pages=tmp_path),
            say=lambda _text: None,
        )
    assert "build_pages" in str(caught.value.fix)


def test_export__unknown_run__nothing_is_written(told_folder, built_pages, tmp_path):
    request = ExportRequest(
        project=told_folder,
        folder=tmp_path / "out",
        pages=built_pages,
        run_id="20200101T000000.000000-ffffff",
    )
    with pytest.raises(StoreError):
        export_static(request, say=lambda _text: None)
    assert not (tmp_path / "out").exists()


def test_export__project_without_runs__pages_say_so(told_folder, built_pages, tmp_path):
    bare = shutil.copytree(told_folder, tmp_path / "bare")
    shutil.rmtree(bare / ".weakspot" / "runs")
    assert Workspace(Project.open(bare)).record() is None
    export_static(
        ExportRequest(project=bare, folder=tmp_path / "out", pages=built_pages, most_samples=5),
        say=lambda _text: None,
    )
    answers = read_export(tmp_path / "out")["answers"]
    assert answers["/api/overview"]["run"] is None
