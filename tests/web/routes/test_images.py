import struct
import zlib
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from starlette.testclient import TestClient
from tests.web.conftest import TOKEN, entered

from weakspot.core.dataset import Split
from weakspot.project.project import Project
from weakspot.web.application import create_app
from weakspot.web.auth.middleware import MAX_UPLOAD
from weakspot.web.services.workspace import Workspace


@pytest.fixture
def tables(parts) -> str:
    return parts.workspace.tables_key


@pytest.fixture
def row(parts) -> int:
    """A row that people may look at."""
    return int(parts.workspace.discovery.rows[0])


def test_image__row__is_a_jpeg_that_the_browser_keeps(owner, row, tables):
    found = owner.get(f"/api/images/{row}", params={"tables": tables, "side": 64})
    assert (found.status_code, found.headers["content-type"]) == (200, "image/jpeg")
    assert max(Image.open(BytesIO(found.content)).size) <= 64
    assert found.headers["cache-control"].startswith("private, max-age=31536000")
    again = owner.get(
        f"/api/images/{row}",
        params={"tables": tables, "side": 64},
        headers={"If-None-Match": found.headers["etag"]},
    )
    assert (again.status_code, again.content) == (304, b"")


def _statuses(client, tables, rows, *places):
    """Ask for what places tell of rows."""
    asked = [f"/api/{place.format(row)}" for row in rows for place in places]
    return [client.get(path, params={"tables": tables}).status_code for path in asked]


def test_image__not_there_or_of_the_confirmation_half_or_test_split__is_not_found(
    owner, parts, tables
):
    dataset = parts.workspace.samples.dataset
    hidden = [int(parts.workspace.confirmation.rows[0]), *dataset.rows_of(Split.TEST)[:1].tolist()]
    rows = ("900", "999999999999", "9007199254740992", *hidden)
    assert set(_statuses(owner, tables, rows, "images/{}", "samples/{}")) == {404}


def test_image__no_row_number__is_refused(owner, tables):
    rows = ("-1", "x", "1.5", "9" * 40, "%00", "..%2f..%2fetc%2fpasswd")
    assert set(_statuses(owner, tables, rows, "images/{}")) <= {404, 422}


def test_image__side_out_of_bounds__is_refused(owner, row, tables):
    for side in ("0", "63", "513", "x", "1e9"):
        answer = owner.get(f"/api/images/{row}", params={"tables": tables, "side": side})
        assert answer.status_code == 422, side


def test_image__other_tables__is_not_found(owner):
    assert owner.get("/api/images/3", params={"tables": "gone"}).status_code == 404
    assert owner.get("/api/images/3").status_code == 422


def test_image__file_gone__is_not_found(owner, row, tables, monkeypatch):
    monkeypatch.setattr("weakspot.data.images.read_location", lambda location: b"no image")
    assert _statuses(owner, tables, [row], "images/{}") == [404]


def test_image__annotator__sees_their_classes_on_the_discovery_half_only(annotator, parts, tables):
    workspace = parts.workspace
    own, other = (int(workspace.problems[title].rows[0]) for title in ("disc", "star"))
    hidden = int(workspace.confirmation.rows[0])
    for place in ("images/{}", "samples/{}"):
        assert _statuses(annotator, tables, [own, other, hidden], place) == [200, 404, 404]
    assert annotator.get(f"/api/samples/{own}", params={"tables": tables}).json()["slices"] == []


def test_sample__owner__learns_everything_but_the_path(owner, parts, row, tables):
    found = owner.get(f"/api/samples/{row}", params={"tables": tables})
    assert found.json()["labels"]
    assert str(parts.workspace.project.folder) not in found.text


def test_original__rows_that_people_may_look_at__and_no_others(owner, annotator, parts, tables):
    workspace = parts.workspace
    own, other = (int(workspace.problems[title].rows[0]) for title in ("disc", "star"))
    hidden = int(workspace.confirmation.rows[0])
    rows = [own, other, hidden]
    ids = workspace.samples.dataset.sample_ids(np.array(rows))
    for place, asked in (("images/{}/original", rows), ("sample-ids/{}", ids)):
        assert _statuses(owner, tables, asked, place) == [200, 200, 404]
        assert _statuses(annotator, tables, asked, place) == [200, 404, 404]
    told = "samples/{}/file", "samples/{}/nearest"
    assert _statuses(owner, tables, [hidden], *told) == [404, 404]
    assert _statuses(annotator, tables, [own], *told) == [403, 403]
    for place in ("images", "image-choices", "image-list"):
        assert annotator.get(f"/api/{place}").status_code == 403
        assert owner.get(f"/api/{place}").status_code == 200


def test_original__wider_than_a_jpeg_can_be__is_shown(owner, parts, tables):
    row = int(parts.workspace.discovery.rows[0])
    (location,) = parts.workspace.samples.dataset.locations(np.array([row]))
    Image.new("RGB", (66_000, 8), (10, 200, 30)).save(location)
    found = owner.get(f"/api/images/{row}/original", params={"tables": tables})
    assert found.status_code == 200, found.text
    assert Image.open(BytesIO(found.content)).size == (66_000, 8)


def test_original__asked_again__the_browser_has_it(owner, parts, tables):
    row = int(parts.workspace.discovery.rows[0])
    first = owner.get(f"/api/images/{row}/original", params={"tables": tables})
    assert first.headers["content-type"] == "image/png"
    again = owner.get(
        f"/api/images/{row}/original",
        params={"tables": tables},
        headers={"If-None-Match": first.headers["etag"]},
    )
    assert (again.status_code, again.content) == (304, b"")
    other = owner.get(f"/api/images/{row}/original", params={"tables": "gone"})
    assert other.status_code == 404


def test_images__members_of_a_slice__as_its_page_shows_them(owner, parts):
    slice_id = parts.workspace.record().slices[0].slice_id
    shown = owner.get(f"/api/slices/{slice_id}/members", params={"kind": "members"}).json()
    found = owner.get("/api/images", params={"slice_id": slice_id}).json()
    assert [one["row"] for one in found["images"]] == [one["row"] for one in shown["samples"]]
    lines = owner.get("/api/image-list", params={"slice_id": slice_id})
    assert lines.headers["content-disposition"] == 'attachment; filename="images.csv"'
    assert len(lines.text.splitlines()) == 1 + shown["total"]
    assert lines.text.splitlines()[1].startswith("pictures/validation/disc/")


@pytest.fixture(scope="module")
def planted_image(planted_folder) -> bytes:
    return next(path for path in sorted(planted_folder.rglob("*.png"))).read_bytes()


def _cut_off() -> bytes:
    stream = BytesIO()
    Image.new("RGB", (64, 64), (10, 200, 30)).save(stream, "PNG")
    return stream.getvalue()[:50]


def _huge_png() -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        checked = struct.pack(">I", zlib.crc32(name + data))
        return struct.pack(">I", len(data)) + name + data + checked

    header = struct.pack(">IIBBBBB", 2**30, 2**30, 8, 2, 0, 0, 0)
    parts = (b"IHDR", header), (b"IDAT", zlib.compress(bytes(100))), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


def _send(client, data, name="image.png"):
    return client.post("/api/uploads/image", files={"file": (name, data, "image/png")})


def test_upload__sample_of_the_project__is_recognised(reader, planted_folder):
    workspace = Workspace(Project.open(planted_folder))
    row = int(workspace.discovery.rows[5])
    place = workspace.samples.dataset.locations(workspace.discovery.rows[5:6])[0]
    answer = _send(reader, Path(place).read_bytes())
    assert answer.status_code == 200, answer.text
    found = answer.json()
    dataset = workspace.samples.dataset
    assert found["nearest"][0]["row"] == row
    assert found["nearest"][0]["score"] == pytest.approx(1.0, abs=1e-3)
    assert found["nearest"][0]["label"] == dataset.class_names[dataset.labels[row]]
    best = max(range(dataset.n_classes), key=lambda code: dataset.probabilities[row][code])
    assert found["classes"][0]["class_name"] == dataset.class_names[best]
    assert found["classes"][0]["probability"] == pytest.approx(
        float(dataset.probabilities[row][best]), abs=1e-4
    )
    assert {near["row"] for near in found["nearest"]} <= set(workspace.discovery.rows.tolist())


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "empty"),
        (b"some text", "starts with"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'><script>1</script></svg>", "SVG"),
        (_cut_off(), "truncated"),
        (_huge_png(), "pixels"),
        (b"\xff\xd8\xff<html><script>alert(1)</script>", "JPEG"),
        (b"%PDF-1.4", "PDF"),
    ],
    ids=["empty", "text", "svg", "cut off", "huge", "page", "document"],
)
def test_upload__no_image__said_and_the_server_lives(reader, planted_image, data, said):
    answer = _send(reader, data)
    assert answer.status_code == 422, answer.text
    assert said in answer.json()["given"]
    assert _send(reader, planted_image).status_code == 200


def test_upload__name_of_a_path__means_nothing(reader, planted_image, planted_folder):
    before = sorted(planted_folder.rglob("*"))
    assert _send(reader, planted_image, name="../../etc/passwd").status_code == 200
    assert sorted(planted_folder.rglob("*")) == before


def test_upload__too_large__refused(reader):
    answer = _send(reader, bytes(MAX_UPLOAD))
    assert answer.status_code == 413


def test_upload__nothing_in_it__said(reader):
    assert reader.post("/api/uploads/image").status_code == 422


def test_upload__no_classifier__said(parts, monkeypatch, planted_image):
    without = replace(parts.workspace.prepared, classifier=None)
    monkeypatch.setattr(Workspace, "prepared", without)
    client = entered(TestClient(create_app(parts), base_url="http://127.0.0.1:8765"), TOKEN)
    answer = _send(client, planted_image)
    assert (answer.status_code, answer.json()["where"]) == (409, "[classifier]")


def test_heat_and_repairs__only_of_what_may_be_looked_at(owner, parts):
    tables, row = parts.workspace.tables_key, int(parts.workspace.discovery.rows[0])
    hidden = int(parts.workspace.confirmation.rows[0])
    assert owner.get(f"/api/samples/{row}", params={"tables": tables}).json()["has_heat_map"]
    # The planted classifier knows planted images alone; that a patch is covered, it says in words.
    assert owner.get(f"/api/samples/{row}/heat", params={"tables": tables}).json()["what"]
    assert owner.get(f"/api/samples/{row}/repairs", params={"tables": tables}).json() == {
        "repairs": []
    }
    assert _statuses(owner, tables, [hidden], "samples/{}/heat", "samples/{}/repairs") == [404, 404]
