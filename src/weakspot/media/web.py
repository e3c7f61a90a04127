"""Fetching files over http(s) with one shared connection pool."""

import atexit
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx

TIMEOUT_SECONDS = 30.0
_NOT_FOUND = (404, 410)
_REFUSED = (401, 403)
_FULL = 200
_RANGE_NOT_THERE = 416


def is_web(location: str) -> bool:
    """Return whether a location is an http(s) URL."""
    return location.startswith(("http://", "https://")) and "::" not in location


def fetch(url: str, *, offset: int = 0, length: int | None = None) -> bytes:
    """Return the body at a URL, or a range of it.

    Raises:
        FileNotFoundError: there is nothing at the URL.
        PermissionError: the server refuses.
        OSError: anything that may go away when tried again.
    """
    import httpx

    headers = {} if length is None else {"Range": f"bytes={offset}-{offset + length - 1}"}
    try:
        answer = _client().get(url, headers=headers)
    except httpx.InvalidURL as error:
        raise ValueError(str(error)) from error
    except httpx.HTTPError as error:
        raise OSError(str(error) or type(error).__name__) from error
    if answer.status_code in _NOT_FOUND:
        raise FileNotFoundError(url)
    if answer.status_code in _REFUSED:
        raise PermissionError(url)
    if answer.status_code == _RANGE_NOT_THERE:
        return b""
    if not answer.is_success:
        raise OSError(f"the server answered {answer.status_code}")
    if length is not None and answer.status_code == _FULL:
        return answer.content[offset : offset + length]
    return answer.content


@cache
def _client() -> "httpx.Client":
    import httpx

    client = httpx.Client(timeout=TIMEOUT_SECONDS, follow_redirects=True)
    atexit.register(client.close)
    return client
