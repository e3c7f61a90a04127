import csv
import io
import re
import shutil
from datetime import timedelta

import pytest
from sqlalchemy import select, update
from starlette.testclient import TestClient

from weakspot.core.run import no_stage_progress
from weakspot.project.project import Project
from weakspot.web.application import create_app
from weakspot.web.jobs import JobRunner
from weakspot.web.server_parts import ServerParts
from weakspot.web.services.studies import repairs
from weakspot.web.services.workspace import Workspace
from weakspot.web.state.store import InviteRow, PersonRow, Role, StateStore, now

TOKEN = "the-owners-token"
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
    client = TestClient(app, base_url="http://127.0.0.1:8765")
    client.headers["X-CSRF-Token"] = client.post("/api/session", json={"token": TOKEN}).json()[
        "csrf_token"
    ]
    return client


@pytest.fixture
def class_titles(parts):
    return list(parts.workspace.problems)


@pytest.fixture
def study(owner, class_titles) -> dict:
    answer = owner.post(
        "/api/studies",
        json={"title": "Discs", "classes": class_titles[:2], "instructions": "Look closely."},
    )
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.fixture
def come_in(app, owner):
    """Return a function that lets somebody new into a study."""

    def _come_in(study: dict, name: str, role: Role = Role.ANNOTATOR) -> TestClient:
        made = owner.post(
            f"/api/studies/{study['study_id']}/invites", json={"role": role.value}
        ).json()
        client = TestClient(app, base_url="http://127.0.0.1:8765")
        answer = client.post("/api/session", json={"invite": made["token"], "name": name})
        assert answer.status_code == 200, answer.text
        client.headers["X-CSRF-Token"] = answer.json()["csrf_token"]
        return client

    return _come_in


def _say(client: TestClient, study: dict, phrase: str, **more: object):
    body = {
        "title": study["classes"][0],
        "phrase": phrase,
        "study": study["study_id"],
        "is_submitted": True,
        **more,
    }
    return client.post("/api/classes/phrase", json=body)


def test_create__no_classes_named__takes_promising_ones_of_the_project(owner, class_titles):
    made = owner.post("/api/studies", json={"title": "Any"}).json()
    assert made["is_open"]
    assert 1 <= len(made["classes"]) <= 4
    assert set(made["classes"]) <= set(class_titles)
    assert [one["study_id"] for one in owner.get("/api/studies").json()["studies"]] == [
        made["study_id"]
    ]


def test_create__unknown_class__is_refused(owner):
    assert (
        owner.post("/api/studies", json={"title": "Any", "classes": ["no such class"]}).status_code
        == 422
    )


@pytest.mark.parametrize("title", ["", "   ", "a\x00b", "x" * 201])
def test_create__title_that_cannot_be_kept__is_refused(owner, title):
    assert owner.post("/api/studies", json={"title": title}).status_code == 422


def test_invite__made__is_told_once_and_only_its_hash_is_kept(parts, owner, study):
    made = owner.post(
        f"/api/studies/{study['study_id']}/invites", json={"uses": 3, "days": 2}
    ).json()
    assert made["fragment"] == f"#invite={made['token']}"
    assert len(made["token"]) >= 32
    listed = owner.get(f"/api/studies/{study['study_id']}/invites")
    assert made["token"] not in listed.text
    assert listed.json()["invites"] == [made["invite"]]
    with parts.state.reading() as rows:
        row = rows.scalars(select(InviteRow)).one()
    assert made["token"] not in {str(value) for value in vars(row).values()}


def test_invite__taken_back__lets_nobody_in_any_more(app, owner, study):
    made = owner.post(f"/api/studies/{study['study_id']}/invites", json={}).json()
    revoked = owner.post(
        f"/api/studies/{study['study_id']}/invites/{made['invite']['invite_id']}/revoke"
    ).json()
    assert (revoked["uses_left"], revoked["is_good"]) == (0, False)
    stranger = TestClient(app, base_url="http://127.0.0.1:8765")
    assert (
        stranger.post("/api/session", json={"invite": made["token"], "name": "Eve"}).status_code
        == 401
    )


def test_invite__as_owner__cannot_be_made(owner, study):
    assert (
        owner.post(f"/api/studies/{study['study_id']}/invites", json={"role": "owner"}).status_code
        == 422
    )


def test_routes__annotator_of_another_study__sees_and_does_nothing(
    owner, study, come_in, class_titles
):
    other = owner.post("/api/studies", json={"title": "Other", "classes": class_titles[:1]}).json()
    stranger = come_in(other, "Eve")
    for method, path in _study_routes(owner):
        address = path.replace("{study_id}", study["study_id"]).replace("{invite_id}", SOMEWHERE)
        body = (
            {"seconds": 1, "class_title": study["classes"][0]}
            if "activity" in path
            else {"answer": "x"}
            if "attention" in path
            else {"class_title": study["classes"][0]}
        )
        answer = stranger.request(method, address, **({"json": body} if method == "POST" else {}))
        assert answer.status_code in (403, 404), (method, path, answer.status_code)
    assert _say(stranger, study, "green").status_code == 404
    assert stranger.get("/api/studies").json()["studies"] == [other]
    assert (
        stranger.get("/api/classes/history", params={"title": study["classes"][0]}).status_code
        == 403
    )


def test_routes__study_that_does_not_exist__is_404_for_the_owner(owner, class_titles):
    for method, path in _study_routes(owner):
        address = path.replace("{study_id}", SOMEWHERE).replace("{invite_id}", SOMEWHERE)
        body = (
            {"seconds": 1}
            if "activity" in path
            else {"class_title": class_titles[0]}
            if "finished" in path
            else {"answer": "x"}
            if "attention" in path
            else {}
        )
        answer = owner.request(method, address, **({"json": body} if method == "POST" else {}))
        assert answer.status_code == 404, (method, path, answer.text)


def _study_routes(owner: TestClient) -> list[tuple[str, str]]:
    paths = owner.app.openapi()["paths"]
    found = [
        (method.upper(), path)
        for path, methods in paths.items()
        for method in methods
        if "{study_id}" in path
    ]
    assert len(found) >= 12
    return found


def test_routes__viewer__reads_the_study_and_changes_nothing(study, come_in):
    viewer = come_in(study, "Vic", Role.VIEWER)
    place = f"/api/studies/{study['study_id']}"
    assert viewer.get(place).status_code == 200
    assert viewer.get(f"{place}/table").status_code == 200
    assert viewer.get(f"{place}/people").status_code == 200
    assert viewer.get(f"{place}/invites").status_code == 403
    for path, body in (
        ("close", {}),
        ("invites", {}),
        ("activity", {"seconds": 1}),
        ("repairs", {}),
    ):
        assert viewer.post(f"{place}/{path}", json=body).status_code == 403


def test_annotator__other_people_and_the_table__are_not_for_them(study, come_in):
    ada = come_in(study, "Ada")
    for path in ("people", "invites", "table", "table.csv"):
        assert ada.get(f"/api/studies/{study['study_id']}/{path}").status_code == 403
    assert ada.get("/api/classes").status_code == 403


def test_phrases__two_annotators__each_sees_only_their_own_and_the_owner_all(owner, study, come_in):
    ada, bob = come_in(study, "Ada"), come_in(study, "Bob")
    assert _say(ada, study, "green").status_code == 200
    assert _say(bob, study, "red").status_code == 200
    asked = {"title": study["classes"][0], "study": study["study_id"]}
    seen = [
        [
            one["phrase"]
            for one in person.get("/api/classes/history", params=asked).json()["phrases"]
        ]
        for person in (ada, bob, owner)
    ]
    assert seen == [["green"], ["red"], ["red", "green"]]


def test_phrases__class_of_no_concern_to_the_study__is_404(study, come_in, class_titles):
    ada = come_in(study, "Ada")
    others = [title for title in [*class_titles, "nothing"] if title not in study["classes"]]
    assert _say(ada, study, "green", title=others[0]).status_code == 404


def test_close__then_reopen__phrases_are_refused_and_then_kept_again(owner, study, come_in):
    ada = come_in(study, "Ada")
    place = f"/api/studies/{study['study_id']}"
    assert not owner.post(f"{place}/close").json()["is_open"]
    assert _say(ada, study, "green").status_code == 409
    assert ada.post(f"{place}/activity", json={"seconds": 1}).status_code == 409
    assert (
        ada.post(f"{place}/finished", json={"class_title": study["classes"][0]}).status_code == 409
    )
    assert owner.post(f"{place}/invites", json={}).status_code == 409
    assert ada.get(place).json()["is_open"] is False
    owner.post(f"{place}/reopen")
    assert _say(ada, study, "green").status_code == 200


def test_activity__more_claimed_than_the_clock_says__is_cut(parts, study, come_in):
    ada = come_in(study, "Ada")
    place = f"/api/studies/{study['study_id']}/activity"
    title = study["classes"][0]
    first = ada.post(place, json={"seconds": 60, "class_title": title}).json()["seconds"]
    second = ada.post(place, json={"seconds": 60, "class_title": title}).json()["seconds"]
    assert first <= second < 30
    bob = come_in(study, "Bob")
    with parts.state.writing() as rows:
        rows.execute(
            update(PersonRow)
            .where(PersonRow.name == "Bob")
            .values(created=now() - timedelta(hours=1))
        )
    assert bob.post(place, json={"seconds": 15, "class_title": title}).json()[
        "seconds"
    ] == pytest.approx(15)


@pytest.mark.parametrize("seconds", [-1, 61, "NaN", 1e300, None])
def test_activity__no_possible_stretch__is_refused(study, come_in, seconds):
    ada = come_in(study, "Ada")
    assert (
        ada.post(
            f"/api/studies/{study['study_id']}/activity", json={"seconds": seconds}
        ).status_code
        == 422
    )
    assert ada.get(f"/api/studies/{study['study_id']}/progress").json()["seconds"] == 0


def test_finished__said_and_taken_back__is_remembered(study, come_in):
    ada = come_in(study, "Ada")
    place, title = f"/api/studies/{study['study_id']}/finished", study["classes"][0]
    assert ada.post(place, json={"class_title": title}).json()["finished"] == [title]
    assert ada.post(place, json={"class_title": title}).json()["finished"] == [title]
    assert (
        ada.post(place, json={"class_title": title, "is_finished": False}).json()["finished"] == []
    )
    assert ada.post(place, json={"class_title": "nothing"}).status_code == 404


def test_table__phrases_and_repairs__joined_and_safe_as_csv(parts, owner, study, come_in):
    ada, bob = come_in(study, "=cmd()"), come_in(study, "=cmd()")
    assert _say(ada, study, "green").status_code == 200
    assert _say(bob, study, "+green", threshold=0.9).status_code == 200
    assert ada.post("/api/classes/accept", json=_spoken(study, "green")).status_code == 200
    place = f"/api/studies/{study['study_id']}"
    owner.post(f"{place}/repairs", json={"is_every": True}).raise_for_status()
    [job] = parts.jobs.newest()
    assert (job.kind, job.arguments) == ("study-repairs", {"study": study["study_id"]})
    parts.jobs.cancel(job.job_id)
    told = repairs(parts.workspace.project, no_stage_progress, **job.arguments)
    assert told["n_phrases"] == 2
    table = owner.get(f"{place}/table").json()
    green = next(row for row in table["rows"] if row["phrase"] == "green")
    assert green["is_accepted"]
    assert 0 <= green["worst_before"] <= 1
    assert 0 <= green["worst_after"] <= 1
    assert table["summary"]["n_people"] == 2
    answer = owner.get(f"{place}/table.csv")
    assert answer.headers["content-disposition"] == 'attachment; filename="study.csv"'
    lines = list(csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig"))))
    assert [line["person"] for line in lines] == ["'=cmd()", "'=cmd() (2)"]
    assert [line["phrase"] for line in lines] == ["green", "'+green"]
    assert re.fullmatch(r"-?[\d.e-]+", lines[0]["held_out_score"])
    assert [line["is_accepted"] for line in lines] == ["yes", "no"]


def _spoken(study: dict, phrase: str) -> dict:
    return {"title": study["classes"][0], "phrase": phrase, "study": study["study_id"]}


def test_repairs__nothing_said__is_refused(owner, study):
    assert owner.post(f"/api/studies/{study['study_id']}/repairs", json={}).status_code == 422


def test_people__somebody_worked__time_phrases_and_best_scores(owner, study, come_in):
    ada = come_in(study, "Ada")
    _say(ada, study, "green")
    _say(ada, study, "red")
    ada.post("/api/tutorial/done")
    [found] = owner.get(f"/api/studies/{study['study_id']}/people").json()["people"]
    assert (found["name"], found["n_phrases"], found["n_accepted"], found["did_tutorial"]) == (
        "Ada",
        2,
        0,
        True,
    )
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
    body = {"title": "Strict", "classes": class_titles[:1], "options": options}
    answer = owner.post("/api/studies", json={**body, "attention_answer": "green"})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_consent__not_given__nothing_is_shown_and_then_it_is(come_in, strict_study, owner):
    ada = come_in(strict_study, "Ada")
    place, title = f"/api/studies/{strict_study['study_id']}", strict_study["classes"][0]
    asked = {"title": title, "study": strict_study["study_id"]}
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
    ada.post(f"/api/studies/{strict_study['study_id']}/consent")
    asked = {"title": strict_study["classes"][0], "study": strict_study["study_id"]}
    assert ada.get("/api/classes/suggestions", params=asked).json()["words"] == []
    bob = come_in(study, "Bob")
    asked = {"title": study["classes"][0], "study": study["study_id"]}
    assert bob.get("/api/classes/suggestions", params=asked).json()["words"]


def test_sample__given_groups__are_not_told_to_those_who_take_part(come_in, strict_study, parts):
    ada = come_in(strict_study, "Ada")
    ada.post(f"/api/studies/{strict_study['study_id']}/consent")
    row = int(parts.workspace.problem(strict_study["classes"][0]).rows[0])
    facts = ada.get(f"/api/samples/{row}", params={"tables": parts.workspace.tables_key}).json()
    names = [column["name"] for column in facts["columns"]]
    assert "colour" not in names
    assert "size" in names


def test_export__sources_and_timings__are_in_the_files(come_in, study, owner):
    ada = come_in(study, "Ada")
    for words, source in (("green", "suggestion"), ("green disc", "edited"), ("red", "own")):
        assert _say(ada, study, words, source=source).status_code == 200
    place = f"/api/studies/{study['study_id']}"
    ada.post(f"{place}/activity", json={"seconds": 0.01, "class_title": study["classes"][0]})
    rows = list(csv.DictReader(io.StringIO(owner.get(f"{place}/table.csv").text.lstrip("\ufeff"))))
    assert [row["source"] for row in rows] == ["suggestion", "edited", "own"]
    timings = owner.get(f"{place}/timings.csv").text.lstrip("\ufeff")
    lines = list(csv.DictReader(io.StringIO(timings)))
    assert {line["person"] for line in lines} <= {"Ada"}
    assert timings.startswith("person,class_title,seconds,ended")
    assert owner.get(f"{place}/table").json()["summary"]["n_by_source"] == {
        "suggestion": 1,
        "edited": 1,
        "own": 1,
    }


@pytest.mark.parametrize(
    "more",
    [
        {"options": {"groups": "no such column"}},
        {"options": {"attention_question": "Why?"}},
        {"attention_answer": "because"},
        {"options": {"shows": True}},
    ],
)
def test_create__options_that_cannot_be__422(owner, more):
    assert owner.post("/api/studies", json={"title": "x", **more}).status_code == 422
