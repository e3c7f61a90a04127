"""Where a server is reached: the names it answers to, and the sub-path that a proxy puts in front of it."""

import ipaddress
import socket
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import SplitResult, urlsplit

from weakspot.core.errors import ConfigError

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
COOKIE = "weakspot-session"
DEFAULT_PORTS = {"http": 80, "https": 443}


def is_loopback(host: str) -> bool:
    """Return whether a host can be reached from this machine only.

    >>> [is_loopback(host) for host in ("localhost", "127.0.0.9", "::1", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    literal = _literal(host)
    return host.lower() == "localhost" if literal is None else literal.is_loopback


def split_host(header: str) -> tuple[str, int | None] | None:
    """Return name and port of a Host header, None if it is none.

    >>> split_host("[::1]:8765"), split_host("LOCALHOST"), split_host("a b")
    (('::1', 8765), ('localhost', None), None)
    """
    if not header or any(character in header for character in " /\\@?#,"):
        return None
    try:
        parts = urlsplit(f"//{header}")
        return (parts.hostname.rstrip("."), parts.port) if parts.hostname else None
    except ValueError:
        return None


@dataclass(frozen=True, kw_only=True)
class ServerAddress:
    """How browsers reach a server.

    Args:
        host: what it listens on.
        port: what it listens on; 0 if it is not known.
        public: the address that a proxy shows it under, for example `https://hub.example.org/user/me/proxy/8765/`.
    """

    host: str = "127.0.0.1"
    port: int = 0
    public: str = ""

    def __post_init__(self) -> None:
        if self.public and not _is_plain(self.public):
            raise ConfigError(
                "The public address cannot be used.",
                where="--public-address",
                given=self.public,
                fix="Give it as https://host/path/ without a query.",
            )

    @property
    def is_local(self) -> bool:
        return is_loopback(self.host)

    @property
    def is_secure(self) -> bool:
        return self._public_parts.scheme == "https"

    @cached_property
    def root_path(self) -> str:
        """Return the sub-path that a proxy puts in front, without a slash at the end; empty if there is none."""
        return self._public_parts.path.rstrip("/")

    @property
    def cookie_path(self) -> str:
        return self.root_path or "/"

    @property
    def cookie_name(self) -> str:
        """Return the cookie's name; browsers keep those of all ports of a host together, so the port is part of it."""
        return f"{COOKIE}-{self.port}" if self.port else COOKIE

    def accepts_host(self, header: str) -> bool:
        """Return whether a request was meant for this server; a stranger's name that was bent to our address is not."""
        found = split_host(header)
        if found is None:
            return False
        name = found[0]
        if name in LOOPBACK_NAMES or name in self._names:
            return True
        # A name can be bent to any address, an address cannot.
        return not self.is_local and _literal(name) is not None

    def accepts_origin(self, origin: str, host: str) -> bool:
        """Return whether a page of this origin is one of ours."""
        try:
            parts = urlsplit(origin)
            if parts.scheme not in DEFAULT_PORTS or parts.path or parts.query or parts.fragment:
                return False
            given = parts.scheme, parts.hostname, parts.port or DEFAULT_PORTS[parts.scheme]
        except ValueError:
            return False
        shown = self._public_parts
        if self.public and given == (
            shown.scheme,
            shown.hostname,
            shown.port or DEFAULT_PORTS[shown.scheme],
        ):
            return True
        own = split_host(host)
        return own is not None and given[1:] == (own[0], own[1] or DEFAULT_PORTS[parts.scheme])

    def inner_path(self, path: str) -> str:
        """Return a path as the routes know it, whether the proxy took its own part away or not."""
        root = self.root_path
        return path[len(root) :] if root and path.startswith(f"{root}/") else path

    def shown(self, fragment: str = "") -> str:
        """Return the address that people open."""
        if self.public:
            return f"{self.public.rstrip('/')}/{fragment}"
        name = (
            "127.0.0.1"
            if self.host in ("0.0.0.0", "")
            else "::1"
            if self.host == "::"
            else self.host
        )
        return f"http://{f'[{name}]' if ':' in name else name}:{self.port}/{fragment}"

    @cached_property
    def _public_parts(self) -> SplitResult:
        return urlsplit(self.public)

    @cached_property
    def _names(self) -> frozenset[str]:
        names = {self.host.lower(), (self._public_parts.hostname or "").lower()}
        if not self.is_local:
            names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
        return frozenset(names - {""})


def _literal(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _is_plain(address: str) -> bool:
    try:
        parts = urlsplit(address)
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        return False
    is_clean = (
        not (parts.query or parts.fragment or parts.username)
        and ".." not in parts.path
        and "//" not in parts.path
    )
    return parts.scheme in DEFAULT_PORTS and bool(parts.hostname) and has_port and is_clean
