"""Which package indexes pip is set up for, and how it reaches them."""

import ast
import re
import ssl
import subprocess
import urllib.request
from base64 import b64encode
from dataclasses import dataclass
from functools import cache
from urllib.parse import unquote, urlsplit, urlunsplit

from weakspot.backends.packages.pip_download import pip_command

DEFAULT_INDEX = "https://pypi.org/simple"
_LINE = re.compile(r"^(?:global|download|install|:env:)\.([a-z-]+)=(.*)$")
_FALSE = {"", "0", "no", "false", "off"}
_TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True)
class IndexSettings:
    """Web addresses of indexes, in pip's order, and what a connection needs.

    Args:
        addresses: of simple indexes, possibly with name and password.
        proxy: address of a proxy; empty leaves it to the environment.
        certificates: file of trusted certificates; empty for the system's.
    """

    addresses: tuple[str, ...]
    proxy: str = ""
    certificates: str = ""

    def opener(self) -> urllib.request.OpenerDirector:
        context = ssl.create_default_context(cafile=self.certificates or None)
        proxies = {"http": self.proxy, "https": self.proxy} if self.proxy else None
        return urllib.request.build_opener(
            urllib.request.ProxyHandler(proxies), urllib.request.HTTPSHandler(context=context)
        )

    def login(self, address: str) -> dict[str, str]:
        """Return the header that logs in at an address, if the settings hold a name for its host."""
        host = urlsplit(address).hostname
        for index in self.addresses:
            parts = urlsplit(index)
            if parts.hostname == host and parts.username is not None:
                name = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
                return {"Authorization": f"Basic {b64encode(name.encode()).decode()}"}
        return {}


def without_login(address: str) -> str:
    """Return an address without name and password.

    >>> without_login("https://me:secret@index.example:8080/simple")
    'https://index.example:8080/simple'
    """
    parts = urlsplit(address)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def index_settings() -> IndexSettings | None:
    """Return what pip is set up for; None where only pip itself can do it (no pip, no index, a client certificate, untrusted hosts)."""
    command = pip_command()
    if command is None:
        return None
    try:
        done = subprocess.run(
            [*command, "config", "list", "--disable-pip-version-check"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 0:
        return None
    return read_settings(done.stdout.decode("utf-8", errors="replace"))


@cache
def read_settings(listed: str) -> IndexSettings | None:
    """Return the settings that `pip config list` printed; later lines win, as in pip."""
    found: dict[str, str] = {}
    for line in listed.splitlines():
        match = _LINE.match(line.strip())
        if match:
            found[match.group(1)] = _value(match.group(2))
    if found.get("no-index", "").lower() not in _FALSE:
        return None
    if found.get("client-cert") or found.get("trusted-host"):
        return None
    named = [
        found.get("index-url", DEFAULT_INDEX),
        *found.get("extra-index-url", "").split(),
    ]
    addresses = tuple(one.rstrip("/") for one in named if one.startswith(("http://", "https://")))
    return IndexSettings(
        addresses=addresses, proxy=found.get("proxy", ""), certificates=found.get("cert", "")
    )


def _value(text: str) -> str:
    try:
        return str(ast.literal_eval(text))
    except (SyntaxError, ValueError):
        return text
