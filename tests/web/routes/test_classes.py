import pytest
from starlette.testclient import TestClient

from weakspot.discover.error_score import score_at
from weakspot.web.application import create_app
from weakspot.web.services.view import FLOAT32, INT32, UINT8, unpack

TITLE = "disc"


@pytest.fixture
def study(owner) -> str:
    return owner.post("/api/studies", json={"title": "Discs", "classes": [TITLE]}).json()[
        "study_id"
    ]


@pytest.fixture
def annotator(parts, owner, study) -> TestClient:
    made = owner.post(f"/api/studies/{study}/invites", json={"role": "annotator"}).json()
    client = TestClient(create_app(parts), base_url="http://127.0.0.1:8765")
    answer = client.post("/api/session", json={"invite": made["token"], "name": "Ann"})
    client.headers["X-CSRF-Token"] = answer.json()["csrf_token"]
    return client


def _said(phrase: object = "green", **more: object) -> dict[str, object]:
    return {"title": TITLE, "phrase": phrase, **more}


def _sent(client: TestClient, body: str):
    return client.post(
        "/api/classes/phrase", content=body, headers={"Content-Type": "application/json"}
    )


def test_classes__owner__gets_all_with_figures(owner, parts):
    found = owner.get("/api/classes").json()
    assert {row["title"] for row in found["classes"]} == set(parts.workspace.problems)
    assert found["tables"] == parts.workspace.tables_key


def test_class_view__from_images_to_a_slice__keeps_one_story(owner, parts):
    n_before = parts.workspace.ledger.standing().n_questions
    shown = owner.get("/api/classes/samples", params={"title": TITLE}).json()
    typed = owner.post("/api/classes/phrase", json=_said()).json()
    failed = unpack(shown["failed"], UINT8).astype(bool)
    similarities = unpack(typed["similarities"], FLOAT32).astype(float)
    assert score_at(similarities, failed, typed["threshold"]) == pytest.approx(typed["score"])
    assert owner.get("/api/classes/history", params={"title": TITLE}).json()["phrases"] == []
    owner.post("/api/classes/phrase", json=_said(is_submitted=True))
    assert parts.workspace.ledger.standing().n_questions == n_before
    checked = owner.post("/api/classes/check", json=_said()).json()
    assert checked["n_looks"] == n_before + 1
    accepted = owner.post("/api/classes/accept", json=_said(reason="seen")).json()
    again = owner.post("/api/classes/accept", json=_said(threshold=accepted["threshold"])).json()
    assert again["slice_id"] == accepted["slice_id"]
    assert accepted["evidence"]["failures_inside"] == checked["confirmation"]["inside"]["count"]
    kept = owner.get("/api/classes/history", params={"title": TITLE}).json()["phrases"]
    assert [one["phrase"] for one in kept] == ["green"] * 3
    assert sum(one["slice_id"] == accepted["slice_id"] for one in kept) == 2
    assert accepted["slice_id"] in {one.slice_id for one in parts.workspace.record().slices}


def test_suggestions__class__are_words_with_scores(owner):
    found = owner.get("/api/classes/suggestions", params={"title": TITLE}).json()
    assert 1 <= len(found["words"]) <= 10


def test_class__unknown__is_refused(owner):
    for title in ("no such class", "", "a\x00b", "x" * 2000, "../etc"):
        for place in ("samples", "suggestions"):
            assert owner.get(f"/api/classes/{place}", params={"title": title}).status_code == 422, (
                title
            )
        for place in ("phrase", "check", "accept"):
            assert (
                owner.post(
                    f"/api/classes/{place}", json={"title": title, "phrase": "green"}
                ).status_code
                == 422
            ), title


def test_phrase__cannot_be_a_phrase__is_refused(owner):
    for phrase in ("", "   ", "a\x00b", "two\nlines", "x" * 301, None, 5, ["green"]):
        assert owner.post("/api/classes/phrase", json=_said(phrase)).status_code == 422, phrase


def test_phrase__half_a_character__is_refused(owner):
    for text in (r"\ud800", r"green \udfff"):
        assert _sent(owner, f'{{"title": "disc", "phrase": "{text}"}}').status_code in (400, 422), (
            text
        )


def test_threshold__no_similarity__is_refused(owner):
    for threshold in ("NaN", "Infinity", "-1e400", "3", '"x"', "[]"):
        body = f'{{"title": "disc", "phrase": "green", "threshold": {threshold}}}'
        assert _sent(owner, body).status_code in (400, 422), threshold


def test_phrase__any_words__are_scored(owner):
    for phrase in ("{phrase}", "💥" * 20, "' OR 1=1 --", "<script>", "%s %d", "日本語"):
        assert owner.post("/api/classes/phrase", json=_said(phrase)).status_code == 200, phrase


def test_samples__stretch_beyond_the_end__is_empty(owner):
    found = owner.get("/api/classes/samples", params={"title": TITLE, "offset": 10**9}).json()
    assert len(unpack(found["rows"], INT32)) == 0
    assert (
        owner.get("/api/classes/samples", params={"title": TITLE, "offset": -1}).status_code == 422
    )


def test_annotator__own_study__works_and_nothing_else(annotator, study):
    assert annotator.get("/api/classes").status_code == 403
    assert annotator.get("/api/classes/samples", params={"title": TITLE}).status_code == 403
    assert (
        annotator.get("/api/classes/samples", params={"title": TITLE, "study": study}).status_code
        == 200
    )
    assert (
        annotator.get("/api/classes/samples", params={"title": "star", "study": study}).status_code
        == 404
    )
    assert annotator.post("/api/classes/phrase", json=_said(study="another")).status_code in (
        403,
        404,
    )
    assert (
        annotator.post(
            "/api/classes/phrase", json=_said(study=study, is_submitted=True)
        ).status_code
        == 200
    )
    assert annotator.post("/api/classes/accept", json=_said(study=study)).status_code == 200
    kept = annotator.get("/api/classes/history", params={"title": TITLE, "study": study}).json()[
        "phrases"
    ]
    assert [(one["phrase"], one["by"]) for one in kept] == [("green", "Ann")]


def test_nobody__without_session__is_refused(parts):
    stranger = TestClient(create_app(parts), base_url="http://127.0.0.1:8765")
    assert stranger.get("/api/classes").status_code == 401
    assert stranger.post("/api/classes/phrase", json=_said()).status_code in (401, 403)
