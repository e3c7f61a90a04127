"""The gate: which requests reach a route at all, and who is asking."""

import asyncio
import hmac
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from weakspot.core.errors import WeakspotError
from weakspot.web.gate.entering import Door
from weakspot.web.gate.headers import completed
from weakspot.web.gate.rates import Buckets, Rate
from weakspot.web.gate.sessions import request_token_of
from weakspot.web.gate.sizes import is_too_large, largest_for, limited
from weakspot.web.gate.texts import whole_text
from weakspot.web.problems import WORDS, Problem, RefusedError, problem_response, refusal
from weakspot.web.roles import Person, Role

REQUEST_TOKEN_HEADER = "x-weakspot-token"
HARMLESS = frozenset({"GET", "HEAD", "OPTIONS"})
ENTRANCES = frozenset({"/api/session", "/api/session/invitation"})
OPEN_TO_ALL = frozenset({"/api/health"})
OWN_SITE = frozenset({"same-origin", "none"})
REQUESTS = Rate(burst=200, a_second=50)
PICTURES = Rate(burst=4000, a_second=800)
ASKING_AT_ONCE = 8
FIRST_REFUSAL = 400


class Gate:
    """Refuses what does not come from a page of ours, is too much or too large; puts the person into the request.

    Args:
        app: what is behind the gate.
        door: where people come in.
    """

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app = app
        self._door = door
        self._requests = Buckets(REQUESTS)
        self._pictures = Buckets(PICTURES)
        # Threads of its own: whoever waits for a project to be prepared must not keep others from being recognised.
        self._asking = ThreadPoolExecutor(ASKING_AT_ONCE, thread_name_prefix="gate")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or not."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        outer, path = scope["path"], self._door.address.inner_path(scope["path"])
        scope["path"], scope["raw_path"] = path, path.encode("utf-8", "replace")
        answer = _Answer(send, path)
        try:
            if outer == self._door.address.root_path and outer:
                await RedirectResponse(f"{outer.rsplit('/', 1)[-1]}/")(scope, receive, answer.send)
                return
            headers = Headers(scope=scope)
            self._check_sender(scope, headers)
            if path.startswith("/api/"):
                await self._check_person(scope, headers)
            bounded = limited(receive, largest_for(path))
            is_json = "json" in headers.get("content-type", "").lower()
            await self._app(scope, await whole_text(bounded) if is_json else bounded, answer.send)
        except HTTPException as error:
            await problem_response(error.status_code, Problem(what=WORDS[error.status_code]))(scope, receive, answer.send)
        except WeakspotError as error:
            await refusal(error)(scope, receive, answer.send)
        except Exception:
            if not answer.has_started:
                await problem_response(500, Problem(what="The server made a mistake; its log says more."))(
                    scope, receive, answer.send
                )
            raise

    def _check_sender(self, scope: Scope, headers: Headers) -> None:
        """Refuse requests that were meant for somebody else, come from a stranger's page, or are too large."""
        address, host = self._door.address, headers.get("host", "")
        if not address.accepts_host(host):
            raise RefusedError(
                403,
                "The server is not known under this name.",
                where="Host",
                fix="Start `weakspot serve` with --public-address and the address that the browser shows.",
            )
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none").lower()
        is_change = scope["method"] not in HARMLESS
        if is_change and origin is not None and not address.accepts_origin(origin, host):
            raise RefusedError(403, "The request comes from a page of another server.", where="Origin")
        if site not in OWN_SITE and (is_change or scope["path"].startswith("/api/")):
            raise RefusedError(403, "The request comes from a page of another server.", where="Sec-Fetch-Site")
        if is_too_large(headers.get("content-length"), largest_for(scope["path"])):
            raise RefusedError(413, "The request is too large.", fix=f"At most {largest_for(scope['path']):,} bytes.")

    async def _check_person(self, scope: Scope, headers: Headers) -> None:
        """Find out who asks; refuse too many requests, and changes without the request token of the session."""
        path, method = scope["path"], scope["method"]
        token = _cookie(headers, self._door.address.cookie_name)
        is_change = method not in HARMLESS
        person = None if path in OPEN_TO_ALL else await self._person(token, is_change=is_change)
        self._count(person, scope)
        state = scope.setdefault("state", {})
        state["person"], state["request_token"], state["session_token"] = person, request_token_of(token), token
        if not is_change or (method == "POST" and path in ENTRANCES):
            return
        given = headers.get(REQUEST_TOKEN_HEADER, "")
        if not token or not hmac.compare_digest(given.encode(), request_token_of(token).encode()):
            if person is None:
                raise RefusedError(
                    401, "Nobody has come in with this browser.", fix="Open the address that `weakspot serve` printed."
                )
            raise RefusedError(403, "The request does not come from a page of this server.", where="X-Weakspot-Token")
        if self._door.is_read_only and person is not None and person.role is Role.ANNOTATOR:
            raise RefusedError(403, "This server only shows things; nothing can be changed.")

    async def _person(self, token: str, *, is_change: bool) -> Person | None:
        if not token:
            return None
        sessions = self._door.sessions
        known = None if is_change else sessions.remembered(token)
        person = known or await asyncio.get_running_loop().run_in_executor(self._asking, sessions.person_with, token)
        if person is not None and self._door.is_read_only and person.role is Role.OWNER:
            return replace(person, role=Role.VIEWER)
        return person

    def _count(self, person: Person | None, scope: Scope) -> None:
        key = f"person {person.person_id}" if person is not None else f"address {client_of(scope)}"
        buckets = self._pictures if scope["path"].startswith("/api/pictures/") and person is not None else self._requests
        wait = buckets.take(key)
        if wait:
            raise RefusedError(429, "Too many requests; wait a moment.", retry_after=wait)


class _Answer:
    """An answer on its way out: gets the headers that every answer carries."""

    def __init__(self, send: Send, path: str) -> None:
        self._send = send
        self._path = path
        self.has_started = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.has_started = True
            is_fine = message["status"] < FIRST_REFUSAL
            message = {**message, "headers": completed(message.get("headers", ()), self._path, is_fine=is_fine)}
        await self._send(message)


def client_of(scope: Scope) -> str:
    """Return the address that a request comes from."""
    client = scope.get("client")
    return str(client[0]) if client else "unknown"


def _cookie(headers: Headers, name: str) -> str:
    for line in headers.getlist("cookie"):
        for part in line.split(";"):
            key, _, value = part.strip().partition("=")
            if key == name:
                return value.strip('"')[:200]
    return ""
