"""Everything that the gate refuses, on the real server."""

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import update
from starlette.testclient import TestClient
from tests.web.conftest import TOKEN, entered

from weakspot.web.application import create_app
from weakspot.web.auth import login, middleware
from weakspot.web.auth.middleware import EVERYWHERE, LARGEST, complete_headers
from weakspot.web.server_parts import ServerParts
from weakspot.web.state.store import SESSIONS, now


def _said(path, headers=(), **changes):
    return {
        name.decode(): value.decode() for name, value in complete_headers(headers, path, **changes)
    }


def test_completed__any_answer__says_everything():
    assert EVERYWHERE.items() <= _said("/").items()


def test_completed__what_the_route_said__stays():
    assert (
        _said("/api/images/1", [(b"cache-control", b"private, max-age=9")])["cache-control"]
        == "private, max-age=9"
    )


def test_completed__caching__by_kind():
    assert _said("/api/session")["cache-control"] == "no-store"
    assert _said("/")["cache-control"] == "no-cache"
    assert "immutable" in _said("/assets/index-1.js")["cache-control"]
    assert _said("/assets/gone.js", is_fine=False)["cache-control"] == "no-store"


HERE = "http://127.0.0.1:8765"
FEATURES = {"Origin": HERE, "Sec-Fetch-Site": "same-origin"}


@pytest.fixture
def nobody(shared_app) -> TestClient:
    """A browser with which nobody came in."""
    return TestClient(shared_app, base_url=HERE)


@pytest.fixture
def inside(nobody) -> TestClient:
    """The owner's browser."""
    return entered(nobody, TOKEN)


def _refusal(answer, status):
    assert answer.status_code == status, answer.text
    assert set(answer.json()) == {"what", "where", "given", "fix"}
    return answer.json()["what"]


@pytest.mark.parametrize(
    "path",
    [
        "/api/images/../../etc/passwd",
        "/api/images/..%2f..%2fetc%2fpasswd",
        "/..%2f..%2fetc%2fpasswd",
        "/assets/../../problems.py",
        "/assets/..%2f..%2fproblems.py",
        "/assets/%2e%2e/%2e%2e/problems.py",
        "/..%5c..%5cproblems.py",
        "//etc/passwd",
        "/assets/%00",
    ],
)
def test_paths__out_of_the_folder__refused(inside, path):
    answer = inside.get(f"{HERE}{path}")
    assert answer.status_code in (404, 422), answer.text
    assert "root:" not in answer.text
    assert "RefusedError" not in answer.text


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8765",
        "192.168.1.7:8765",
        "127.0.0.1.evil.example",
        "localhost@evil.example",
    ],
)
def test_host__another_name__refused(inside, host):
    assert "not known under this name" in _refusal(
        inside.get("/api/session", headers={"Host": host}), 403
    )
    assert inside.get("/", headers={"Host": host}).status_code == 403


def test_session__nobody__refused(nobody):
    assert "Nobody is signed in" in _refusal(nobody.get("/api/session"), 401)
    assert "Nobody is signed in" in _refusal(nobody.delete("/api/session"), 401)


def test_session__made_up_cookie__refused(nobody):
    nobody.cookies.set("weakspot-session", "made up")
    assert _refusal(nobody.get("/api/session"), 401)


def test_session__expired__refused(light_parts):
    inside = entered(TestClient(create_app(light_parts), base_url=HERE), TOKEN)
    with light_parts.state.writing() as rows:
        rows.execute(update(SESSIONS).values(expires=now() - timedelta(seconds=1)))
    assert _refusal(inside.get("/api/session"), 401)
    assert _refusal(inside.delete("/api/session"), 401)


@pytest.mark.parametrize("token", ["", "wrong", "0" * 64, "ü"])
def test_change__without_the_request_token__refused(inside, token):
    answer = inside.delete("/api/session", headers={"X-CSRF-Token": token.encode()})
    assert "does not come from a page" in _refusal(answer, 403)
    assert inside.get("/api/session").status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:3000", "https://127.0.0.1:8766"]
)
def test_change__from_another_origin__refused(inside, origin):
    assert "another server" in _refusal(
        inside.delete("/api/session", headers={"Origin": origin}), 403
    )
    assert "another server" in _refusal(
        inside.post("/api/session", json={"token": TOKEN}, headers={"Origin": origin}), 403
    )


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_api__asked_by_a_page_of_another_site__refused(inside, site):
    assert "another server" in _refusal(
        inside.get("/api/session", headers={"Sec-Fetch-Site": site}), 403
    )
    assert "another server" in _refusal(
        inside.post("/api/session", json={"token": TOKEN}, headers={"Sec-Fetch-Site": site}), 403
    )


def test_page__opened_by_a_link_elsewhere__shown(inside):
    assert (
        inside.get(
            "/", headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
        ).status_code
        == 200
    )


def test_change__from_an_own_page__done(inside):
    assert inside.delete("/api/session", headers=FEATURES).json() == {"is_signed_out": True}
    assert inside.get("/api/session").status_code == 401


def test_body__announced_too_large__refused(inside):
    answer = inside.post("/api/session", content=b"x", headers={"Content-Length": str(LARGEST + 1)})
    assert "too large" in _refusal(answer, 413)


def test_body__grows_too_large__refused(inside):
    chunks = (b"x" * 65_536 for _ in range(LARGEST // 65_536 + 2))
    answer = inside.post(
        "/api/session", content=chunks, headers={"Content-Type": "application/json"}
    )
    assert "too large" in _refusal(answer, 413)


@pytest.mark.parametrize(
    "text", [rb'{"token": "\ud800"}', rb'{"invite": "x", "name": "\udfff\ud83c"}', rb'["\uDABC"]']
)
def test_body__half_a_character__refused(inside, text):
    answer = inside.post("/api/session", content=text, headers={"Content-Type": "application/json"})
    assert "middle of a character" in _refusal(answer, 400)


def test_body__whole_character_written_in_halves__accepted(inside):
    answer = inside.post(
        "/api/session",
        content=rb'{"token": "\ud83c\udf4e"}',
        headers={"Content-Type": "application/json"},
    )
    assert "is invalid" in _refusal(answer, 401)


def test_requests__too_many__have_to_wait(monkeypatch, light_parts):
    monkeypatch.setattr(middleware, "REQUESTS", (3, 0.01))
    client = entered(TestClient(create_app(light_parts), base_url=HERE), TOKEN)
    answers = [client.get("/api/session") for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert int(answers[-1].headers["Retry-After"]) > 0


def test_read_only__owner__is_a_viewer(light_parts):
    shown = ServerParts(
        workspace=light_parts.workspace,
        state=light_parts.state,
        jobs=light_parts.jobs,
        owner_token=TOKEN,
        is_read_only=True,
    )
    client = entered(TestClient(create_app(shown), base_url=HERE), TOKEN)
    assert client.get("/api/session").json()["person"]["role"] == "viewer"
    assert "owner may do this" in _refusal(client.post("/api/jobs", json={"kind": "run"}), 403)


def test_roles__annotator__sees_the_study_only_and_changes_nothing_else(guest):
    assert "study only" in _refusal(guest("annotator").get("/api/jobs"), 403)
    assert "owner may do this" in _refusal(
        guest("annotator").post("/api/jobs", json={"kind": "run"}), 403
    )


def test_roles__viewer__looks_and_changes_nothing(guest):
    viewer = guest("viewer")
    assert viewer.get("/api/jobs").status_code == 200
    assert "owner may do this" in _refusal(viewer.post("/api/jobs", json={"kind": "run"}), 403)


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("GET", "/", {}),
        ("GET", "/icon.svg", {}),
        ("GET", "/nothing", {}),
        ("GET", "/api/health", {}),
        ("GET", "/api/session", {}),
        ("GET", "/api/openapi.json", {}),
        ("GET", "/api/nothing", {}),
        ("POST", "/api/session", {}),
        ("PUT", "/api/session", {}),
        ("DELETE", "/api/session", {}),
        ("GET", "/", {"Host": "evil.example"}),
        ("POST", "/api/session", {"Origin": "null"}),
        ("POST", "/api/session", {"Content-Length": "99999999"}),
    ],
)
def test_headers__any_answer__are_there(nobody, method, path, headers):
    answer = nobody.request(method, path, headers=headers)
    assert EVERYWHERE.items() <= dict(answer.headers).items()
    assert "cache-control" in answer.headers


def test_mistake__server_error__said_with_headers(light_parts):
    app = create_app(light_parts)
    app.router.routes.insert(0, _broken_route())
    answer = TestClient(app, base_url=HERE, raise_server_exceptions=False).get("/api/broken")
    assert "made a mistake" in _refusal(answer, 500)
    assert EVERYWHERE.items() <= dict(answer.headers).items()
    assert "secret of the server" not in answer.text


def _broken_route():
    from starlette.routing import Route

    def broken(_request):
        raise ZeroDivisionError("secret of the server")

    return Route("/api/broken", broken)


def test_bearer__owners_token__scripts_read_and_change_without_a_session(light_parts):
    script = TestClient(create_app(light_parts), base_url="http://127.0.0.1:8765")
    script.headers["Authorization"] = f"Bearer {TOKEN}"
    assert script.get("/api/session").json()["person"]["role"] == "owner"
    made = script.post("/api/studies", json={"title": "Discs", "classes": []})
    assert made.status_code not in (401, 403), made.text
    assert "set-cookie" not in made.headers


def test_bearer__wrong_token_or_another_kind__nobody(light_parts, monkeypatch):
    monkeypatch.setattr(login, "TRIES", (5, 0.01))
    client = TestClient(create_app(light_parts), base_url="http://127.0.0.1:8765")
    for given in ("Bearer wrong", f"Basic {TOKEN}", "Bearer "):
        answer = client.get("/api/session", headers={"Authorization": given})
        assert answer.status_code == 401, given
    statuses = [
        client.get("/api/session", headers={"Authorization": f"Bearer guess-{number}"}).status_code
        for number in range(20)
    ]
    assert statuses[-1] == 429
    right = client.get("/api/session", headers={"Authorization": f"Bearer {TOKEN}"})
    assert right.status_code == 200


def test_bearer__read_only__may_only_look(light_parts):
    client = TestClient(
        create_app(replace(light_parts, is_read_only=True)), base_url="http://127.0.0.1:8765"
    )
    client.headers["Authorization"] = f"Bearer {TOKEN}"
    assert client.get("/api/session").json()["person"]["role"] == "viewer"
    assert client.post("/api/studies", json={"title": "x", "classes": []}).status_code == 403


def test_bearer__page_of_a_stranger__is_refused_all_the_same(light_parts):
    client = TestClient(create_app(light_parts), base_url="http://127.0.0.1:8765")
    headers = {"Authorization": f"Bearer {TOKEN}", "Origin": "https://evil.example"}
    assert client.post("/api/studies", json={}, headers=headers).status_code == 403
