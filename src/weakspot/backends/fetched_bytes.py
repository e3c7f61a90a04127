"""What an endpoint's answer points at, fetched with retries and never larger than allowed."""

from typing import Any

import numpy as np

from weakspot.backends.endpoint_address import shown_address
from weakspot.backends.endpoint_retries import WORTH_A_RETRY, Retries
from weakspot.backends.within_time import seconds_for_all, within
from weakspot.core.errors import ModelError, UnavailableError

_OK = 200


def fetched_bytes(client: Any, address: str, *, retries: Retries, jitter: np.random.Generator, most_bytes: int) -> bytes:
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
        data, reason = _attempt_in_time(client, address, most_bytes)
        if data is not None:
            return data
        if attempt < retries.n_retries:
            retries.sleep(retries.wait_seconds(attempt, None, jitter))
    raise UnavailableError(
        f"The picture that the endpoint made could not be fetched in {retries.n_retries + 1} attempts: {reason}",
        where=shown_address(address),
    )


def _attempt_in_time(client: Any, address: str, most_bytes: int) -> tuple[bytes | None, str]:
    try:
        return within(seconds_for_all(client), lambda: _attempt(client, address, most_bytes))
    except TimeoutError as error:
        return None, str(error)


def _attempt(client: Any, address: str, most_bytes: int) -> tuple[bytes | None, str]:
    """Return the bytes; or None and why there are none."""
    import httpx

    try:
        with client.stream("GET", address) as response:
            if response.status_code in WORTH_A_RETRY:
                return None, f"status {response.status_code}"
            if response.status_code != _OK:
                raise ModelError(
                    f"Where the endpoint's picture should be, the answer is status {response.status_code}.",
                    where=shown_address(address),
                )
            data = bytearray()
            for block in response.iter_bytes():
                data += block
                if len(data) > most_bytes:
                    raise ModelError(f"The endpoint's picture has more than {most_bytes} bytes.", where=shown_address(address))
            return bytes(data), ""
    except httpx.TransportError as error:
        return None, f"{type(error).__name__}: {error}"
