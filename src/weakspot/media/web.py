"""Asking web servers: one shared pool of connections, one time limit for the whole answer, however slowly it comes.

Requests run on the event loop that fsspec keeps in a thread of its own, because there a request can be called off at any instant: a
server that sends a byte a second, in its headers or after them, costs no more than the time limit.

A file on a web server that can be read from any position: tables and tar files are read this way, block by block.
"""

import asyncio
import io
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO, cast

from weakspot.media.remote import (
    MEGABYTE,
    LastingTroubleError,
    PassingTroubleError,
    RemoteReading,
    TooLargeFileError,
    TooSlowError,
    Tries,
    asked_wait,
    remote_reading,
)

if TYPE_CHECKING:
    import httpx

SILENCE_SECONDS = 30.0
_NOT_FOUND = (404, 410)
_REFUSED = (401, 403, 407)
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
        TooSlowError: it takes too long.
        OSError: it went wrong each time.
    """
    how = reading or remote_reading()
    return Tries(location=request.url, reading=how).run(
        lambda seconds: _ask_once(request, how, seconds)
    )


def _ask_once(request: WebRequest, reading: RemoteReading, seconds: float) -> WebAnswer:
    import httpx
    from fsspec.asyn import get_loop

    try:
        return asyncio.run_coroutine_threadsafe(
            _answer(request, reading, seconds), get_loop()
        ).result()
    except TimeoutError as error:
        raise TooSlowError(f"it took longer than {reading.seconds:g} s") from error
    except httpx.InvalidURL as error:
        raise LastingTroubleError(str(error)) from error
    except httpx.UnsupportedProtocol as error:
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
    if status in _REFUSED:
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
