"""Behind a reverse proxy that shows the server under a sub-path, whether it takes that part away or not."""

import re
from dataclasses import replace
from urllib.parse import urljoin

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient
from tests.web.conftest import TOKEN

from weakspot.web import application
from weakspot.web.application import create_app
from weakspot.web.auth.address import ServerAddress

OUTSIDE = "https://hub.example.org"
PREFIX = "/user/me/proxy/8765"
HOP_BY_HOP = {"connection", "content-length", "transfer-encoding"}


def _proxy(app, *, strips: bool, keeps_host: bool) -> Starlette:
    """A proxy that passes on everything below its prefix."""

    async def forward(request: Request) -> Response:
        path = request.url.path.removeprefix(PREFIX) if strips else request.url.path
        headers = {name: value for name, value in request.headers.items() if name not in HOP_BY_HOP}
        headers["host"] = request.headers["host"] if keeps_host else "127.0.0.1:8765"
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://127.0.0.1:8765"
        ) as inner:
            answer = await inner.request(
                request.method, path or "/", headers=headers, content=await request.body()
            )
        passed = {name: value for name, value in answer.headers.items() if name not in HOP_BY_HOP}
        return Response(answer.content, answer.status_code, passed)

    everything = [Route(f"{PREFIX}{{path:path}}", forward, methods=["GET", "POST", "DELETE"])]
    return Starlette(routes=everything)


@pytest.fixture(params=[(True, True), (True, False), (False, True), (False, False)], ids=str)
def browser(request, light_parts, tmp_path, monkeypatch) -> TestClient:
    strips, keeps_host = request.param
    built = tmp_path / "built"
    (built / "assets").mkdir(parents=True)
    (built / "index.html").write_text('<script defer src="./assets/index-1.js"></script>')
    (built / "assets" / "index-1.js").write_text("1")
    monkeypatch.setattr(application.add_pages, "__defaults__", (built,))
    monkeypatch.setattr(application.are_built, "__defaults__", (built,))
    shown = replace(light_parts, address=ServerAddress(port=8765, public=f"{OUTSIDE}{PREFIX}/"))
    return TestClient(
        _proxy(create_app(shown), strips=strips, keeps_host=keeps_host), base_url=OUTSIDE
    )


def test_proxy__page_and_its_assets__load(browser):
    page = browser.get(f"{PREFIX}/")
    assert page.status_code == 200
    asset = urljoin(f"{OUTSIDE}{PREFIX}/", re.search(r'src="([^"]+)"', page.text).group(1))
    assert browser.get(asset).text == "1"


def test_proxy__come_in_read_and_go_out__works(browser):
    own = {"Origin": OUTSIDE, "Sec-Fetch-Site": "same-origin"}
    entered = browser.post(f"{PREFIX}/api/session", json={"token": TOKEN}, headers=own)
    assert entered.status_code == 200, entered.text
    assert f"Path={PREFIX}" in entered.headers["set-cookie"]
    assert "Secure" in entered.headers["set-cookie"]
    assert browser.get(f"{PREFIX}/api/session").json()["person"]["role"] == "owner"
    own["X-CSRF-Token"] = entered.json()["csrf_token"]
    assert browser.delete(f"{PREFIX}/api/session", headers=own).status_code == 200
    assert browser.get(f"{PREFIX}/api/session").status_code == 401


def test_proxy__page_of_another_user_of_the_hub__cannot_change_anything(browser):
    strange = {"Origin": "https://other.example.org", "Sec-Fetch-Site": "same-site"}
    assert (
        browser.post(f"{PREFIX}/api/session", json={"token": TOKEN}, headers=strange).status_code
        == 403
    )


def test_prefix__without_slash__leads_to_the_page(light_parts):
    shown = replace(light_parts, address=ServerAddress(port=8765, public=f"{OUTSIDE}{PREFIX}/"))
    answer = TestClient(create_app(shown), base_url=OUTSIDE, follow_redirects=False).get(PREFIX)
    assert answer.status_code == 307
    assert urljoin(f"{OUTSIDE}{PREFIX}", answer.headers["location"]) == f"{OUTSIDE}{PREFIX}/"


def test_proxy__without_public_address__says_what_to_do(light_parts):
    answer = TestClient(create_app(light_parts), base_url=OUTSIDE).get("/")
    assert answer.status_code == 403
    assert "--public-address" in answer.json()["fix"]
