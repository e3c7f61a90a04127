import threading
from dataclasses import replace

from starlette.testclient import TestClient
from tests.web.conftest import TOKEN, browser, entered

from weakspot.core.errors import DataError
from weakspot.web.application import create_app
from weakspot.web.auth.address import ServerAddress
from weakspot.web.auth.login import set_owner_password

HERE = "http://127.0.0.1:8765"


def test_session__owner_comes_in__is_known(owner):
    answer = owner.get("/api/session")
    assert answer.status_code == 200
    assert answer.json()["person"] == {"name": "owner", "role": "owner", "study_id": None}
    assert answer.json()["project"] == "shapes"


def test_session__cookie__cannot_be_read_or_sent_by_others(parts):
    answer = browser(create_app(parts)).post("/api/session", json={"token": TOKEN})
    cookie = answer.headers["set-cookie"].lower()
    assert {"httponly", "samesite=strict", "path=/"} <= {part.strip() for part in cookie.split(";")}
    assert "secure" not in cookie


def test_session__public_address__cookie_for_that_path_and_https_only(parts):
    address = ServerAddress(port=8765, public="https://hub.example.org/me/")
    shown = replace(parts, address=address)
    client = TestClient(create_app(shown), base_url="https://hub.example.org")
    cookie = client.post("/me/api/session", json={"token": TOKEN}).headers["set-cookie"].lower()
    assert cookie.startswith("weakspot-session-8765=")
    assert {"secure", "path=/me"} <= {part.strip() for part in cookie.split(";")}


def test_session__ways_to_come_in__one_of_them(parts):
    set_owner_password(parts.state, "Ada", "long enough")
    client = browser(create_app(parts))
    right = client.post("/api/session", json={"login": "ada", "password": "long enough"})
    assert right.json()["person"]["name"] == "Ada"
    for entry in (
        {},
        {"login": "ada"},
        {"token": TOKEN, "invite": "x"},
        {"token": TOKEN, "login": "ada"},
    ):
        assert client.post("/api/session", json=entry).status_code == 422
    wrong = client.post("/api/session", json={"login": "ada", "password": "wrong"})
    assert (wrong.status_code, wrong.json()["what"]) == (
        401,
        "Name or password is wrong.",
    )
    assert "set-cookie" not in wrong.headers


def test_session__locked_out__says_for_how_long(parts):
    client = browser(create_app(parts))
    guess = {"login": "ada", "password": "a guess"}
    answers = [client.post("/api/session", json=guess) for _ in range(6)]
    assert [answer.status_code for answer in answers] == [*[401] * 5, 429]
    assert answers[-1].headers["Retry-After"] == "10"


def test_session__left__nobody(owner):
    assert owner.delete("/api/session").json() == {"is_signed_out": True}
    assert owner.get("/api/session").status_code == 401


def test_session__two_browsers__one_leaves__the_other_stays(parts):
    app = create_app(parts)
    first, second = (entered(browser(app), TOKEN) for _ in range(2))
    first.delete("/api/session")
    assert second.get("/api/session").status_code == 200


def test_session__server_started_anew__browser_stays_in(parts):
    first = entered(browser(create_app(parts)), TOKEN)
    again = TestClient(create_app(parts), base_url=HERE, cookies=dict(first.cookies))
    assert again.get("/api/session").json()["csrf_token"] == first.headers["X-CSRF-Token"]


def test_invitation__unknown__said(owner):
    answer = owner.post("/api/session/invitation", json={"invite": "unknown"})
    assert (answer.status_code, answer.json()["what"]) == (401, "The invitation is invalid.")


def test_present__before_and_after_coming_in__no_refusal(parts):
    client = browser(create_app(parts))
    assert client.get("/api/session/present").json() == {"is_present": False}
    assert entered(client, TOKEN).get("/api/session/present").json() == {"is_present": True}


def test_health__anyone__is_told(parts):
    health = TestClient(create_app(parts), base_url="http://localhost").get("/api/health").json()
    assert health == {"state": "ready", "message": ""}


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
