from fastapi import FastAPI
from starlette.testclient import TestClient

from weakspot.web.application import add_pages


def _client(folder) -> TestClient:
    app = FastAPI()
    add_pages(app, folder)
    return TestClient(app)


def test_pages__built__are_served(tmp_path):
    (tmp_path / "index.html").write_text("<h1>pages</h1>")
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "a.js").write_text("1")
    client = _client(tmp_path)
    assert client.get("/").text == "<h1>pages</h1>"
    assert client.get("/assets/a.js").text == "1"
    assert client.get("/assets").status_code == 404


def test_pages__not_built__says_how(tmp_path):
    answer = _client(tmp_path).get("/")
    assert answer.status_code == 200
    assert "tools/build_pages.py" in answer.text
