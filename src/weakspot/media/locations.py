"""Reading the bytes that a location points to: a local path or any URL, whole or a range of it.

A location is a path, an http(s) URL or a URL of fsspec (`s3://`, `memory://`, `zip://member::archive.zip`), each with an optional
suffix `#bytes=<offset>-<length>` that selects a range, which is how members of tar shards are addressed without copying them.
"""

import posixpath
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast
from urllib.parse import unquote, urlsplit, urlunsplit

from weakspot.core.errors import UnavailableError
from weakspot.media import web

_RANGE = re.compile(r"#bytes=(\d+)-(\d+)$")
_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.\-]+(://|::)")
_LASTING = (ValueError, TypeError, ImportError)
RETRY_WAITS_SECONDS = (0.2, 0.8, 2.0)

UNREACHABLE_REASONS: dict[str, str] = {
    "missing-file": "There is no file at the location.",
    "not-a-file": "The location is a folder.",
    "no-permission": "The file may not be read.",
    "unreachable": "The file could not be read, also not after repeated tries.",
    "bad-range": "The file is shorter than the byte range says.",
}


class UnreadableLocationError(UnavailableError):
    """A location could not be read.

    Args:
        reason: one of `UNREACHABLE_REASONS`.
    """

    def __init__(self, reason: str, location: str, *, detail: str = "", fix: str | None = None) -> None:
        self.reason = reason
        self.detail = detail or UNREACHABLE_REASONS[reason]
        super().__init__(f"Nothing can be read here: {self.detail}", where=shown_location(location), fix=fix or _FIXES[reason])


_FIXES = {
    "missing-file": "Correct the path in the source, or put the file there.",
    "not-a-file": "Point to one file.",
    "no-permission": "Allow this user to read it.",
    "unreachable": "Check the connection and the address, then run again: finished work is kept.",
    "bad-range": "Ingest the source again: the file was changed after it was listed.",
}


@dataclass(frozen=True, kw_only=True)
class ByteRange:
    """A part of a file."""

    offset: int
    length: int


def range_location(location: str, *, offset: int, length: int) -> str:
    """Return a location for a part of a file.

    >>> range_location("shard.tar", offset=512, length=9000)
    'shard.tar#bytes=512-9000'
    """
    return f"{location}#bytes={offset}-{length}"


def split_range(location: str) -> tuple[str, ByteRange | None]:
    """Return the location without its range, and the range.

    >>> split_range("shard.tar#bytes=512-9000")
    ('shard.tar', ByteRange(offset=512, length=9000))
    """
    found = _RANGE.search(location)
    if found is None:
        return location, None
    return location[: found.start()], ByteRange(offset=int(found.group(1)), length=int(found.group(2)))


def is_local(location: str) -> bool:
    """Return whether a location is a plain path or a file URL."""
    return _SCHEME.match(location) is None or _is_file_url(location)


def local_path(location: str) -> Path:
    """Return the path of a local location."""
    if _is_file_url(location):
        return Path(unquote(location[len("file://") :]))
    return Path(location)


def shown_location(location: str) -> str:
    """Return a location as it may be shown: without user names, passwords and signatures.

    >>> shown_location("https://me:secret@example.org/a.jpg?signature=abc")
    'https://example.org/a.jpg'
    """
    if is_local(location) or "::" in location:
        return location
    parts = urlsplit(location)
    fragment = parts.fragment if parts.fragment.startswith("bytes=") else ""
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", fragment))


def join_location(folder: str, relative: str) -> str:
    """Return where `relative` lies when it is written in a file of `folder`; absolute locations stay as they are.

    >>> join_location("s3://bucket/data", "a/b.jpg")
    's3://bucket/data/a/b.jpg'
    """
    if not is_local(relative) or _is_file_url(relative):
        return relative
    if is_local(folder):
        return str(local_path(folder) / relative)
    if relative.startswith("/"):
        return relative
    head, chain, rest = folder.partition("::")
    return posixpath.join(head, relative) + chain + rest


def parent_location(location: str) -> str:
    """Return the folder that holds a file."""
    if is_local(location):
        return str(local_path(location).parent)
    head, chain, rest = location.partition("::")
    return posixpath.dirname(head) + chain + rest


def read_location(location: str) -> bytes:
    """Return the bytes at a location.

    Raises:
        UnreadableLocationError: with a reason, when they cannot be read.
    """
    where, part = split_range(location)
    if is_local(where):
        data = _read_local(where, part)
    elif web.is_web(where):
        data = _read_remote(
            location, lambda: web.fetch(where, offset=part.offset if part else 0, length=part.length if part else None)
        )
    else:
        data = _read_remote(location, lambda: _read_fsspec(where, part))
    if part is not None and len(data) < part.length:
        raise UnreadableLocationError("bad-range", location)
    return data


def open_location(location: str) -> BinaryIO:
    """Open a file for reading from any position; the caller closes it.

    Raises:
        UnreadableLocationError: with a reason, when it cannot be opened.
    """
    try:
        if is_local(location):
            return local_path(location).open("rb")
        import fsspec

        return cast("BinaryIO", fsspec.open(location, "rb").open())
    except Exception as error:  # every file system of fsspec has errors of its own
        raise _explained(error, location) from error


def _is_file_url(location: str) -> bool:
    return location.startswith("file://") and "::" not in location


def _read_local(location: str, part: ByteRange | None) -> bytes:
    try:
        with local_path(location).open("rb") as file:
            if part is None:
                return file.read()
            file.seek(part.offset)
            return file.read(part.length)
    except (OSError, ValueError) as error:
        raise _explained(error, location) from error


def _read_fsspec(location: str, part: ByteRange | None) -> bytes:
    from fsspec.core import url_to_fs

    system, path = url_to_fs(location)
    if part is None:
        return bytes(system.cat_file(path))
    return bytes(system.cat_file(path, start=part.offset, end=part.offset + part.length))


def _read_remote(location: str, read: Callable[[], bytes]) -> bytes:
    for wait in (*RETRY_WAITS_SECONDS, None):
        try:
            return read()
        except Exception as error:  # every file system of fsspec has errors of its own
            explained = _explained(error, location)
            if wait is None or explained.reason != "unreachable" or isinstance(error, _LASTING):
                raise explained from error
        time.sleep(wait)
    raise UnreadableLocationError("unreachable", location)


def _explained(error: Exception, location: str) -> UnreadableLocationError:
    if isinstance(error, (FileNotFoundError, NotADirectoryError, KeyError)):
        return UnreadableLocationError("missing-file", location)
    if isinstance(error, IsADirectoryError):
        return UnreadableLocationError("not-a-file", location)
    if isinstance(error, PermissionError):
        return UnreadableLocationError("no-permission", location)
    if isinstance(error, ImportError):
        return UnreadableLocationError("unreachable", location, detail=f"{error}.", fix="Install the library that is named there.")
    return UnreadableLocationError("unreachable", location, detail=f"{type(error).__name__}: {error}.")
