"""What keeps a server from starting; real servers are started in tests/cli/test_serve_command.py."""

import socket
from pathlib import Path

import pytest

from weakspot.core.errors import ConfigError
from weakspot.project.project import Project
from weakspot.store.project import ProjectStore
from weakspot.web.auth.login import set_owner_password
from weakspot.web.serving import (
    ServeRequest,
    has_display,
    listen,
    open_state,
    read_token,
    serve_project,
)


@pytest.fixture
def folder(tmp_path):
    """A project without samples: nothing here gets as far as to open it."""
    (tmp_path / "weakspot.toml").write_text('[data]\nsource = "manifest.csv"\n')
    ProjectStore.create(tmp_path)
    return tmp_path


def _refused(folder, **changes) -> ConfigError:
    said: list[str] = []
    with pytest.raises(ConfigError) as refused:
        serve_project(ServeRequest(folder=folder, opens_browser=False, **changes), say=said.append)
    assert said == []
    return refused.value


def test_serve_project__port_taken__said_with_its_number(folder):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"The port {port} is taken" in _refused(folder, port=port).what


def test_listen__server_ended_while_a_page_was_open__may_start_again_at_once():
    with listen("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as page:
            first.accept()[0].close()
            assert page.recv(1) == b""
    with listen("127.0.0.1", port) as again:
        assert again.getsockname()[1] == port


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "example.org"])
def test_serve_project__other_machines_could_come_in__refused(folder, host):
    refused = _refused(folder, host=host, port=0)
    assert "Other machines can reach" in refused.what
    assert "WEAKSPOT_TOKEN" in str(refused.fix)
    assert "--set-password" in str(refused.fix)


def test_serve_project__host_unknown__said(folder):
    assert "cannot listen" in _refused(folder, host="no such host", port=0, token="x" * 24).what


def test_serve_project__public_address_is_none__said(folder):
    assert "public address" in _refused(folder, public_address="hub.example.org").what


def test_serve_project__password_of_an_owner__is_enough(folder):
    state = open_state(Project.open(folder))
    set_owner_password(state, "Ada", "long enough")
    state.close()
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert "is taken" in _refused(folder, host="0.0.0.0", port=port).what


def test_serve_project__no_project__said(tmp_path, monkeypatch):
    assert "There is no weakspot.toml here" in _refused(tmp_path / "nothing").what
    monkeypatch.chdir(tmp_path)
    assert "There is no weakspot.toml here" in _refused(Path()).what
    assert list(tmp_path.iterdir()) == []


def test_serve_project__nothing_ingested_and_read_only__said(tmp_path):
    (tmp_path / "weakspot.toml").write_text('[data]\nsource = "manifest.csv"\n')
    assert "nothing to show" in _refused(tmp_path, is_read_only=True).what


def test_given_token__too_short__said(monkeypatch):
    monkeypatch.setenv("WEAKSPOT_TOKEN", "short")
    with pytest.raises(ConfigError, match="at least 20"):
        read_token()


def test_given_token__none_or_long__taken(monkeypatch):
    monkeypatch.delenv("WEAKSPOT_TOKEN", raising=False)
    assert read_token() == ""
    monkeypatch.setenv("WEAKSPOT_TOKEN", " " + "x" * 24)
    assert read_token() == "x" * 24


def test_has_display__linux__by_its_variables(monkeypatch):
    monkeypatch.setattr("sys.platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    assert not has_display()
    monkeypatch.setenv("DISPLAY", ":0")
    assert has_display()
