"""A real web server on this machine that misbehaves on demand, for tests of remote files."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import cast

REFUSALS: dict[str, tuple[int, dict[str, str], int]] = {
    "/secret": (403, {}, 1_000_000),
    "/later": (503, {"Retry-After": "3600"}, 1_000_000),
    "/busy": (429, {"Retry-After": "0"}, 2),
    "/broken": (500, {}, 2),
}
"""Status, headers, and how many requests are answered so."""
HABITS = (*REFUSALS, "/torn", "/trickled-head", "/trickle", "/whole", "/only-get")


class WebFolder:
    """Files by path, and what was asked for.

    Paths may begin with a habit: one of `REFUSALS`, `/torn` (once half, then the connection ends), `/trickle` (a byte at a time),
    `/trickled-head` (headers a byte at a time), `/whole` (ignores ranges), `/only-get` (knows no HEAD).
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.tags: dict[str, str] = {}
        self.seen: Counter[str] = Counter()
        self.address = ""
        self.is_ending = threading.Event()

    def put(self, name: str, content: bytes, tag: str = "") -> None:
        """Put a file on the server."""
        self.files[f"/{name}"] = content
        self.tags[f"/{name}"] = tag or f'"{hash(content)}"'


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    folder: WebFolder


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        folder = cast(_Server, self.server).folder
        path = self.path.partition("?")[0]
        folder.seen.update((f"{self.command} {path}", path))
        habit = next((one for one in HABITS if path.startswith(f"{one}/")), "")
        name = path.removeprefix(habit)
        status, headers, n_times = REFUSALS.get(
            habit, (405, {}, 1_000_000 * (habit == "/only-get" and self.command == "HEAD"))
        )
        if name not in folder.files:
            self.answer(404, b"", {})
        elif folder.seen[path] <= n_times:
            self.answer(status, b"", headers)
        elif habit == "/trickled-head":
            self.trickle(folder, b"HTTP/1.1 200 OK\r\nX-Long: " + b"a" * 10_000)
        elif habit == "/trickle":
            self.trickle(
                folder, b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b"a" * 100_000
            )
        else:
            self.give(folder.files[name], folder.tags[name], habit, is_first=folder.seen[path] == 1)

    def give(self, content: bytes, tag: str, habit: str, *, is_first: bool) -> None:
        wanted = self.headers.get("Range", "") if habit != "/whole" else ""
        status, part, headers = 200, content, {"ETag": tag}
        if wanted:
            first, last = wanted.removeprefix("bytes=").split("-")
            status, part = 206, content[int(first) : int(last) + 1 if last else len(content)]
            headers["Content-Range"] = f"bytes {first}-{int(first) + len(part) - 1}/{len(content)}"
        if wanted and not part:
            self.answer(416, b"", {"Content-Range": f"bytes */{len(content)}"})
        elif habit == "/torn" and is_first:
            self.answer(
                status, part[: len(part) // 2], {**headers, "Content-Length": str(len(part))}
            )
            self.close_connection = True
        else:
            self.answer(status, part, headers)

    def trickle(self, folder: WebFolder, content: bytes) -> None:
        self.close_connection = True
        for place in range(len(content)):
            if folder.is_ending.wait(0.02):
                return
            try:
                self.wfile.write(content[place : place + 1])
            except OSError:
                folder.seen["hung up"] += 1
                return

    def answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        pass


@contextmanager
def web_folder() -> Iterator[WebFolder]:
    """Serve files over http while the block runs."""
    running = _Server(("127.0.0.1", 0), _Handler)
    folder = running.folder = WebFolder()
    folder.address = f"http://127.0.0.1:{running.server_port}"
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield folder
    finally:
        folder.is_ending.set()
        running.shutdown()
        thread.join()
        running.server_close()
