"""What all models behind an address share: where they are, how patiently they are asked, and what is never done.

A token is never written down. A call may take only so long in all, however slowly its data trickles in; what an answer points at is
fetched the same way and never larger than allowed.
"""

import io
import os
import queue
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, TypeVar
from urllib.parse import urlsplit, urlunsplit

import numpy as np
from PIL import Image

from weakspot.core.bounds import Bounds, Count, check_bounds
from weakspot.core.errors import ConfigError, ModelError, UnavailableError
from weakspot.core.registry import Sendable
from weakspot.data.remote import asked_wait
from weakspot.models.loading import LoadedOnce, model_id
from weakspot.models.preprocessing import resize_shorter_side

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
MAX_WAIT_SECONDS = 60.0
SILENCES = 10.0
"""A whole answer may take this many times as long as a server may be silent."""
WORTH_A_RETRY = frozenset({408, 425, 429, 500, 502, 503, 504})
REFUSED = frozenset({401, 403})
_OK = 200

Seconds = Annotated[float, Bounds(ge=0.001, le=86_400)]
Retries = Annotated[int, Bounds(ge=0, le=100)]
FirstWait = Annotated[float, Bounds(ge=0, le=3600)]
Result = TypeVar("Result")
File = tuple[str, bytes, str]
Attempt = tuple[bytes | None, str, float | None]
"""The answer; or None, why there is none, and the wait that the server asks for."""


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


@dataclass(kw_only=True, eq=False)
class Endpoint(Sendable):
    """A service behind an address, asked by several threads at a time.

    Args:
        url: address that takes the POST requests; for OpenAI-compatible services up to and including the version, such as
            `https://host/v1`.
        version: anything that changes when the model behind the address does; the address alone cannot tell.
        token_variable: name of the environment variable that holds the bearer token; the token itself is never written down.
        timeout_seconds: for connecting, and for each wait for data.
        n_retries: attempts after the first, on connection errors and on status 408, 425, 429 and 5xx.
        first_wait_seconds: wait before the first retry, doubled from then on.
        concurrency: requests under way at a time.
    """

    url: str
    version: str = ""
    token_variable: str | None = None
    timeout_seconds: Seconds = 60.0
    n_retries: Retries = 3
    first_wait_seconds: FirstWait = 0.5
    concurrency: Count = 4

    path: ClassVar[str] = ""
    """What the address ends with, whether or not the url does."""

    def __post_init__(self) -> None:
        check_bounds(self, where="options", problems=self._problems())

    def post(
        self,
        body: dict[str, Any],
        *,
        jitter: np.random.Generator,
        files: Mapping[str, File] | None = None,
    ) -> bytes:
        """Send JSON, or a form if there are files, and return the body of the answer.

        Args:
            body: what is sent.
            jitter: random part of the waits.
            files: file name, content and media type by field.

        Raises:
            UnavailableError: if no attempt was answered.
            RequestRefusedError: if the server says that the request itself is wrong.
            ConfigError: if it says that the token is.
        """
        sent: dict[str, Any] = {"json": body} if files is None else {"data": body, "files": files}
        return self._tried(
            partial(_post, self._client, self.address, sent),
            jitter,
            failure="The endpoint did not answer",
            where=self.where,
            fix="Check that it runs; raise timeout_seconds or n_retries, or lower concurrency and batch_size.",
        )

    def fetch(self, address: str, *, jitter: np.random.Generator, max_bytes: int) -> bytes:
        """Return the bytes at an address that an answer points at.

        Raises:
            UnavailableError: if no attempt was answered.
            ModelError: if there is nothing, or too much.
        """
        return self._tried(
            partial(_get, self._client, address, max_bytes),
            jitter,
            failure="The image that the endpoint made could not be fetched",
            where=shown_address(address),
        )

    def ask_all(self, ask: Callable[..., Result], *columns: Any) -> list[Result]:
        """Return what `ask` gives for each entry of the columns, in their order."""
        with ThreadPoolExecutor(max_workers=self.concurrency) as pool:
            return list(pool.map(ask, *columns))

    def close(self) -> None:
        if (client := vars(self).pop("_client", None)) is not None:
            client.close()

    @property
    def address(self) -> str:
        return address_with(self.url, self.path) if self.path else self.url

    @property
    def where(self) -> str:
        """The address as messages may show it."""
        return shown_address(self.address)

    def _identity(self, kind: str, *parts: Any, model: str = "") -> str:
        """Return `kind:host/path:model@hash`, the hash over the parts."""
        address = urlsplit(self.url)
        name = f"{address.hostname}{address.path}"
        return model_id(kind, f"{name}:{model}" if model else name, self.url, *parts)

    def _problems(self) -> list[str]:
        return address_problems(self.url, self.token_variable)

    def _tried(
        self,
        attempt: Callable[[], Attempt],
        jitter: np.random.Generator,
        *,
        failure: str,
        where: str,
        fix: str | None = None,
    ) -> bytes:
        import httpx

        reason = ""
        for number in range(self.n_retries + 1):
            asked: float | None = None
            try:
                answer, reason, asked = within(SILENCES * self.timeout_seconds, attempt)
                if answer is not None:
                    return answer
            except TimeoutError as error:
                reason = str(error)
            except httpx.TransportError as error:
                reason = f"{type(error).__name__}: {error}"
            if number < self.n_retries:
                time.sleep(wait_seconds(self.first_wait_seconds, number, asked, jitter))
        raise UnavailableError(
            f"{failure} in {self.n_retries + 1} attempts: {reason}", where=where, fix=fix
        )

    @LoadedOnce
    def _client(self) -> Any:
        import httpx

        return httpx.Client(
            headers=bearer_headers(self.token_variable),
            timeout=self.timeout_seconds,
            # A request that was given up keeps its connection for a while; the pool of threads bounds how many are under way.
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=self.concurrency),
            follow_redirects=False,
        )


def wait_seconds(
    first: float, attempt: int, asked: float | None, jitter: np.random.Generator
) -> float:
    """Return how long to wait after an attempt that failed: doubled from one to the next, and up to half of it again at random.

    Args:
        first: wait after the first attempt.
        attempt: 0 for the first.
        asked: what the server asked for, or None.
        jitter: keeps many clients from coming back at the same instant.
    """
    grown = first * 2.0**attempt * (1.0 + 0.5 * float(jitter.random()))
    return min(grown if asked is None else asked, MAX_WAIT_SECONDS)


def _post(client: Any, url: str, sent: dict[str, Any]) -> Attempt:
    import httpx

    where = shown_address(url)
    try:
        response = client.post(url, **sent)
    except (httpx.InvalidURL, UnicodeError) as error:
        raise ConfigError("This is no address of an endpoint.", where="url", given=where) from error
    status = response.status_code
    if status == _OK:
        return response.content, "", None
    if status in WORTH_A_RETRY:
        return None, f"status {status}", asked_wait(response.headers.get("Retry-After"))
    if status in REFUSED:
        raise ConfigError(
            f"The endpoint refuses access with status {status}.",
            where=where,
            fix="Put a valid token into the environment variable that token_variable names.",
        )
    raise RequestRefusedError(status, response.text[:2000], where=where)


def _get(client: Any, address: str, max_bytes: int) -> Attempt:
    with client.stream("GET", address) as response:
        if response.status_code in WORTH_A_RETRY:
            return None, f"status {response.status_code}", None
        if response.status_code != _OK:
            raise ModelError(
                f"Where the endpoint's image should be, the answer is status {response.status_code}.",
                where=shown_address(address),
            )
        data = bytearray()
        for block in response.iter_bytes():
            data += block
            if len(data) > max_bytes:
                raise ModelError(
                    f"The endpoint's image has more than {max_bytes} bytes.",
                    where=shown_address(address),
                )
        return bytes(data), "", None


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


def model_problems(model: str) -> list[str]:
    is_name = isinstance(model, str) and model.strip()
    return [] if is_name else ["model: must be the name of a model"]


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


def within(seconds: float, call: Callable[[], Result]) -> Result:
    """Return what a call gives, or its error; one that takes longer is left to itself in a thread that ends with the process.

    Raises:
        TimeoutError: if it takes longer.
    """
    outcome: queue.SimpleQueue[tuple[Result | None, BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            outcome.put((call(), None))
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is waited for
            outcome.put((None, error))

    threading.Thread(target=run, name="weakspot-request", daemon=True).start()
    try:
        result, error = outcome.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError(f"the answer was not complete after {seconds:g} s") from None
    if error is not None:
        raise error
    return result  # type: ignore[return-value]  # there is no error, so this is what the call gave


def smaller(image: Image.Image, side: int | None) -> Image.Image:
    """Return an image in RGB with its shorter side at most so long, if a side is given."""
    sent = image.convert("RGB")
    return sent if side is None or min(sent.size) <= side else resize_shorter_side(sent, side)


def encoded(image: Image.Image, **options: Any) -> bytes:
    """Return the bytes of an image file; the options are those of `Image.save`."""
    stream = io.BytesIO()
    image.save(stream, **options)
    return stream.getvalue()
