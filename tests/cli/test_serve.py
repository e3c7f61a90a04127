"""`weakspot serve` as a user types it: real processes, real sockets, real signals."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import contextmanager
from http.cookies import SimpleCookie

import pytest
from tests.build import planted_project

SECRET = "a-secret-of-the-user-with-many-letters"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small project that was ingested; no test changes its samples."""
    return planted_project(tmp_path_factory.mktemp("served"), 120, share=0.05).folder


def _environment(**changes):
    hidden = ("WEAKSPOT_TOKEN", "WEAKSPOT_PASSWORD", "DISPLAY", "WAYLAND_DISPLAY")
    known = {name: value for name, value in os.environ.items() if name not in hidden}
    return {**known, "COLUMNS": "200", "NO_COLOR": "1", "OMP_NUM_THREADS": "1", **changes}


def _weakspot(*arguments, **changes):
    command = [sys.executable, "-m", "weakspot", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, env=_environment(**changes), check=False
    )


@contextmanager
def _serving(*arguments, **changes):
    """Start a server; give its process and the first line that it printed."""
    command = [sys.executable, "-m", "weakspot", "serve", *map(str, arguments)]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=_environment(**changes),
    )
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


def _assert_clear_error(result, *parts):
    assert result.returncode == 2, result.stderr
    assert "Traceback" not in result.stderr
    for part in parts:
        assert part in result.stderr


def _asked(address, *, body=None, cookie=""):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        address, data=data, headers={"Content-Type": "application/json", "Cookie": cookie}
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer), answer.headers


def test_serve__loopback__address_with_token_lets_in_and_ctrl_c_ends_it(folder):
    with _serving("-p", folder, "--port", 0, "--no-browser") as (process, line):
        root, token = re.fullmatch(r"(http://127\.0\.0\.1:\d+/)#token=([\w-]{20,})", line).groups()
        assert _asked(f"{root}api/health")[0]["state"] in ("preparing", "ready")
        session, headers = _asked(f"{root}api/session", body={"token": token})
        assert session["person"]["role"] == "owner"
        cookie = next(iter(SimpleCookie(headers["set-cookie"]).values()))
        assert cookie.key == f"weakspot-session-{root.split(':')[-1].strip('/')}"
        assert (
            _asked(f"{root}api/session", cookie=f"{cookie.key}={cookie.value}")[0]["project"]
            == "shapes"
        )
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
    assert process.returncode == 0
    assert errors == ""
    kept = b"".join(path.read_bytes() for path in (folder / ".weakspot").glob("browser.sqlite*"))
    assert token.encode() not in kept
    assert cookie.value.encode() not in kept


def test_serve__own_token__works_and_is_never_printed_and_a_polite_end_is_clean(folder):
    with _serving("-p", folder, "--port", 0, "--no-browser", WEAKSPOT_TOKEN=SECRET) as (
        process,
        line,
    ):
        root = line.split(" ")[0]
        assert _asked(f"{root}api/session", body={"token": SECRET})[0]["person"]["role"] == "owner"
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate()
    assert SECRET not in line + output
    assert (process.returncode, errors) == (0, "")


def test_serve__password_set__owner_comes_in_from_elsewhere(folder, tmp_path):
    state = f"sqlite:///{tmp_path / 'state.sqlite'}"
    made = _weakspot(
        "serve", "-p", folder, "--state", state, "--set-password", "Ada", WEAKSPOT_PASSWORD=SECRET
    )
    assert (made.returncode, made.stdout) == (
        0,
        "Ada can sign in with this password as an owner.\n",
    )
    assert SECRET.encode() not in (tmp_path / "state.sqlite").read_bytes()
    with _serving("-p", folder, "--state", state, "--host", "0.0.0.0", "--port", 0) as (_, line):
        root = line.split(" ")[0]
        assert "#token" not in line
        entry = {"login": "ada", "password": SECRET}
        assert _asked(f"{root}api/session", body=entry)[0]["person"] == {
            "name": "Ada",
            "role": "owner",
            "study_id": None,
        }
        with pytest.raises(urllib.error.HTTPError, match="401"):
            _asked(f"{root}api/session", body={"token": ""})


def test_serve__libraries_missing__said(folder, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['uvicorn'] = None\n")
    result = _weakspot("serve", "-p", folder, PYTHONPATH=str(tmp_path))
    _assert_clear_error(result, "'uvicorn'", "pip install 'weakspot[web]'")
