"""What every endpoint needs: an address that can be used, and a token that is never written down."""

import os
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from weakspot.core.errors import ConfigError

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
