import pytest
from starlette.testclient import TestClient

from weakspot.discover.error_score import score_at
from weakspot.web.services.view import FLOAT32, INT32, UINT8, unpack

TITLE = "disc"


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


def test_class__unknown__is_refused(owner):
    for title in ("no such class", "", "a\x00b", "x" * 2000, "../etc"):
        asked = [(one, {"params": {"title": title}}) for one in ("samples", "suggestions")]
        body = {"title": title, "phrase": "green"}
        asked += [(one, {"json": body}) for one in ("phrase", "check", "accept")]
        for place, sent in asked:
            answer = owner.request(
                "POST" if "json" in sent else "GET", f"/api/classes/{place}", **sent
            )
            assert answer.status_code == 422, (place, title)


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
    answer = owner.get("/api/classes/samples", params={"title": TITLE, "offset": -1})
    assert answer.status_code == 422


def test_annotator__own_study__works_and_nothing_else(annotator, disc_study):
    asked = [{"title": TITLE}, {"title": TITLE, "study": disc_study}]
    asked.append({"title": "star", "study": disc_study})
    seen = [annotator.get("/api/classes/samples", params=one).status_code for one in asked]
    assert seen == [403, 200, 404]
    assert annotator.get("/api/classes").status_code == 403
    said = [_said(study="another"), _said(study=disc_study, is_submitted=True)]
    heard = [annotator.post("/api/classes/phrase", json=one).status_code for one in said]
    assert heard in ([403, 200], [404, 200])
    assert annotator.post("/api/classes/accept", json=_said(study=disc_study)).status_code == 200
    kept = annotator.get("/api/classes/history", params=asked[1]).json()["phrases"]
    assert [(one["phrase"], one["by"]) for one in kept] == [("green", "Ann")]
