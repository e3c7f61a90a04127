"""A file on a web server that can be read from any position: tables and tar files are read this way, block by block."""

import io
import tempfile
from collections.abc import Callable
from typing import BinaryIO, cast

from weakspot.media.remote import MEGABYTE
from weakspot.media.retrying import PassingTroubleError
from weakspot.media.web import WebAnswer, WebRequest, ask

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
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a position."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, start + offset)
        return self._position

    def readinto(self, buffer: object) -> int:
        """Fill a buffer as far as the file goes."""
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
