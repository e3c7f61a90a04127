"""The server's own routes, asked in this process: what is exported is what the server would have answered."""

import asyncio
import json
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

from fastapi import FastAPI
from pydantic import JsonValue
from starlette.types import ASGIApp, Message, Scope

from weakspot.web import problems
from weakspot.web.application import ROUTERS
from weakspot.web.roles import Person, Role
from weakspot.web.server_parts import ServerParts

READER = Person(person_id="static export", name="exported pages", role=Role.OWNER)
FOUND = 200


@dataclass(frozen=True, kw_only=True)
class Question:
    """One request of a page.

    Args:
        path: as it is, not encoded.
        query: names and values, in any order; a name may occur several times.
        body: what is sent, if it is not a GET.
        also: other queries that get the same answer, for example the one without the run.
    """

    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: Mapping[str, JsonValue] | None = None
    also: tuple[tuple[tuple[str, str], ...], ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """Return under which names pages look for the answer, see `answerKey` in frontend/src/api/static.ts."""
        return tuple(answer_key(self.path, query, self.body) for query in (self.query, *self.also))


def answer_key(
    path: str, query: Sequence[tuple[str, str]], body: Mapping[str, JsonValue] | None = None
) -> str:
    """Return the name of an answer: the path with its query by name, not encoded, and the fields of the body by name.

    >>> answer_key("/api/slices", [("run", "a b"), ("kind", "*")])
    '/api/slices?kind=*&run=a b'
    >>> answer_key("/api/classes/phrase", [], {"title": "x", "offset": 0})
    'POST /api/classes/phrase {"offset":0,"title":"x"}'
    """
    asked = "&".join(f"{name}={value}" for name, value in sorted(query, key=lambda pair: pair[0]))
    key = f"{path}?{asked}" if asked else path
    if body is None:
        return key
    return f"POST {key} {json.dumps(dict(sorted(body.items())), ensure_ascii=False, separators=(',', ':'))}"


@dataclass(eq=False)
class Asker:
    """Asks the routes of a server as a reader who is signed in; there is no network and no session.

    Answers are worked out in a thread of their own, so that a program which has an event loop already, like a notebook, can ask.

    Args:
        parts: what the server holds.
        hidden: texts that must not leave this machine, with what stands in their place.
    """

    parts: ServerParts
    hidden: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make the server."""
        self._app = FastAPI()
        self._app.state.parts = self.parts
        problems.add_handlers(self._app)
        for page in ROUTERS:
            self._app.include_router(page.router)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def __enter__(self) -> "Asker":
        """Begin to ask."""
        return self

    def __exit__(self, *_error: object) -> None:
        """End what answers."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def ask(self, question: Question) -> JsonValue | None:
        """Return an answer without what must not leave this machine; None if the server refuses."""
        content = self.data(question.path, question.query, question.body)
        return None if content is None else self._scrub(json.loads(content))

    def data(
        self,
        path: str,
        query: Sequence[tuple[str, str]] = (),
        body: Mapping[str, JsonValue] | None = None,
    ) -> bytes | None:
        """Return an answer as it is, for example an image; None if the server refuses."""
        sent = b"" if body is None else json.dumps(dict(body)).encode()
        scope = _scope("GET" if body is None else "POST", path, urlencode(query))
        status, content = asyncio.run_coroutine_threadsafe(
            _answer(self._app, scope, sent), self._loop
        ).result()
        return content if status == FOUND else None

    def _scrub(self, value: JsonValue) -> JsonValue:
        if isinstance(value, dict):
            return {
                name: _first_words(item) if name == "command" else self._scrub(item)
                for name, item in value.items()
            }
        if isinstance(value, list):
            return [self._scrub(item) for item in value]
        if isinstance(value, str):
            for text, instead in self.hidden.items():
                value = value.replace(text, instead)
        return value


def _scope(method: str, path: str, query: str) -> Scope:
    """Return a request of the reader, who stands where the middleware puts whoever is signed in."""
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": quote(path).encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")],
        "client": ("127.0.0.1", 0),
        "server": ("127.0.0.1", 0),
        "state": {"person": READER, "csrf_token": "", "session_token": ""},
    }


async def _answer(app: ASGIApp, scope: Scope, body: bytes) -> tuple[int, bytes]:
    status, content = 0, bytearray()

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = int(message["status"])
        content.extend(message.get("body", b""))

    await app(scope, receive, send)
    return status, bytes(content)


def _first_words(command: JsonValue) -> JsonValue:
    """Return a command without its options, which may name files.

    >>> _first_words("weakspot demo --folder my/fruit")
    'weakspot demo'
    """
    if not isinstance(command, str):
        return command
    found = re.match(r"\S+(?: [a-z][a-z-]*)?", command)
    return found[0].rsplit("/", 1)[-1] if found else ""
