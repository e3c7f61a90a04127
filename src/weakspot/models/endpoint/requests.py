"""One HTTP request to an address that can be used, with a token that is never written down, tried again when that can help.

A call may take only so long in all, however slowly its data trickles in; what an answer points at is fetched the same way and never
larger than allowed.
"""

import os
import queue
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

import numpy as np

from weakspot.core.errors import ConfigError, ModelError, UnavailableError
from weakspot.data.remote import asked_wait

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def address_problems(url: str, token_variable: str | None) -> list[str]:
    problems = []
    try:
        address = urlsplit(url)
    except ValueError:
        return [f"url: {url!r} is no http or https address"]
    if address.scheme not in {"http", "https"} or not address.hostname:
        problems.append(f"url: {url!r} is no http or https address")
    if address.username is not None or address.password is not None:
        problems.append("url: holds a user name or password; use token_variable")
    if token_variable is not None and not token_variable.isidentifier():
        problems.append(
            "token_variable: is the name of an environment variable, never the token itself"
        )
    if token_variable is not None and address.scheme == "http" and address.hostname not in LOOPBACK:
        problems.append("url: a token would travel unencrypted; use https")
    return problems


def shown_address(url: str) -> str:
    """Return an address without its query, which may hold a key."""
    return urlunsplit(urlsplit(url)._replace(query="", fragment=""))


def bearer_headers(token_variable: str | None) -> dict[str, str]:
    """Return the headers that carry the token of an environment variable.

    Raises:
        ConfigError: if the variable holds none.
    """
    if token_variable is None:
        return {}
    token = os.environ.get(token_variable, "").strip()
    if not token:
        raise ConfigError(
            f"The environment variable {token_variable!r} holds no token.",
            where="token_variable",
            fix=f"export {token_variable}=...",
        )
    return {"Authorization": f"Bearer {token}"}


def address_with(url: str, path: str) -> str:
    """Return an address that ends in a path, whether or not the given one does.

    >>> address_with("http://localhost:8000/v1/", "/chat"), address_with("http://localhost:8000/v1/chat", "/chat")
    ('http://localhost:8000/v1/chat', 'http://localhost:8000/v1/chat')
    """
    address = urlsplit(url)
    own = address.path.rstrip("/")
    return address._replace(path=own if own.endswith(path) else own + path).geturl()


def client_of(*, token_variable: str | None, timeout_seconds: float, concurrency: int) -> Any:
    """Return a client that sends the token of an environment variable, follows no redirect, and opens few connections."""
    import httpx

    return httpx.Client(
        headers=bearer_headers(token_variable),
        timeout=timeout_seconds,
        # A request that was given up keeps its connection for a while; callers bound how many are under way.
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=concurrency),
        follow_redirects=False,
    )


Given = TypeVar("Given")
File = tuple[str, bytes, str]
SILENCES = 10.0
"""A whole answer may take this many times as long as a server may be silent."""
USUAL_SILENCE_SECONDS = 60.0


def seconds_for_all(client: Any) -> float:
    silence = client.timeout.read
    return SILENCES * (USUAL_SILENCE_SECONDS if silence is None else float(silence))


def within(seconds: float, call: Callable[[], Given]) -> Given:
    """Return what a call gives, or its error; one that takes longer is left to itself in a thread that ends with the process.

    Raises:
        TimeoutError: if it takes longer.
    """
    given: queue.SimpleQueue[tuple[Given | None, BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            given.put((call(), None))
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is waited for
            given.put((None, error))

    threading.Thread(target=run, name="weakspot-request", daemon=True).start()
    try:
        result, error = given.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError(f"the answer was not complete after {seconds:g} s") from None
    if error is not None:
        raise error
    return result  # type: ignore[return-value]  # there is no error, so this is what the call gave


WORTH_A_RETRY = frozenset({408, 425, 429, 500, 502, 503, 504})
REFUSED = frozenset({401, 403})
_OK = 200


class RequestRefusedError(ModelError):
    """The server says that the request itself is wrong.

    Args:
        status: what it answered with.
        said: the beginning of its answer.
        where: the address as messages may show it.
    """

    def __init__(self, status: int, said: str, *, where: str) -> None:
        self.status = status
        self.said = said
        super().__init__(
            f"The endpoint answers with status {status}.",
            where=where,
            given=said[:200],
            fix="Check url and request schema.",
        )


@dataclass(frozen=True, kw_only=True)
class Retries:
    """How often and how soon a request is repeated.

    Args:
        n_retries: attempts after the first.
        first_wait_seconds: wait before the first retry; it doubles from then on, and up to half of it again is added at random.
        longest_wait_seconds: no wait is longer, whatever the server asks for.
        sleep: waits.
    """

    n_retries: int = 5
    first_wait_seconds: float = 0.5
    longest_wait_seconds: float = 60.0
    sleep: Callable[[float], None] = time.sleep

    def post(
        self,
        client: Any,
        url: str,
        body: dict[str, Any],
        *,
        jitter: np.random.Generator,
        where: str,
        files: Mapping[str, File] | None = None,
    ) -> bytes:
        """Send JSON, or a form if there are files, and return the body of the answer.

        Args:
            client: an httpx client.
            url: address.
            body: what is sent.
            jitter: random part of the waits.
            where: the address as messages may show it.
            files: file name, content and media type by field.

        Raises:
            UnavailableError: if no attempt was answered.
            RequestRefusedError: if the server says that the request itself is wrong.
            ConfigError: if it says that the token is.
        """
        reason = ""
        for attempt in range(self.n_retries + 1):
            answer, reason, asked = _attempt(client, url, body, where=where, files=files)
            if answer is not None:
                return answer
            if attempt < self.n_retries:
                self.sleep(self.wait_seconds(attempt, asked, jitter))
        raise UnavailableError(
            f"The endpoint did not answer in {self.n_retries + 1} attempts: {reason}",
            where=where,
            fix="Check that it runs; raise timeout_seconds or n_retries, or lower concurrency and batch_size.",
        )

    def wait_seconds(self, attempt: int, asked: float | None, jitter: np.random.Generator) -> float:
        """Return how long to wait after an attempt that failed.

        Args:
            attempt: 0 for the first.
            asked: what the server asked for, or None.
            jitter: keeps many clients from coming back at the same instant.
        """
        grown = self.first_wait_seconds * 2.0**attempt * (1.0 + 0.5 * float(jitter.random()))
        return min(grown if asked is None else asked, self.longest_wait_seconds)


def _attempt(
    client: Any,
    url: str,
    body: dict[str, Any],
    *,
    where: str,
    files: Mapping[str, File] | None,
) -> tuple[bytes | None, str, float | None]:
    """Return the answer; or None, why there is none, and the wait that the server asks for."""
    import httpx

    sent: dict[str, Any] = {"json": body} if files is None else {"data": body, "files": files}
    try:
        response = within(seconds_for_all(client), lambda: client.post(url, **sent))
    except TimeoutError as error:
        return None, str(error), None
    except httpx.TransportError as error:
        return None, f"{type(error).__name__}: {error}", None
    except (httpx.InvalidURL, UnicodeError) as error:
        raise ConfigError("This is no address of an endpoint.", where="url", given=where) from error
    if response.status_code == _OK:
        return response.content, "", None
    if response.status_code in WORTH_A_RETRY:
        return (
            None,
            f"status {response.status_code}",
            asked_wait(response.headers.get("Retry-After")),
        )
    if response.status_code in REFUSED:
        raise ConfigError(
            f"The endpoint refuses access with status {response.status_code}.",
            where=where,
            fix="Put a valid token into the environment variable that token_variable names.",
        )
    raise RequestRefusedError(response.status_code, response.text[:2000], where=where)


def fetch_bytes(
    client: Any, address: str, *, retries: Retries, jitter: np.random.Generator, most_bytes: int
) -> bytes:
    """Return the bytes at an address.

    Args:
        client: an httpx client.
        address: where they are.
        retries: how often and how soon it is tried again.
        jitter: random part of the waits.
        most_bytes: more is refused while it comes in.

    Raises:
        UnavailableError: if no attempt was answered.
        ModelError: if there is nothing, or too much.
    """
    reason = ""
    for attempt in range(retries.n_retries + 1):
        data, reason = _fetch_in_time(client, address, most_bytes)
        if data is not None:
            return data
        if attempt < retries.n_retries:
            retries.sleep(retries.wait_seconds(attempt, None, jitter))
    raise UnavailableError(
        f"The image that the endpoint made could not be fetched in {retries.n_retries + 1} attempts: {reason}",
        where=shown_address(address),
    )


def _fetch_in_time(client: Any, address: str, most_bytes: int) -> tuple[bytes | None, str]:
    try:
        return within(seconds_for_all(client), lambda: _fetch(client, address, most_bytes))
    except TimeoutError as error:
        return None, str(error)


def _fetch(client: Any, address: str, most_bytes: int) -> tuple[bytes | None, str]:
    """Return the bytes; or None and why there are none."""
    import httpx

    try:
        with client.stream("GET", address) as response:
            if response.status_code in WORTH_A_RETRY:
                return None, f"status {response.status_code}"
            if response.status_code != _OK:
                raise ModelError(
                    f"Where the endpoint's image should be, the answer is status {response.status_code}.",
                    where=shown_address(address),
                )
            data = bytearray()
            for block in response.iter_bytes():
                data += block
                if len(data) > most_bytes:
                    raise ModelError(
                        f"The endpoint's image has more than {most_bytes} bytes.",
                        where=shown_address(address),
                    )
            return bytes(data), ""
    except httpx.TransportError as error:
        return None, f"{type(error).__name__}: {error}"
