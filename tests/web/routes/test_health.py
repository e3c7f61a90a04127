import threading

from starlette.testclient import TestClient

from weakspot.core.errors import DataError
from weakspot.web.application import create_app


def test_health__anyone__is_told(parts):
    assert TestClient(create_app(parts), base_url="http://localhost").get("/api/health").json() == {"state": "ready", "message": ""}


def test_health__while_preparing__answers(parts):
    client, go_on = TestClient(create_app(parts), base_url="http://localhost"), threading.Event()
    thread = parts.readiness.prepare(go_on.wait)
    assert client.get("/api/health").json()["state"] == "preparing"
    go_on.set()
    thread.join()
    assert client.get("/api/health").json()["state"] == "ready"


def test_health__preparing_fails__says_why_without_paths(parts):
    def fail():
        raise DataError("A column is missing.", where="/home/ada/manifest.csv", fix="Add it.")

    parts.readiness.prepare(fail).join()
    health = TestClient(create_app(parts), base_url="http://localhost").get("/api/health").json()
    assert health == {"state": "failed", "message": "A column is missing. Add it."}
