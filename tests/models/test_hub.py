import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from weakspot.models.transformers.source import (
    hub_answers,
    hub_cache_folder,
    hub_is_off,
    is_in_hub_cache,
)


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch, tmp_path):
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HOME", "HF_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server():
    class Answer(BaseHTTPRequestHandler):
        def do_HEAD(self):
            self.send_response(503 if self.path == "/broken" else 200)
            self.end_headers()

        def log_message(self, *_):
            pass

    running = HTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=running.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{running.server_port}"
    running.shutdown()
    thread.join()
    running.server_close()


def test_hub_answers__a_server_that_does_and_one_that_is_broken(server):
    assert hub_answers(address=server)
    assert not hub_answers(address=f"{server}/broken")


def test_hub_answers__nobody_there_or_no_address():
    assert not hub_answers(address="http://127.0.0.1:9", timeout_seconds=1)
    assert not hub_answers(address="nonsense", timeout_seconds=1)


@pytest.mark.parametrize(
    ("value", "expected"),
    [("1", "HF_HUB_OFFLINE"), ("TRUE", "HF_HUB_OFFLINE"), ("0", None), ("", None)],
)
def test_hub_is_off__by_variable(monkeypatch, server, value, expected):
    monkeypatch.setenv("HF_HUB_OFFLINE", value)
    assert hub_is_off() == expected
    assert hub_answers(address=server) is (expected is None)


def test_hub_cache_folder__in_order_of_variables(monkeypatch, tmp_path):
    assert hub_cache_folder() == tmp_path / "huggingface" / "hub"
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    assert hub_cache_folder() == tmp_path / "home" / "hub"
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    assert hub_cache_folder() == tmp_path / "cache"


def test_is_in_hub_cache__needs_configuration_and_weights(tmp_path):
    snapshot = tmp_path / "huggingface" / "hub" / "models--someone--clip" / "snapshots" / "abc"
    assert not is_in_hub_cache("someone/clip")
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    assert not is_in_hub_cache("someone/clip")
    (snapshot / "model.safetensors").write_bytes(b"")
    assert is_in_hub_cache("someone/clip")
    assert not is_in_hub_cache("someone/other")
