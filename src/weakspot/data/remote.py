"""Remote files: how they are read, web servers, file systems of fsspec, and the copies on this machine.

Whoever reads an image may be a thread of this process, another process or a machine of a cluster. The environment says how it
reads, unless a block around it says otherwise; an engine built from settings puts such a block around the work of its workers.

Trying again: waits that grow, differ between locations, are the same in every run, and do what the server asks.

Requests to web servers run on the event loop that fsspec keeps in a thread of its own, because there a request can be called
off at any instant: a server that sends a byte a second, in its headers or after them, costs no more than the time limit.

Credentials come from where each library looks for them: environment, profile, metadata of the machine. None are kept or shown.

In the cache every image is one file that begins with a hash of what follows, written beside its place and then put there in one
step, so a reader finds all of it, or nothing. A small file counts the bytes of all of them under a lock. A cache that cannot be
used (a full disk, a folder that may not be written) is no cache: images are then read from where they are.
"""

import asyncio
import contextlib
import fcntl
import hashlib
import io
import os
import re
import secrets
import struct
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar, cast

from weakspot.core.errors import ConfigError, MissingExtraError, UnavailableError, WeakspotError

if TYPE_CHECKING:
    import httpx

MEGABYTES_VARIABLE, FOLDER_VARIABLE = "WEAKSPOT_CACHE_MEGABYTES", "WEAKSPOT_CACHE_FOLDER"
MEGABYTE = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class RemoteReading:
    """How remote files are read.

    Args:
        cache_megabytes: most that is kept of remote images on this machine; 0 keeps nothing.
        cache_folder: where; empty: `weakspot` in the user's cache folder.
        seconds: longest time for one image, all tries together; large ones get more.
        n_tries: how often an image is asked for before it is given up.
        first_wait: seconds before the second try; each further wait is twice as long.
        longest_wait: no wait is longer, unless the server asks for it.
        most_bytes: a larger image is not read.
        slowest_rate: bytes a second that a connection must at least reach.
    """

    cache_megabytes: int = 2048
    cache_folder: str = ""
    seconds: float = 60.0
    n_tries: int = 5
    first_wait: float = 0.25
    longest_wait: float = 15.0
    most_bytes: int = 512 * MEGABYTE
    slowest_rate: float = 256 * 1024.0

    @classmethod
    def from_environment(cls) -> "RemoteReading":
        """Return the settings that this process was given.

        Raises:
            ConfigError: if the bound of the cache is no whole number.
        """
        text = os.environ.get(MEGABYTES_VARIABLE, "")
        if text and not text.isdecimal():
            raise ConfigError(
                f"{MEGABYTES_VARIABLE} must be a whole number of megabytes.",
                given=text,
                fix="0 keeps nothing.",
            )
        folder = os.environ.get(FOLDER_VARIABLE, "")
        return cls(cache_folder=folder, **({"cache_megabytes": int(text)} if text else {}))

    @property
    def folder(self) -> Path:
        if self.cache_folder:
            return Path(self.cache_folder)
        return (
            Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "weakspot" / "images"
        )


_current: ContextVar[RemoteReading | None] = ContextVar("remote_reading", default=None)


def remote_reading() -> RemoteReading:
    """Return how remote files are read here and now: as the block around says, else as the environment says."""
    return _current.get() or RemoteReading.from_environment()


@contextmanager
def reading_as(reading: RemoteReading) -> Iterator[None]:
    """Read remote files in this way while the block runs, in this thread alone."""
    token = _current.set(reading)
    try:
        yield
    finally:
        _current.reset(token)


Given = TypeVar("Given")
_WITHOUT_CREDENTIALS = (
    "NoCredentialsError",
    "PartialCredentialsError",
    "DefaultCredentialsError",
    "ClientAuthenticationError",
)
_REFUSED = (401, 403)
_LASTING = (
    WeakspotError,
    ValueError,
    TypeError,
    ImportError,
    FileNotFoundError,
    PermissionError,
    IsADirectoryError,
    KeyError,
)


class PassingTroubleError(OSError):
    """Something that may be over when it is tried again.

    Args:
        message: what happened.
        wait: seconds that the server asks to wait; None if it asks for nothing.
    """

    def __init__(self, message: str, *, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


class LastingTroubleError(ValueError):
    """Something that stays as it is however often it is tried."""


class TooLargeFileError(LastingTroubleError):
    """A file has more bytes than an image may have."""


def try_again(read: Callable[[float], Given], location: str, reading: RemoteReading) -> Given:
    """Return what `read(seconds that are left)` gives; lasting errors and the last passing one are raised.

    Args:
        read: one attempt.
        location: which; it decides by how much waits differ from those of others.
        reading: how often, how long.

    Raises:
        LastingTroubleError: if the time for one location is over.
    """
    end = time.monotonic() + reading.seconds
    for attempt in range(1, reading.n_tries + 1):
        try:
            return read(max(end - time.monotonic(), 0.001))
        except _LASTING:
            raise
        except Exception as error:  # every file system of fsspec has errors of its own
            if attempt == reading.n_tries or is_refusal(error):
                raise
            wait = wait_after(attempt, location, reading, getattr(error, "wait", None))
            if time.monotonic() + wait >= end:
                raise LastingTroubleError(
                    f"{error}; the next try would be too late: {reading.seconds:g} s are given"
                ) from error
        time.sleep(wait)
    raise LastingTroubleError("it was never tried")


def wait_after(
    attempt: int, location: str, reading: RemoteReading, asked: float | None = None
) -> float:
    """Return the seconds to wait after an attempt, counted from 1."""
    usual = min(reading.first_wait * 2.0 ** (attempt - 1), reading.longest_wait)
    digest = hashlib.blake2b(
        f"{attempt} {location}".encode("utf-8", "surrogatepass"), digest_size=2
    ).digest()
    spread = usual * (0.5 + int.from_bytes(digest, "big") / 65536)
    return spread if asked is None else max(asked, spread)


def asked_wait(value: str | None, now: datetime | None = None) -> float | None:
    """Return the seconds that a header `Retry-After` means, a number or a date; None if it means nothing.

    >>> asked_wait("7"), asked_wait("soon")
    (7.0, None)
    """
    if value is None:
        return None
    if value.strip().isdecimal():
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return max(0.0, (aware - (now or datetime.now(UTC))).total_seconds())


def is_refusal(error: Exception) -> bool:
    """Return whether an error of a file system says that credentials are missing or do not suffice."""
    names = {kind.__name__ for kind in type(error).__mro__}
    status = getattr(error, "status_code", None) or getattr(error, "code", None)
    return (
        bool(names & set(_WITHOUT_CREDENTIALS))
        or status in _REFUSED
        or str(error).startswith("Forbidden")
    )


SILENCE_SECONDS = 30.0
_NOT_FOUND = (404, 410)
_NOT_ALLOWED = (401, 403, 407)
_PASSING = (408, 425, 429)
_FULL, _PART = 200, 206
_RANGE_NOT_THERE = 416
_SERVER_ERRORS = 500


def is_web(location: str) -> bool:
    return location.startswith(("http://", "https://")) and "::" not in location


@dataclass(frozen=True, kw_only=True)
class WebRequest:
    """What is asked for.

    Args:
        url: where.
        offset: first byte that is wanted.
        length: how many bytes; None for all that follow.
        only_headers: whether the body is not wanted.
        into: takes the body, of any size, instead of the answer.
    """

    url: str
    offset: int = 0
    length: int | None = None
    only_headers: bool = False
    into: BinaryIO | None = None

    @property
    def headers(self) -> dict[str, str]:
        """Return the headers to send; the body must come as it is, or ranges would be of something else."""
        wanted = {"Accept-Encoding": "identity"}
        if self.length is not None:
            wanted["Range"] = f"bytes={self.offset}-{self.offset + self.length - 1}"
        elif self.offset:
            wanted["Range"] = f"bytes={self.offset}-"
        return wanted


@dataclass(frozen=True, kw_only=True)
class WebAnswer:
    """What a server answered.

    Args:
        headers: names in lower case.
        body: the bytes that were asked for.
        has_ranges: whether the server gave only the part that was asked for.
    """

    headers: Mapping[str, str]
    body: bytes = field(default=b"", repr=False)
    has_ranges: bool = False

    @property
    def size(self) -> int:
        """Return the bytes of the whole file, -1 if the server does not tell."""
        told = (
            self.headers.get("content-range", "").rpartition("/")[2]
            if self.has_ranges
            else self.headers.get("content-length", "")
        )
        return int(told) if told.isdecimal() else -1

    @property
    def stamp(self) -> str:
        """Return what changes when the file does, empty if the server tells nothing of the kind."""
        return self.headers.get("etag") or self.headers.get("last-modified", "")

    @property
    def lasting_stamp(self) -> str | None:
        """Return what stays the same as long as the file does, None if the server tells nothing that can be relied on."""
        tag = self.headers.get("etag", "")
        # A weak tag, and a time in whole seconds, may be the same for two versions.
        return f"{self.size} {tag}" if tag and not tag.startswith("W/") else None


def ask(request: WebRequest, *, reading: RemoteReading | None = None) -> WebAnswer:
    """Return the answer of a server, asked again as often as is useful.

    Raises:
        FileNotFoundError: there is nothing at the URL.
        PermissionError: the server refuses.
        TooLargeFileError: it is more than an image may be.
        LastingTroubleError: it takes too long.
        OSError: it went wrong each time.
    """
    how = reading or remote_reading()
    return try_again(partial(_ask_once, request, how), request.url, how)


def _ask_once(request: WebRequest, reading: RemoteReading, seconds: float) -> WebAnswer:
    import httpx
    from fsspec.asyn import get_loop

    try:
        return asyncio.run_coroutine_threadsafe(
            _answer(request, reading, seconds), get_loop()
        ).result()
    except TimeoutError as error:
        raise LastingTroubleError(f"it took longer than {reading.seconds:g} s") from error
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise LastingTroubleError(str(error)) from error
    except httpx.HTTPError as error:
        raise PassingTroubleError(str(error) or type(error).__name__) from error


async def _answer(request: WebRequest, reading: RemoteReading, seconds: float) -> WebAnswer:
    method = "HEAD" if request.only_headers else "GET"
    async with asyncio.timeout(seconds) as limit:
        async with _client().stream(method, request.url, headers=request.headers) as answer:
            _check(answer, request.url)
            headers = {name.lower(): value for name, value in answer.headers.items()}
            has_ranges = answer.status_code == _PART
            if answer.status_code == _RANGE_NOT_THERE or request.only_headers:
                return WebAnswer(headers=headers, has_ranges=has_ranges)
            if request.into is not None:
                await _copy(answer, request.into, reading, limit)
                return WebAnswer(headers=headers, has_ranges=has_ranges)
            body = await _body(answer, request, reading, limit)
    return WebAnswer(headers=headers, body=body, has_ranges=has_ranges)


async def _blocks(
    answer: "httpx.Response", reading: RemoteReading, limit: asyncio.Timeout
) -> AsyncIterator[bytes]:
    """Yield the body; every block buys the time it may take at the slowest rate, so a trickle ends and a large file goes on."""
    async for block in answer.aiter_raw():
        limit.reschedule((limit.when() or 0.0) + len(block) / reading.slowest_rate)
        yield block


async def _copy(
    answer: "httpx.Response", file: BinaryIO, reading: RemoteReading, limit: asyncio.Timeout
) -> None:
    file.seek(0)
    file.truncate()
    async for block in _blocks(answer, reading, limit):
        file.write(block)


async def _body(
    answer: "httpx.Response", request: WebRequest, reading: RemoteReading, limit: asyncio.Timeout
) -> bytes:
    """Return the part that was asked for, also of a server that sends more."""
    skipped = 0 if answer.status_code == _PART else request.offset
    most = reading.most_bytes if request.length is None else request.length
    told = answer.headers.get("content-length", "")
    if request.length is None and told.isdecimal() and int(told) - skipped > most:
        raise TooLargeFileError(f"{int(told):,} bytes; the limit is {most:,}")
    found = bytearray()
    async for block in _blocks(answer, reading, limit):
        found += block[skipped:]
        skipped = max(0, skipped - len(block))
        if request.length is not None and len(found) >= request.length:
            break
        if len(found) > most:
            raise TooLargeFileError(f"more than {most:,} bytes")
    return bytes(found if request.length is None else found[: request.length])


def _check(answer: "httpx.Response", url: str) -> None:
    status = answer.status_code
    if status in _NOT_FOUND:
        raise FileNotFoundError(url)
    if status in _NOT_ALLOWED:
        raise PermissionError(url)
    if status in _PASSING or status >= _SERVER_ERRORS:
        raise PassingTroubleError(
            f"the server answered {status}", wait=asked_wait(answer.headers.get("retry-after"))
        )
    if not answer.is_success and status != _RANGE_NOT_THERE:
        raise LastingTroubleError(f"the server answered {status}")


_clients: dict[int, "httpx.AsyncClient"] = {}


def _client() -> "httpx.AsyncClient":
    """Return the client of the running event loop; a forked process has a loop of its own."""
    import httpx

    key = id(asyncio.get_running_loop())
    if key not in _clients:
        _clients[key] = httpx.AsyncClient(timeout=SILENCE_SECONDS, follow_redirects=True)
    return _clients[key]


Explain = Callable[[Exception, str], Exception]
BLOCK_BYTES = 4 * MEGABYTE


def open_web_file(url: str, explain: Explain, *, block_bytes: int = BLOCK_BYTES) -> BinaryIO:
    """Return a file at a URL, read in blocks as needed; each block is tried again on its own.

    A server that gives no ranges is asked once; the file then lies in the folder for temporary files until it is closed.

    Args:
        url: where it is.
        explain: makes the error to raise of one that a later block met, and the URL.
        block_bytes: least that is asked for at once.
    """
    first = ask(WebRequest(url=url, length=block_bytes))
    if first.has_ranges and first.size >= 0:
        return io.BufferedReader(_RangedFile(url, first, explain), block_bytes)
    if not first.has_ranges and first.size == len(first.body):
        return io.BytesIO(first.body)
    return _whole(url)


def _whole(url: str) -> BinaryIO:
    file = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115 - the caller closes it
    try:
        ask(WebRequest(url=url, into=file))
    except BaseException:
        file.close()
        raise
    file.seek(0)
    return file


class _RangedFile(io.RawIOBase):
    """Reads ranges; refuses to mix two versions of a file."""

    def __init__(self, url: str, first: WebAnswer, explain: Explain) -> None:
        super().__init__()
        self._explain = explain
        self._url, self._size, self._stamp = url, first.size, first.stamp
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, start + offset)
        return self._position

    def readinto(self, buffer: object) -> int:
        view = memoryview(cast(bytearray, buffer)).cast("B")
        wanted = min(len(view), self._size - self._position)
        if wanted <= 0:
            return 0
        try:
            view[:wanted] = self._block(wanted)
        except Exception as error:
            raise self._explain(error, self._url) from error
        self._position += wanted
        return wanted

    def _block(self, wanted: int) -> bytes:
        answer = ask(WebRequest(url=self._url, offset=self._position, length=wanted))
        if answer.stamp != self._stamp or (answer.has_ranges and answer.size != self._size):
            raise OSError("the file was changed on the server while it was read")
        if len(answer.body) != wanted:
            raise PassingTroubleError(f"the server gave {len(answer.body)} of {wanted} bytes")
        return answer.body


CLOUD_SCHEMES = {
    "s3": "s3fs",
    "s3a": "s3fs",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "az": "adlfs",
    "abfs": "adlfs",
    "abfss": "adlfs",
}
EXTRA = "cloud"
EXPECTED_BYTES = 32 * MEGABYTE
_BAD_RANGE = re.compile(r"\b416\b|range", re.IGNORECASE)


def is_cloud(location: str) -> bool:
    return (
        location.partition("://")[0] in CLOUD_SCHEMES and "://" in location and "::" not in location
    )


def file_system(location: str) -> tuple[Any, str]:
    """Return the file system of a location and its path there.

    Raises:
        UnavailableError: if there is no such file system.
        MissingExtraError: if its library is not installed.
    """
    from fsspec.core import url_to_fs

    try:
        system, path = url_to_fs(location)
    except ImportError as error:
        library = CLOUD_SCHEMES.get(location.partition("://")[0])
        if library is None:
            raise UnavailableError(
                f"The location cannot be opened: {error}.",
                fix="Install the library that is named there.",
            ) from error
        raise MissingExtraError(
            library,
            extra=EXTRA,
            purpose=f"Locations that begin with {location.partition('://')[0]}://",
        ) from error
    except ValueError as error:
        raise UnavailableError(
            f"The location cannot be opened: {error}.", fix="Correct the address."
        ) from error
    return system, str(path)


def read_bytes(
    location: str, seconds: float, *, offset: int, length: int | None, reading: RemoteReading
) -> bytes:
    """Return the bytes at a location, or a range of them, read once.

    Raises:
        TooLargeFileError: it is more than an image may be.
        LastingTroubleError: it takes too long.
        Exception: whatever the file system raises.
    """
    system, path = file_system(location)
    most = reading.most_bytes + 1 if length is None else length
    if not getattr(system, "async_impl", False):
        data = bytes(
            system.cat_file(path)
            if length is None
            else system.cat_file(path, start=offset, end=offset + length)
        )
    else:
        data = _called_off_in_time(
            system,
            path,
            (offset, offset + most),
            seconds + (length or EXPECTED_BYTES) / reading.slowest_rate,
        )
    if length is None and len(data) > reading.most_bytes:
        raise TooLargeFileError(f"more than {reading.most_bytes:,} bytes")
    return data


def _called_off_in_time(system: Any, path: str, ends: tuple[int, int], seconds: float) -> bytes:
    """Return a range; of a whole file, a range that is longer than any image, which spares the question for its size."""
    from fsspec.asyn import sync

    try:
        return bytes(
            sync(  # the public call has no time limit
                system.loop,
                system._cat_file,  # noqa: SLF001
                path,
                start=ends[0],
                end=ends[1],
                timeout=seconds,
            )
        )
    except TimeoutError as error:
        raise LastingTroubleError(f"it took longer than {seconds:g} s") from error
    except Exception as error:
        # Of an empty file no store gives a range.
        if ends[0] == 0 and _BAD_RANGE.search(str(error)) and system.info(path).get("size") == 0:
            return b""
        raise


MARK = b"weakspot image 1\n"
DIGEST_BYTES = 16
HEAD_BYTES = len(MARK) + DIGEST_BYTES
ENTRY_SUFFIX = ".image"
COUNTER_NAME = "bytes"
KEPT_SHARE = 0.9
MAX_PART = 4
_COUNT = struct.Struct("<q")


@dataclass(frozen=True, kw_only=True)
class DiskCache:
    """Bytes by location.

    Args:
        folder: where they are.
        most_bytes: of all of them together, headers included.
    """

    folder: Path
    most_bytes: int

    def get(self, location: str) -> bytes | None:
        """Return the bytes of a location, None if they are not here or not sound; damaged ones are deleted."""
        path = self._path(location)
        try:
            stored = path.read_bytes()
        except OSError:
            return None
        data = stored[HEAD_BYTES:]
        if stored[:HEAD_BYTES] != MARK + _digest(data):
            path.unlink(missing_ok=True)
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return data

    def put(self, location: str, data: bytes) -> None:
        """Keep the bytes of a location; what was used least recently makes room. One that would take a quarter is not kept."""
        n_bytes = HEAD_BYTES + len(data)
        if n_bytes > self.most_bytes // MAX_PART:
            return
        path = self._path(location)
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            with self._counting() as counter:
                counted = _count(counter)
                if counted is None or counted + n_bytes > self.most_bytes:
                    counted = self._make_room(n_bytes)
                _set_count(counter, counted + n_bytes)
            _write(path, MARK + _digest(data) + data)

    @property
    def n_bytes(self) -> int:
        """Return the bytes that are kept now."""
        return sum(size for _, size, _ in self._entries())

    def _path(self, location: str) -> Path:
        name = hashlib.blake2b(
            location.encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES
        ).hexdigest()
        return self.folder / name[:2] / f"{name[2:]}{ENTRY_SUFFIX}"

    @contextmanager
    def _counting(self) -> Iterator[BinaryIO]:
        descriptor = os.open(self.folder / COUNTER_NAME, os.O_RDWR | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "r+b") as counter:
            fcntl.flock(counter, fcntl.LOCK_EX)
            yield counter

    def _make_room(self, n_bytes: int) -> int:
        """Delete the least recently used until the rest and the new one fit with something to spare; return the bytes that stay."""
        entries = sorted(self._entries())
        total = sum(size for _, size, _ in entries)
        wanted = int(self.most_bytes * KEPT_SHARE) - n_bytes
        for _, size, path in entries:
            if total <= wanted:
                break
            Path(path).unlink(missing_ok=True)
            total -= size
        return total

    def _entries(self) -> Iterator[tuple[int, int, str]]:
        """Yield time of last use, bytes and path of every file, those among them that an interrupted write left behind."""
        for shelf in self.folder.glob("??"):
            with contextlib.suppress(OSError), os.scandir(shelf) as files:
                for file in files:
                    with contextlib.suppress(OSError):
                        found = file.stat()
                        yield found.st_mtime_ns, found.st_size, file.path


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest()


def _count(counter: BinaryIO) -> int | None:
    stored = counter.read(_COUNT.size)
    value = int(_COUNT.unpack(stored)[0]) if len(stored) == _COUNT.size else -1
    return value if value >= 0 else None


def _set_count(counter: BinaryIO, value: int) -> None:
    counter.seek(0)
    counter.write(_COUNT.pack(value))
    counter.truncate()


def _write(path: Path, content: bytes) -> None:
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
