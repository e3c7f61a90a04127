"""Middleware of the server: which requests reach a route at all, how large their bodies may be, and who is asking."""

import asyncio
import hmac
import json
import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from weakspot.core.errors import WeakspotError
from weakspot.web.auth.login import Buckets, Login, csrf_token_of
from weakspot.web.problems import WORDS, Problem, RefusedError, problem_response, refusal
from weakspot.web.state.store import Person, Role

MEBIBYTE = 1024 * 1024
LARGEST = 1 * MEBIBYTE
MAX_UPLOAD = 20 * MEBIBYTE
UPLOADS = "/api/uploads/"


def largest_for(path: str) -> int:
    return MAX_UPLOAD if path.startswith(UPLOADS) else LARGEST


def is_too_large(announced: str | None, largest: int) -> bool:
    """Return whether a request announces too much; an announcement that is no number is left to the server.

    >>> is_too_large("12", 10), is_too_large(None, 10)
    (True, False)
    """
    return announced is not None and announced.isdecimal() and int(announced[:20]) > largest


def limit_body(receive: Receive, largest: int) -> Receive:
    """Return the same receiver, which refuses a body that grows beyond its limit."""
    n_bytes = 0

    async def limited_receive() -> Message:
        nonlocal n_bytes
        message = await receive()
        n_bytes += len(message.get("body", b""))
        if n_bytes > largest:
            raise HTTPException(413)
        return message

    return limited_receive


_MAY_BE_HALF = re.compile(rb"\\u[dD][89a-fA-F]")


def has_half_character(body: bytes) -> bool:
    r"""Return whether a JSON text holds half a character; what is no JSON is left to others.

    >>> has_half_character(b'{"name": "\\ud800"}'), has_half_character(b'{"name": "\\ud83c\\udf4e"}')
    (True, False)
    """
    if _MAY_BE_HALF.search(body) is None:
        return False
    try:
        json.dumps(json.loads(body), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    except (ValueError, RecursionError):
        return False
    return False


async def read_whole_text(receive: Receive) -> Receive:
    """Read a JSON request to its end and return a receiver that gives it once more.

    Raises:
        RefusedError: 400 if it holds half a character.
    """
    chunks: list[bytes] = []
    message: Message = {"type": "http.request", "more_body": True}
    while message["type"] == "http.request" and message.get("more_body", False):
        message = await receive()
        chunks.append(message.get("body", b""))
    body = b"".join(chunks)
    if has_half_character(body):
        raise RefusedError(400, "A text in the request ends in the middle of a character.")
    waiting = [message] if message["type"] != "http.request" else []
    waiting.append({"type": "http.request", "body": body, "more_body": bool(waiting)})

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


Header = tuple[bytes, bytes]

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "font-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
FORBIDDEN_POWERS = (
    "accelerometer",
    "camera",
    "display-capture",
    "geolocation",
    "gyroscope",
    "microphone",
    "payment",
    "usb",
)
EVERYWHERE = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": ", ".join(f"{power}=()" for power in FORBIDDEN_POWERS),
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
STORED = "private, max-age=31536000, immutable"


def complete_headers(headers: Iterable[Header], path: str, *, is_fine: bool = True) -> list[Header]:
    """Return the headers of an answer completed by those that it does not set itself.

    Args:
        headers: of the answer.
        path: below the server's root.
        is_fine: whether it is no refusal.
    """
    given = list(headers)
    present = {name.lower() for name, _ in given}
    wanted = EVERYWHERE | {"cache-control": _caching(path, is_fine=is_fine)}
    added = ((name.encode(), value.encode()) for name, value in wanted.items())
    return given + [(name, value) for name, value in added if name not in present]


def _caching(path: str, *, is_fine: bool) -> str:
    """Return how long browsers keep an answer: names of assets change with their content, everything else is asked for again."""
    if path.startswith("/api/") or not is_fine:
        return "no-store"
    return STORED if path.startswith("/assets/") else "no-cache"


CSRF_TOKEN_HEADER = "x-csrf-token"
HARMLESS = frozenset({"GET", "HEAD", "OPTIONS"})
SIGN_IN_PATHS = frozenset({"/api/session", "/api/session/invitation"})
OPEN_TO_ALL = frozenset({"/api/health"})
OWN_SITE = frozenset({"same-origin", "none"})
REQUESTS = 200.0, 50.0
IMAGES = 4000.0, 800.0
ASKING_AT_ONCE = 8
FIRST_REFUSAL = 400


class RequestChecks:
    """Refuses what does not come from a page of ours, is too much or too large; puts the person into the request.

    Args:
        app: what handles the requests that pass.
        login: signs people in.
    """

    def __init__(self, app: ASGIApp, login: Login) -> None:
        self._app = app
        self._login = login
        self._requests = Buckets(REQUESTS)
        self._images = Buckets(IMAGES)
        # Threads of its own: requests that wait for a project to be prepared must not keep others from being recognised.
        self._asking = ThreadPoolExecutor(ASKING_AT_ONCE, thread_name_prefix="sign-in")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or not."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        outer, path = scope["path"], self._login.address.inner_path(scope["path"])
        scope["path"], scope["raw_path"] = path, path.encode("utf-8", "replace")
        answer = _Answer(send, path)
        try:
            if outer == self._login.address.root_path and outer:
                await RedirectResponse(f"{outer.rsplit('/', 1)[-1]}/")(scope, receive, answer.send)
                return
            headers = Headers(scope=scope)
            self._check_sender(scope, headers)
            if path.startswith("/api/"):
                await self._check_person(scope, headers)
            bounded = limit_body(receive, largest_for(path))
            is_json = "json" in headers.get("content-type", "").lower()
            await self._app(
                scope, await read_whole_text(bounded) if is_json else bounded, answer.send
            )
        except HTTPException as error:
            await problem_response(error.status_code, Problem(what=WORDS[error.status_code]))(
                scope, receive, answer.send
            )
        except WeakspotError as error:
            await refusal(error)(scope, receive, answer.send)
        except Exception:
            if not answer.has_started:
                await problem_response(
                    500, Problem(what="The server made a mistake; its log says more.")
                )(scope, receive, answer.send)
            raise

    def _check_sender(self, scope: Scope, headers: Headers) -> None:
        """Refuse requests that were meant for somebody else, come from a stranger's page, or are too large."""
        address, host = self._login.address, headers.get("host", "")
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
            raise RefusedError(
                403, "The request comes from a page of another server.", where="Origin"
            )
        if site not in OWN_SITE and (is_change or scope["path"].startswith("/api/")):
            raise RefusedError(
                403, "The request comes from a page of another server.", where="Sec-Fetch-Site"
            )
        if is_too_large(headers.get("content-length"), largest_for(scope["path"])):
            raise RefusedError(
                413,
                "The request is too large.",
                fix=f"At most {largest_for(scope['path']):,} bytes.",
            )

    async def _check_person(self, scope: Scope, headers: Headers) -> None:
        """Find out who asks; refuse too many requests, and changes without the CSRF token of the session."""
        path, method = scope["path"], scope["method"]
        token = _cookie(headers, self._login.address.cookie_name)
        is_change = method not in HARMLESS
        # No browser sends this header by itself, so a page of a stranger cannot use it, and no CSRF token is needed.
        given = "" if token or path in OPEN_TO_ALL else _bearer_token(headers)
        person: Person | None = None
        if given:
            person = await self._script(given, client_of(scope))
        elif path not in OPEN_TO_ALL:
            person = await self._person(token, is_change=is_change)
        self._count(person, scope)
        state = scope.setdefault("state", {})
        state["person"], state["csrf_token"], state["session_token"] = (
            person,
            csrf_token_of(token),
            token,
        )
        if given or not is_change or (method == "POST" and path in SIGN_IN_PATHS):
            return
        sent = headers.get(CSRF_TOKEN_HEADER, "")
        if not token or not hmac.compare_digest(sent.encode(), csrf_token_of(token).encode()):
            if person is None:
                raise RefusedError(
                    401,
                    "Nobody is signed in with this browser.",
                    fix="Open the address that `weakspot serve` printed.",
                )
            raise RefusedError(
                403,
                "The request does not come from a page of this server.",
                where="X-CSRF-Token",
            )
        if self._login.is_read_only and person is not None and person.role is Role.ANNOTATOR:
            raise RefusedError(403, "This server only shows things; nothing can be changed.")

    async def _script(self, token: str, client: str) -> Person:
        """Return the owner if a script sent the owner's token."""
        person = await asyncio.get_running_loop().run_in_executor(
            self._asking, partial(self._login.person_with_owner_token, token, client=client)
        )
        return replace(person, role=Role.VIEWER) if self._login.is_read_only else person

    async def _person(self, token: str, *, is_change: bool) -> Person | None:
        if not token:
            return None
        sessions = self._login.sessions
        known = None if is_change else sessions.recall(token)
        person = known or await asyncio.get_running_loop().run_in_executor(
            self._asking, sessions.person_with, token
        )
        if person is not None and self._login.is_read_only and person.role is Role.OWNER:
            return replace(person, role=Role.VIEWER)
        return person

    def _count(self, person: Person | None, scope: Scope) -> None:
        key = f"person {person.person_id}" if person is not None else f"address {client_of(scope)}"
        buckets = (
            self._images
            if scope["path"].startswith("/api/images/") and person is not None
            else self._requests
        )
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
            message = {
                **message,
                "headers": complete_headers(
                    message.get("headers", ()), self._path, is_fine=is_fine
                ),
            }
        await self._send(message)


def client_of(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else "unknown"


def _bearer_token(headers: Headers) -> str:
    kind, _, token = headers.get("authorization", "").partition(" ")
    return token.strip()[:200] if kind.lower() == "bearer" else ""


def _cookie(headers: Headers, name: str) -> str:
    for line in headers.getlist("cookie"):
        for part in line.split(";"):
            key, _, value = part.strip().partition("=")
            if key == name:
                return value.strip('"')[:200]
    return ""
