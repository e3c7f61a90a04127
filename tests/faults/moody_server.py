"""An endpoint on loopback that answers well for a while, then as its mood says, until it recovers."""

import contextlib
import json
import socket
import threading
import time

WELL = "well"
MOODS = ("down", "drops", "trickles headers", "trickles the body", "429", "500", "503", "nonsense")
TRICKLE_SECONDS = 0.02


class MoodyServer:
    """Speaks the JSON of docs/reference/endpoint.md over plain sockets.

    Args:
        n_good: images that it answers for before its mood changes.
        mood: one of `MOODS`.
    """

    def __init__(self, n_good: int, mood: str) -> None:
        self.mood = WELL
        self.n_answered = 0
        self._n_good, self._later_mood = n_good, mood
        self._guard = threading.Lock()
        self._closing = threading.Event()
        self._socket = self._listening(0)
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._serve, args=(self._socket,), daemon=True).start()

    def recover(self) -> None:
        """Answer well from now on."""
        self._n_good, self.mood = 1 << 30, WELL
        if self._socket.fileno() < 0:
            self._socket = self._listening(self.port)
            threading.Thread(target=self._serve, args=(self._socket,), daemon=True).start()

    def close(self) -> None:
        self._closing.set()
        self._socket.close()

    def _listening(self, port: int) -> socket.socket:
        made = socket.socket()
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(("127.0.0.1", port))
        made.listen(64)
        made.settimeout(0.05)
        return made

    def _serve(self, listening: socket.socket) -> None:
        while not self._closing.is_set():
            try:
                connection, _ = listening.accept()
            except TimeoutError:
                continue
            except OSError:
                return
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.settimeout(10)
            body = self._request(connection)
            if body is not None:
                self._answer(connection, len(json.loads(body)["instances"]))

    def _request(self, connection: socket.socket) -> bytes | None:
        data = b""
        while b"\r\n\r\n" not in data:
            block = connection.recv(65536)
            if not block:
                return None
            data += block
        head, _, body = data.partition(b"\r\n\r\n")
        length = next(
            int(line.split(b":")[1])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length")
        )
        while len(body) < length:
            body += connection.recv(65536)
        return body

    def _answer(self, connection: socket.socket, n_images: int) -> None:
        with self._guard:
            if self.mood == WELL and self.n_answered >= self._n_good:
                self.mood = self._later_mood
                if self.mood == "down":
                    self._socket.close()
            mood = self.mood
            if mood == WELL:
                self.n_answered += n_images
        content = json.dumps(
            {
                "predictions": [
                    {"probabilities": {"disc": 0.7, "square": 0.1, "star": 0.1, "triangle": 0.1}}
                ]
                * n_images
            }
        )
        status = {
            "429": "429 Slow down\r\nRetry-After: 0",
            "500": "500 Broken",
            "503": "503 Away",
        }.get(mood, "200 OK")
        head = f"HTTP/1.1 {status}\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n".encode()
        if mood == "down":
            return
        if mood == "drops":
            connection.sendall(head + content.encode()[:20])
        elif mood.startswith("trickles"):
            connection.sendall(head[:15] if mood.endswith("headers") else head)
            self._trickle(connection)
        else:
            connection.sendall(
                head + (b"?" * len(content) if mood == "nonsense" else content.encode())
            )

    def _trickle(self, connection: socket.socket) -> None:
        while not self._closing.is_set() and self.mood != WELL:
            connection.sendall(b" ")
            time.sleep(TRICKLE_SECONDS)
