"""Activity: who did what, undone where nobody went on from it, and told to whoever listens."""

import asyncio
from datetime import timedelta

import pytest
from sqlalchemy import insert
from tests.web.async_calls import run_apart
from tests.web.conftest import TOKEN, browser, entered

from weakspot.web.application import create_app
from weakspot.web.services.slice_editing import slice_of
from weakspot.web.state.store import CHANGES, JOBS, now


@pytest.fixture
def slice_id(parts):
    record = parts.workspace.record()
    return record.published()[0][0].slice_id if record.published() else record.slices[0].slice_id


def _words(parts, slice_id):
    return slice_of(parts.workspace.record(), slice_id).title


def _newest(client):
    return client.get("/api/activity").json()["done"][0]


def _undo(client, item):
    return client.post("/api/activity/undo", json={"item": item})


def test_undo__renamed_twice__last_first(owner, parts, slice_id):
    path, title = f"/api/slices/{slice_id}/words", _words(parts, slice_id)
    assert owner.post(path, json={"words": "green ones"}).headers["X-Change"] == "1"
    first = _newest(owner)
    assert first["by"] == "owner"
    assert first["link"] == f"/slices/{slice_id}"
    assert owner.post(path, json={"words": "greenish"}).is_success
    refused = _undo(owner, first["item"])
    assert refused.status_code == 409
    assert "owner changed the same thing since: Renamed" in refused.json()["what"]
    assert _undo(owner, _newest(owner)["item"]).is_success
    assert _undo(owner, first["item"]).is_success
    assert _words(parts, slice_id) == title
    assert _undo(owner, first["item"]).status_code == 409


def test_rename__page_did_not_know_of_another_name__409_and_nothing_is_lost(owner, parts, slice_id):
    path = f"/api/slices/{slice_id}/words"
    old = {"X-Seen-Change": "0"}
    assert owner.post(path, json={"words": "green ones"}, headers=old).is_success
    refused = owner.post(path, json={"words": "mine"}, headers=old)
    assert refused.status_code == 409
    assert "owner was faster" in refused.json()["what"]
    assert "green ones" in refused.json()["what"]
    assert "green ones" in _words(parts, slice_id)
    assert owner.post(path, json={"words": "mine"}, headers={"X-Seen-Change": "1"}).is_success


def test_undo__dismissed__is_back_and_restored_goes(owner, parts, slice_id):
    owner.post(f"/api/slices/{slice_id}/dismiss", json={"reason": "a smudge"})
    assert slice_id in parts.workspace.record().dismissed()
    assert _undo(owner, _newest(owner)["item"]).is_success
    assert slice_id not in parts.workspace.record().dismissed()


def test_undo__accepted_phrase__slice_is_set_aside(owner, parts):
    made = owner.post("/api/classes/accept", json={"title": "disc", "phrase": "green"}).json()
    newest = _newest(owner)
    assert newest["sentence"] == "Accepted “green” as a slice of disc"
    owner.post("/api/classes/accept", json={"title": "disc", "phrase": "green"})
    assert _newest(owner)["item"] == newest["item"]
    assert _undo(owner, newest["item"]).is_success
    assert made["slice_id"] in parts.workspace.record().dismissed()


def test_undo__nothing_of_that_number__404(owner):
    assert _undo(owner, "change 99").status_code == 404
    assert _undo(owner, "job 1").status_code == 422


def test_activity__page_by_page__nothing_is_left_out_and_nothing_comes_twice(owner, parts):
    start = now()
    with parts.state.writing() as rows:
        for number in range(8):
            made = {"created": start + timedelta(minutes=number)}
            if number in (1, 4, 5, 7):
                said = {"kind": "note", "subject": "it", "sentence": "Said.", "by": "Ann"}
                rows.execute(insert(CHANGES).values(**said, **made))
            else:
                said = {"kind": "map", "arguments": {}, "state": "done"}
                rows.execute(insert(JOBS).values(job_id=f"j{number}", **said, **made))
    whole = [one["item"] for one in owner.get("/api/activity").json()["done"]]
    assert len(whole) == 8
    for limit in (1, 2, 3, 4):
        page = owner.get("/api/activity", params={"limit": limit}).json()
        seen = [one["item"] for one in page["done"]]
        while page["older"] is not None:
            asked = {"limit": limit, "before": page["older"]}
            page = owner.get("/api/activity", params=asked).json()
            seen += [one["item"] for one in page["done"]]
        assert seen == whole, limit


def test_undo__undone_in_another_tab_meanwhile__once(owner, parts, slice_id, monkeypatch):
    assert owner.post(f"/api/slices/{slice_id}/words", json={"words": "green ones"}).is_success
    item, editing = _newest(owner)["item"], parts.workspace.editing
    other = entered(browser(create_app(parts)), TOKEN)
    meanwhile = [lambda: _undo(other, item)]

    def busy():
        if meanwhile:
            assert meanwhile.pop()().is_success
        return editing()

    monkeypatch.setattr(parts.workspace, "editing", busy)
    refused = _undo(owner, item)
    assert (refused.status_code, refused.json()["what"]) == (409, "owner has undone this already.")
    done = owner.get("/api/activity").json()["done"]
    assert sum(one["sentence"].startswith("Undid") for one in done) == 1


def test_live__change_of_somebody__is_told_and_a_lost_session_ends_it(owner, parts, slice_id):
    async def listen():
        welcome = [True]

        async def is_welcome():
            return welcome[0]

        stream = parts.live.stream(is_welcome, still_here=1)
        assert "retry" in await anext(stream)
        told = []
        async for event in stream:
            if event.startswith("event: change"):
                told.append(event)
                if len(told) == 1:
                    await asyncio.to_thread(
                        owner.post, f"/api/slices/{slice_id}/words", json={"words": "green"}
                    )
                else:
                    welcome[0] = False
        return told

    first, second = run_apart(listen)
    assert '"version": 0' in first
    assert '"version": 1' in second
    assert parts.live.n_listeners == 0


def test_live__server_is_about_to_stop__streams_end(parts):
    async def listen():
        async def is_welcome():
            return True

        events = []
        async for event in parts.live.stream(is_welcome, still_here=60):
            events.append(event)
            if event.startswith("event: change"):
                parts.live.close()
        return events

    assert len(run_apart(listen)) >= 2


def test_live__nobody_or_an_annotator__refused(owner):
    owner.cookies.clear()
    assert owner.get("/api/live").status_code == 401
