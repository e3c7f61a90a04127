import csv
import io
import re
import shutil

import pytest
from sqlalchemy import select
from starlette.testclient import TestClient
from tests.web.conftest import TOKEN, browser, entered

from weakspot.core.run import no_stage_progress
from weakspot.project.project import Project
from weakspot.web.application import create_app
from weakspot.web.jobs import JobRunner
from weakspot.web.server_parts import ServerParts
from weakspot.web.services.studies import repairs
from weakspot.web.services.workspace import Workspace
from weakspot.web.state.store import INVITES, Role, StateStore, token_hash

SOMEWHERE = "AAAAAAAAAAAAAAAA"


@pytest.fixture(scope="module")
def workspace(planted_folder, tmp_path_factory) -> Workspace:
    """A project that all tests here share; what people say is kept beside it, anew for every test."""
    return Workspace(
        Project.open(shutil.copytree(planted_folder, tmp_path_factory.mktemp("studies") / "shapes"))
    )


@pytest.fixture
def parts(workspace, tmp_path):
    state = StateStore(f"sqlite:///{tmp_path / 'state.sqlite'}")
    jobs = JobRunner(workspace.project.folder, state)
    yield ServerParts(workspace=workspace, state=state, jobs=jobs, owner_token=TOKEN)
    jobs.close()
    state.close()


@pytest.fixture
def app(parts):
    return create_app(parts)


@pytest.fixture
def owner(app) -> TestClient:
    return entered(browser(app), TOKEN)


@pytest.fixture
def class_titles(parts):
    return list(parts.workspace.problems)


@pytest.fixture
def study(owner, class_titles) -> dict:
    return _begin(owner, title="Discs", classes=class_titles[:2], instructions="Look closely.")


def _begin(owner: TestClient, **body) -> dict:
    answer = owner.post("/api/studies", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def _at(study: dict, path: str = "") -> str:
    return f"/api/studies/{study['study_id']}{path and '/'}{path}"


@pytest.fixture
def come_in(app, owner):
    """Return a function that lets somebody new into a study."""

    def _come_in(study: dict, name: str, role: Role = Role.ANNOTATOR) -> TestClient:
        made = owner.post(_at(study, "invites"), json={"role": role.value}).json()
        return entered(browser(app), made["token"], invite=name)

    return _come_in


def _say(client: TestClient, study: dict, phrase: str, **more: object):
    body = _spoken(study, phrase) | {"is_submitted": True, **more}
    return client.post("/api/classes/phrase", json=body)


def _spoken(study: dict, phrase: str) -> dict:
    return {"title": study["classes"][0], "phrase": phrase, "study": study["study_id"]}


def _csv(answer) -> list[dict]:
    return list(csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig"))))


def test_create__no_classes_named__takes_promising_ones_of_the_project(owner, class_titles):
    made = _begin(owner, title="Any")
    assert made["is_open"]
    assert 1 <= len(made["classes"]) <= 4
    assert set(made["classes"]) <= set(class_titles)
    assert owner.get("/api/studies").json()["studies"] == [made]


@pytest.mark.parametrize(
    "more",
    [
        *({"title": title} for title in ("", "   ", "a\x00b", "x" * 201)),
        {"classes": ["no such class"]},
        {"options": {"groups": "no such column"}},
        {"options": {"attention_question": "Why?"}},
        {"attention_answer": "because"},
        {"options": {"shows": True}},
    ],
)
def test_create__what_cannot_be__is_refused(owner, more):
    assert owner.post("/api/studies", json={"title": "x", **more}).status_code == 422


def test_invite__made__is_told_once_and_only_its_hash_is_kept(parts, owner, study):
    made = owner.post(_at(study, "invites"), json={"uses": 3, "days": 2}).json()
    assert made["fragment"] == f"#invite={made['token']}"
    assert len(made["token"]) >= 32
    listed = owner.get(_at(study, "invites"))
    assert made["token"] not in listed.text
    assert listed.json()["invites"] == [made["invite"]]
    with parts.state.reading() as rows:
        row = rows.execute(select(INVITES)).one()
    assert made["token"] not in {str(value) for value in row}
    assert row.token_hash == token_hash(made["token"])
    assert (row.uses, row.uses_left, (row.expires - row.created).days) == (3, 3, 2)
    assert made["invite"]["is_good"]


def test_invite__taken_back__lets_nobody_in_any_more(app, owner, study):
    made = owner.post(_at(study, "invites"), json={}).json()
    place = _at(study, f"invites/{made['invite']['invite_id']}/revoke")
    revoked = owner.post(place).json()
    assert (revoked["uses_left"], revoked["is_good"]) == (0, False)
    entry = {"invite": made["token"], "name": "Eve"}
    assert browser(app).post("/api/session", json=entry).status_code == 401


def test_invite__as_owner__cannot_be_made(owner, study):
    assert owner.post(_at(study, "invites"), json={"role": "owner"}).status_code == 422


def test_routes__annotator_of_another_study__sees_and_does_nothing(
    owner, study, come_in, class_titles
):
    other = _begin(owner, title="Other", classes=class_titles[:1])
    stranger = come_in(other, "Eve")
    _check_routes(stranger, study["study_id"], study["classes"][0], {403, 404})
    assert _say(stranger, study, "green").status_code == 404
    assert stranger.get("/api/studies").json()["studies"] == [other]
    history = stranger.get("/api/classes/history", params={"title": study["classes"][0]})
    assert history.status_code == 403


def test_routes__study_that_does_not_exist__is_404_for_the_owner(owner, class_titles):
    _check_routes(owner, SOMEWHERE, class_titles[0], {404})


def _check_routes(client: TestClient, study_id: str, title: str, statuses: set[int]) -> None:
    """Ask everything about a study with what each route needs, and nothing but a refusal comes back."""
    bodies = {
        "activity": {"seconds": 1, "class_title": title},
        "finished": {"class_title": title},
        "attention": {"answer": "x"},
    }
    found = 0
    for path, methods in client.app.openapi()["paths"].items():
        address = path.replace("{study_id}", study_id).replace("{invite_id}", SOMEWHERE)
        for method in methods if "{study_id}" in path else ():
            found += 1
            sent = {"json": bodies.get(path.rsplit("/", 1)[-1], {})} if method == "post" else {}
            answer = client.request(method.upper(), address, **sent)
            assert answer.status_code in statuses, (method, path, answer.text)
    assert found >= 12


def test_routes__viewer__reads_the_study_and_changes_nothing(study, come_in):
    viewer = come_in(study, "Vic", Role.VIEWER)
    for path, status in (("", 200), ("table", 200), ("people", 200), ("invites", 403)):
        assert viewer.get(_at(study, path)).status_code == status
    for path in ("close", "invites", "activity", "repairs"):
        body = {"seconds": 1} if path == "activity" else {}
        assert viewer.post(_at(study, path), json=body).status_code == 403


def test_annotator__other_people_and_the_table__are_not_for_them(study, come_in):
    ada = come_in(study, "Ada")
    for path in ("people", "invites", "table", "table.csv"):
        assert ada.get(_at(study, path)).status_code == 403
    assert ada.get("/api/classes").status_code == 403


def test_phrases__two_annotators__each_sees_only_their_own_and_the_owner_all(owner, study, come_in):
    ada, bob = come_in(study, "Ada"), come_in(study, "Bob")
    assert _say(ada, study, "green").status_code == 200
    assert _say(bob, study, "red").status_code == 200
    for person, phrases in ((ada, ["green"]), (bob, ["red"]), (owner, ["red", "green"])):
        answer = person.get("/api/classes/history", params=_asked(study))
        assert [one["phrase"] for one in answer.json()["phrases"]] == phrases


def test_phrases__class_of_no_concern_to_the_study__is_404(study, come_in, class_titles):
    others = [title for title in [*class_titles, "nothing"] if title not in study["classes"]]
    assert _say(come_in(study, "Ada"), study, "green", title=others[0]).status_code == 404


def test_close__then_reopen__phrases_are_refused_and_then_kept_again(owner, study, come_in):
    ada = come_in(study, "Ada")
    assert not owner.post(_at(study, "close")).json()["is_open"]
    assert _say(ada, study, "green").status_code == 409
    title = study["classes"][0]
    for person, path, body in (
        (ada, "activity", {"seconds": 1}),
        (ada, "finished", {"class_title": title}),
        (owner, "invites", {}),
    ):
        assert person.post(_at(study, path), json=body).status_code == 409
    assert ada.get(_at(study)).json()["is_open"] is False
    owner.post(_at(study, "reopen"))
    assert _say(ada, study, "green").status_code == 200


@pytest.mark.parametrize("seconds", [-1, 61, "NaN", 1e300, None])
def test_activity__no_possible_stretch__is_refused(study, come_in, seconds):
    ada = come_in(study, "Ada")
    assert ada.post(_at(study, "activity"), json={"seconds": seconds}).status_code == 422
    assert ada.get(_at(study, "progress")).json()["seconds"] == 0


def test_finished__said_and_taken_back__is_remembered(study, come_in):
    ada, title = come_in(study, "Ada"), study["classes"][0]
    for said, kept in (({}, [title]), ({}, [title]), ({"is_finished": False}, [])):
        answer = ada.post(_at(study, "finished"), json={"class_title": title, **said})
        assert answer.json()["finished"] == kept
    answer = ada.post(_at(study, "finished"), json={"class_title": "nothing"})
    assert answer.status_code == 404


def test_table__phrases_and_repairs__joined_and_safe_as_csv(parts, owner, study, come_in):
    ada, bob = come_in(study, "=cmd()"), come_in(study, "=cmd()")
    assert _say(ada, study, "green").status_code == 200
    assert _say(bob, study, "+green", threshold=0.9).status_code == 200
    assert ada.post("/api/classes/accept", json=_spoken(study, "green")).status_code == 200
    owner.post(_at(study, "repairs"), json={"is_every": True}).raise_for_status()
    [job] = parts.jobs.newest()
    assert (job.kind, job.arguments) == ("study-repairs", {"study": study["study_id"]})
    parts.jobs.cancel(job.job_id)
    told = repairs(parts.workspace.project, no_stage_progress, **job.arguments)
    assert told["n_phrases"] == 2
    table = owner.get(_at(study, "table")).json()
    green = next(row for row in table["rows"] if row["phrase"] == "green")
    assert green["is_accepted"]
    assert 0 <= green["worst_before"] <= 1
    assert 0 <= green["worst_after"] <= 1
    assert table["summary"]["n_people"] == 2
    answer = owner.get(_at(study, "table.csv"))
    assert answer.headers["content-disposition"] == 'attachment; filename="study.csv"'
    lines = _csv(answer)
    assert [line["person"] for line in lines] == ["'=cmd()", "'=cmd() (2)"]
    assert [line["phrase"] for line in lines] == ["green", "'+green"]
    assert re.fullmatch(r"-?[\d.e-]+", lines[0]["held_out_score"])
    assert [line["is_accepted"] for line in lines] == ["yes", "no"]


def test_repairs__nothing_said__is_refused(owner, study):
    assert owner.post(_at(study, "repairs"), json={}).status_code == 422


def test_people__somebody_worked__time_phrases_and_best_scores(owner, study, come_in):
    ada = come_in(study, "Ada")
    _say(ada, study, "green")
    _say(ada, study, "red")
    ada.post("/api/tutorial/done")
    [found] = owner.get(_at(study, "people")).json()["people"]
    told = {"name": "Ada", "n_phrases": 2, "n_accepted": 0, "did_tutorial": True}
    assert told.items() <= found.items()
    assert found["best_score"] > 0


@pytest.fixture
def strict_study(owner, class_titles) -> dict:
    """A study without suggestions, with consent, an attention check and given groups."""
    options = {
        "shows_suggestions": False,
        "consent": "We keep your words.",
        "attention_question": "Write the word green.",
        "groups": "colour",
    }
    more = {"options": options, "attention_answer": "green"}
    return _begin(owner, title="Strict", classes=class_titles[:1], **more)


def _asked(study: dict) -> dict:
    return {"title": study["classes"][0], "study": study["study_id"]}


def test_consent__not_given__nothing_is_shown_and_then_it_is(come_in, strict_study, owner):
    ada = come_in(strict_study, "Ada")
    place, asked = _at(strict_study), _asked(strict_study)
    assert ada.get(f"{place}/progress").json()["agreed"] == ""
    assert ada.get("/api/classes/samples", params=asked).status_code == 403
    assert _say(ada, strict_study, "green").status_code == 403
    assert ada.post(f"{place}/attention", json={"answer": "green"}).status_code == 409
    assert ada.post(f"{place}/consent").json()["agreed"]
    assert ada.get("/api/classes/samples", params=asked).status_code == 200
    assert not ada.get(f"{place}/progress").json()["has_answered"]
    assert "green" not in str(ada.get(place).json()["options"]).replace("the word green", "")
    assert ada.post(f"{place}/attention", json={"answer": " Green. "}).json()["has_answered"]
    assert ada.post(f"{place}/attention", json={"answer": "red"}).json()["has_answered"]
    _say(ada, strict_study, "green", source="own")
    (row,) = owner.get(f"{place}/table").json()["rows"]
    assert (row["attention"], bool(row["agreed"]), row["source"]) == (True, True, "own")


def test_suggestions__switched_off__nothing_scored_is_offered(come_in, strict_study, study, owner):
    ada = come_in(strict_study, "Ada")
    ada.post(_at(strict_study, "consent"))
    for person, of_study, is_offered in (
        (ada, strict_study, False),
        (come_in(study, "Bob"), study, True),
    ):
        answer = person.get("/api/classes/suggestions", params=_asked(of_study))
        assert bool(answer.json()["words"]) is is_offered


def test_sample__given_groups__are_not_told_to_those_who_take_part(come_in, strict_study, parts):
    ada = come_in(strict_study, "Ada")
    ada.post(_at(strict_study, "consent"))
    row = int(parts.workspace.problem(strict_study["classes"][0]).rows[0])
    facts = ada.get(f"/api/samples/{row}", params={"tables": parts.workspace.tables_key}).json()
    names = [column["name"] for column in facts["columns"]]
    assert "colour" not in names
    assert "size" in names


def test_export__sources_and_timings__are_in_the_files(come_in, study, owner):
    ada = come_in(study, "Ada")
    for words, source in (("green", "suggestion"), ("green disc", "edited"), ("red", "own")):
        assert _say(ada, study, words, source=source).status_code == 200
    ada.post(_at(study, "activity"), json={"seconds": 0.01, "class_title": study["classes"][0]})
    sources = ["suggestion", "edited", "own"]
    assert [row["source"] for row in _csv(owner.get(_at(study, "table.csv")))] == sources
    timings = owner.get(_at(study, "timings.csv"))
    assert {line["person"] for line in _csv(timings)} <= {"Ada"}
    assert timings.text.lstrip("\ufeff").startswith("person,class_title,seconds,ended")
    summary = owner.get(_at(study, "table")).json()["summary"]
    assert summary["n_by_source"] == dict.fromkeys(sources, 1)
