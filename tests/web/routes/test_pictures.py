from io import BytesIO

import pytest
from PIL import Image
from starlette.testclient import TestClient

from weakspot.web.application import create_app


@pytest.fixture
def tables(parts) -> str:
    return parts.workspace.tables_key


@pytest.fixture
def annotator(parts, owner) -> TestClient:
    study = owner.post("/api/studies", json={"title": "Discs", "classes": ["disc"]}).json()["study_id"]
    made = owner.post(f"/api/studies/{study}/invites", json={"role": "annotator"}).json()
    client = TestClient(create_app(parts), base_url="http://127.0.0.1:8765")
    client.post("/api/session", json={"invite": made["token"], "name": "Ann"})
    return client


def test_picture__row__is_a_jpeg_that_the_browser_keeps(owner, tables):
    found = owner.get("/api/pictures/3", params={"tables": tables, "side": 64})
    assert (found.status_code, found.headers["content-type"]) == (200, "image/jpeg")
    assert max(Image.open(BytesIO(found.content)).size) <= 64
    assert found.headers["cache-control"].startswith("private, max-age=31536000")
    again = owner.get("/api/pictures/3", params={"tables": tables, "side": 64}, headers={"If-None-Match": found.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_picture__no_such_row__is_not_found(owner, tables):
    for row in ("900", "999999999999", "9007199254740992"):
        assert owner.get(f"/api/pictures/{row}", params={"tables": tables}).status_code == 404, row
        assert owner.get(f"/api/samples/{row}", params={"tables": tables}).status_code == 404, row


def test_picture__no_row_number__is_refused(owner, tables):
    for row in ("-1", "x", "1.5", "9" * 40, "%00", "..%2f..%2fetc%2fpasswd"):
        assert owner.get(f"/api/pictures/{row}", params={"tables": tables}).status_code in (404, 422), row


def test_picture__side_out_of_bounds__is_refused(owner, tables):
    for side in ("0", "63", "513", "x", "1e9"):
        assert owner.get("/api/pictures/3", params={"tables": tables, "side": side}).status_code == 422, side


def test_picture__other_tables__is_not_found(owner):
    assert owner.get("/api/pictures/3", params={"tables": "gone"}).status_code == 404
    assert owner.get("/api/pictures/3").status_code == 422


def test_picture__file_gone__is_not_found(owner, parts, tables, monkeypatch):
    monkeypatch.setattr("weakspot.media.thumbnails.read_location", lambda location: b"no picture")
    assert owner.get("/api/pictures/7", params={"tables": tables, "side": 320}).status_code == 404


def test_picture__annotator__sees_their_classes_on_the_discovery_half_only(annotator, parts, tables):
    workspace = parts.workspace
    own, other = (int(workspace.problems[title].rows[0]) for title in ("disc", "star"))
    hidden = int(workspace.confirmation.rows[0])
    for place in ("pictures", "samples"):
        statuses = [annotator.get(f"/api/{place}/{row}", params={"tables": tables}).status_code for row in (own, other, hidden)]
        assert statuses == [200, 404, 404]
    assert annotator.get(f"/api/samples/{own}", params={"tables": tables}).json()["slices"] == []


def test_sample__owner__learns_everything_but_the_path(owner, parts, tables):
    found = owner.get("/api/samples/3", params={"tables": tables})
    assert found.json()["labels"]
    assert str(parts.workspace.project.folder) not in found.text


def test_picture__nobody__is_refused(parts, tables):
    stranger = TestClient(create_app(parts), base_url="http://127.0.0.1:8765")
    assert stranger.get("/api/pictures/3", params={"tables": tables}).status_code == 401
