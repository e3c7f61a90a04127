import struct
import zlib
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image
from starlette.testclient import TestClient
from tests.web.conftest import TOKEN, entered

from weakspot.app.browsing.workspace import Workspace
from weakspot.app.project import Project
from weakspot.web.application import create_app
from weakspot.web.gate.sizes import LARGEST_UPLOAD
from weakspot.web.server_parts import ServerParts
from weakspot.web.state.store import StateStore


@pytest.fixture(scope="module")
def shared_owner(planted_folder, tmp_path_factory):
    """The owner of a server that no test changes."""
    state = StateStore.beside(tmp_path_factory.mktemp("state"))
    parts = ServerParts(workspace=Workspace(Project.open(planted_folder)), state=state, jobs=None, owner_token=TOKEN)
    yield entered(TestClient(create_app(parts), base_url="http://127.0.0.1:8765"), TOKEN)
    state.close()


@pytest.fixture(scope="module")
def planted_picture(planted_folder) -> bytes:
    return next(path for path in sorted(planted_folder.rglob("*.png"))).read_bytes()


def _cut_off() -> bytes:
    stream = BytesIO()
    Image.new("RGB", (64, 64), (10, 200, 30)).save(stream, "PNG")
    return stream.getvalue()[:50]


def _huge_png() -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", 2**30, 2**30, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(100))) + chunk(b"IEND", b"")


def _send(client, data, name="picture.png"):
    return client.post("/api/uploads/picture", files={"file": (name, data, "image/png")})


def test_upload__sample_of_the_project__is_recognised(shared_owner, planted_folder):
    workspace = Workspace(Project.open(planted_folder))
    row = int(workspace.discovery.rows[5])
    place = workspace.samples.dataset.locations(workspace.discovery.rows[5:6])[0]
    answer = _send(shared_owner, Path(place).read_bytes())
    assert answer.status_code == 200, answer.text
    found = answer.json()
    dataset = workspace.samples.dataset
    assert found["nearest"][0]["row"] == row
    assert found["nearest"][0]["similarity"] == pytest.approx(1.0, abs=1e-3)
    assert found["nearest"][0]["label"] == dataset.class_names[dataset.labels[row]]
    best = max(range(dataset.n_classes), key=lambda code: dataset.probabilities[row][code])
    assert found["classes"][0]["title"] == dataset.class_names[best]
    assert found["classes"][0]["probability"] == pytest.approx(float(dataset.probabilities[row][best]), abs=1e-4)
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
def test_upload__no_picture__said_and_the_server_lives(shared_owner, planted_picture, data, said):
    answer = _send(shared_owner, data)
    assert answer.status_code == 422, answer.text
    assert said in answer.json()["given"]
    assert _send(shared_owner, planted_picture).status_code == 200


def test_upload__name_of_a_path__means_nothing(shared_owner, planted_picture, planted_folder):
    before = sorted(planted_folder.rglob("*"))
    assert _send(shared_owner, planted_picture, name="../../etc/passwd").status_code == 200
    assert sorted(planted_folder.rglob("*")) == before


def test_upload__too_large__refused(shared_owner):
    answer = _send(shared_owner, bytes(LARGEST_UPLOAD))
    assert answer.status_code == 413


def test_upload__nothing_in_it__said(shared_owner):
    assert shared_owner.post("/api/uploads/picture").status_code == 422


def test_upload__no_classifier__said(parts, monkeypatch, planted_picture):
    without = replace(parts.workspace.prepared, classifier=None)
    monkeypatch.setattr(Workspace, "prepared", without)
    client = entered(TestClient(create_app(parts), base_url="http://127.0.0.1:8765"), TOKEN)
    answer = _send(client, planted_picture)
    assert (answer.status_code, answer.json()["where"]) == (409, "[classifier]")
