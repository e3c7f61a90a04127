"""One HTTP request, tried again when trying again can help."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from weakspot.backends.within_time import seconds_for_all, within
from weakspot.core.errors import ConfigError, ModelError, UnavailableError
from weakspot.media.retrying import asked_wait

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
            f"The endpoint answers with status {status}.", where=where, given=said[:200], fix="Check url and request schema."
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

    def post(self, client: Any, url: str, body: dict[str, Any], *, jitter: np.random.Generator, where: str) -> bytes:
        """Send JSON and return the body of the answer.

        Args:
            client: an httpx client.
            url: address.
            body: what is sent.
            jitter: random part of the waits.
            where: the address as messages may show it.

        Raises:
            UnavailableError: if no attempt was answered.
            RequestRefusedError: if the server says that the request itself is wrong.
            ConfigError: if it says that the token is.
        """
        reason = ""
        for attempt in range(self.n_retries + 1):
            answer, reason, asked = _attempt(client, url, body, where=where)
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


def _attempt(client: Any, url: str, body: dict[str, Any], *, where: str) -> tuple[bytes | None, str, float | None]:
    """Return the answer; or None, why there is none, and the wait that the server asks for."""
    import httpx

    try:
        response = within(seconds_for_all(client), lambda: client.post(url, json=body))
    except TimeoutError as error:
        return None, str(error), None
    except httpx.TransportError as error:
        return None, f"{type(error).__name__}: {error}", None
    except (httpx.InvalidURL, UnicodeError) as error:
        raise ConfigError("This is no address of an endpoint.", where="url", given=where) from error
    if response.status_code == _OK:
        return response.content, "", None
    if response.status_code in WORTH_A_RETRY:
        return None, f"status {response.status_code}", asked_wait(response.headers.get("Retry-After"))
    if response.status_code in REFUSED:
        raise ConfigError(
            f"The endpoint refuses access with status {response.status_code}.",
            where=where,
            fix="Put a valid token into the environment variable that token_variable names.",
        )
    raise RequestRefusedError(response.status_code, response.text[:2000], where=where)
