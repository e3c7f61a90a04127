"""Real servers on this machine for tests of remote files: one that misbehaves on demand, and one a cloud."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class WebFolder:
    """Files by path, what happened to requests, and how the next ones are answered.

    Paths may begin with a habit: `/busy` (429 with Retry-After twice), `/broken` (500 twice), `/torn` (half, then the connection ends,
    once), `/trickle` (a byte at a time), `/trickled-head` (headers a byte at a time), `/whole` (ignores ranges), `/secret` (403),
    `/only-get` (no HEAD), `/later` (503, in an hour).
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


def _handler(folder: WebFolder) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            path, _, _ = self.path.partition("?")
            folder.seen[f"{self.command} {path}"] += 1
            folder.seen[path] += 1
            habit, name = next(((one, path.removeprefix(one)) for one in HABITS if path.startswith(f"{one}/")), ("", path))
            content = folder.files.get(name)
            if content is None:
                return self.answer(404, b"")
            if habit == "/only-get" and self.command == "HEAD":
                return self.answer(405, b"")
            if habit == "/secret":
                return self.answer(403, b"")
            if habit == "/busy" and folder.seen[path] <= 2:
                return self.answer(429, b"", {"Retry-After": "0"})
            if habit == "/later":
                return self.answer(503, b"", {"Retry-After": "3600"})
            if habit == "/broken" and folder.seen[path] <= 2:
                return self.answer(500, b"")
            if habit == "/trickled-head":
                return self.trickle(b"HTTP/1.1 200 OK\r\nX-Long: " + b"a" * 10_000)
            return self.give(content, habit, path, name)

        def give(self, content: bytes, habit: str, path: str, name: str) -> None:
            headers = {"ETag": folder.tags[name]}
            wanted = self.headers.get("Range")
            status, part = 200, content
            if wanted and habit != "/whole":
                first, last = wanted.removeprefix("bytes=").split("-")
                start, stop = int(first), int(last) + 1 if last else len(content)
                if start >= len(content):
                    return self.answer(416, b"", {"Content-Range": f"bytes */{len(content)}"})
                status, part = 206, content[start:stop]
                headers["Content-Range"] = f"bytes {start}-{start + len(part) - 1}/{len(content)}"
            if habit == "/torn" and folder.seen[path] == 1:
                self.answer(status, part[: len(part) // 2], {**headers, "Content-Length": str(len(part))})
                self.close_connection = True
                return None
            if habit == "/trickle":
                return self.trickle(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b"a" * 100_000)
            return self.answer(status, part, headers)

        def trickle(self, content: bytes) -> None:
            self.close_connection = True
            for place in range(len(content)):
                if folder.is_ending.wait(0.02):
                    return
                try:
                    self.wfile.write(content[place : place + 1])
                except OSError:
                    folder.seen["hung up"] += 1
                    return

        def answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            pass

    return Handler


HABITS = ("/busy", "/later", "/broken", "/torn", "/trickled-head", "/trickle", "/whole", "/secret", "/only-get")


@contextmanager
def web_folder() -> Iterator[WebFolder]:
    """Serve files over http while the block runs."""
    folder = WebFolder()
    running = ThreadingHTTPServer(("127.0.0.1", 0), _handler(folder))
    running.daemon_threads = True
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
