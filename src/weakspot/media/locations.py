"""Reading the bytes that a location points to: a local path or any URL, whole or a range of it.

A location is a path, an http(s) URL or a URL of fsspec (`s3://`, `memory://`, `zip://member::archive.zip`), each with an optional
suffix `#bytes=<offset>-<length>` that selects a range, which is how members of tar shards are addressed without copying them.
"""

import os
import posixpath
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast
from urllib.parse import unquote, urlsplit, urlunsplit

from weakspot.core.errors import MissingExtraError, UnavailableError
from weakspot.media import cloud, web
from weakspot.media.disk_cache import DiskCache
from weakspot.media.remote import (
    MEGABYTE,
    RemoteReading,
    TooLargeFileError,
    Tries,
    is_refusal,
    remote_reading,
)

_RANGE = re.compile(r"#bytes=(\d+)-(\d+)$")
_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.\-]+(://|::)")
_SECRETS = re.compile(r"(?<=://)[^/\s@]+@|\?\S+")
_MOST_SAID = 300

UNREACHABLE_REASONS: dict[str, str] = {
    "missing-file": "There is no file at the location.",
    "not-a-file": "The location is a folder.",
    "no-permission": "The file may not be read.",
    "unreachable": "The file could not be read, also not after repeated tries.",
    "bad-range": "The file is shorter than the byte range says.",
    "too-many-bytes": "The file is larger than an image may be.",
}


class UnreadableLocationError(UnavailableError):
    """A location could not be read.

    Args:
        reason: one of `UNREACHABLE_REASONS`.
    """

    def __init__(
        self, reason: str, location: str, *, detail: str = "", fix: str | None = None
    ) -> None:
        self.reason = reason
        self.detail = detail or UNREACHABLE_REASONS[reason]
        super().__init__(
            f"Nothing can be read here: {self.detail}",
            where=shown_location(location),
            fix=fix or _FIXES[reason],
        )


_FIXES = {
    "missing-file": "Correct the path in the source, or put the file there.",
    "not-a-file": "Point to one file.",
    "no-permission": "Allow this user to read it.",
    "unreachable": "Check the connection and the address, then run again: finished work is kept.",
    "bad-range": "Ingest the source again: the file was changed after it was listed.",
    "too-many-bytes": "Leave it out of the source, or make it smaller.",
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
    return location[: found.start()], ByteRange(
        offset=int(found.group(1)), length=int(found.group(2))
    )


def is_local(location: str) -> bool:
    """Return whether a location is a plain path or a file URL."""
    return _SCHEME.match(location) is None or _is_file_url(location)


def local_path(location: str) -> Path:
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
    if is_local(location):
        return str(local_path(location).parent)
    head, chain, rest = location.partition("::")
    return posixpath.dirname(head) + chain + rest


@dataclass(frozen=True, kw_only=True)
class Content:
    """What is at a location.

    Args:
        data: the bytes.
        stamp: as long as it stays the same, the bytes do; None where whoever sent them did not tell.
    """

    data: bytes = field(repr=False)
    stamp: str | None = None


def read_location(location: str) -> bytes:
    """Return the bytes of the image at a location; those of remote ones are kept on this machine, within a bound.

    What is kept is what was read last, by an ingest for example; it is not asked whether it has changed since.

    Raises:
        UnreadableLocationError: with a reason, when they cannot be read.
        MissingExtraError: if the library of an object store is not installed.
    """
    return _check(location, is_fresh=False).data


def read_anew(location: str) -> Content:
    """Return what is at a location now, whatever is kept on this machine, and keep that instead; errors as of `read_location`."""
    return _check(location, is_fresh=True)


def _check(location: str, *, is_fresh: bool) -> Content:
    where, part = split_range(location)
    found = (
        Content(data=_read_local(where, part))
        if is_local(where)
        else _read_cached(location, is_fresh=is_fresh)
    )
    if part is not None and len(found.data) < part.length:
        raise UnreadableLocationError("bad-range", location)
    return found


def _read_cached(location: str, *, is_fresh: bool) -> Content:
    where, part = split_range(location)
    reading = remote_reading()
    has_cache = reading.cache_megabytes > 0 and (web.is_web(where) or cloud.is_cloud(where))
    cache = DiskCache(folder=reading.folder, most_bytes=reading.cache_megabytes * MEGABYTE)
    known = cache.get(location) if has_cache and not is_fresh else None
    if known is not None:
        return Content(data=known)
    found = _read_remote(where, part, reading)
    if has_cache and (part is None or len(found.data) == part.length):
        cache.put(location, found.data)
    return found


def open_location(location: str) -> BinaryIO:
    """Open a file for reading from any position; the caller closes it.

    Raises:
        UnreadableLocationError: with a reason, when it cannot be opened.
    """
    try:
        if is_local(location):
            return local_path(location).open("rb")
        if web.is_web(location):
            from weakspot.media.web import open_web_file

            return open_web_file(location, explained)
        system, path = cloud.file_system(location)
        return cast("BinaryIO", system.open(path, "rb"))
    except MissingExtraError:
        raise
    except Exception as error:  # every file system of fsspec has errors of its own
        raise explained(error, location) from error


def _is_file_url(location: str) -> bool:
    return location.startswith("file://") and "::" not in location


def _read_local(location: str, part: ByteRange | None) -> bytes:
    most = remote_reading().most_bytes
    try:
        with local_path(location).open("rb") as file:
            size = os.fstat(file.fileno()).st_size if part is None else part.length
            if size > most:
                raise TooLargeFileError(f"{size:,} bytes; the limit is {most:,}")
            if part is None:
                return file.read()
            file.seek(part.offset)
            return file.read(part.length)
    except (OSError, ValueError) as error:
        raise explained(error, location) from error


def _read_remote(where: str, part: ByteRange | None, reading: RemoteReading) -> Content:
    offset, length = (0, None) if part is None else (part.offset, part.length)
    try:
        if length is not None and length > reading.most_bytes:
            raise TooLargeFileError(f"{length:,} bytes; the limit is {reading.most_bytes:,}")
        if length == 0:
            return Content(data=b"")
        if web.is_web(where):
            answer = web.ask(web.WebRequest(url=where, offset=offset, length=length))
            return Content(data=answer.body, stamp=answer.lasting_stamp)
        data = Tries(location=where, reading=reading).run(
            lambda seconds: cloud.read_bytes(
                where, offset=offset, length=length, reading=reading, seconds=seconds
            )
        )
        return Content(data=data)
    except MissingExtraError:
        raise
    except Exception as error:  # every file system of fsspec has errors of its own
        raise explained(error, where) from error


_BY_KIND: tuple[tuple[tuple[type[Exception], ...], str], ...] = (
    ((FileNotFoundError, NotADirectoryError, KeyError), "missing-file"),
    ((IsADirectoryError,), "not-a-file"),
    ((PermissionError,), "no-permission"),
)


def explained(error: Exception, location: str) -> UnreadableLocationError:
    """Return why a location could not be read, with what to do about it and without secrets."""
    if isinstance(error, UnreadableLocationError):
        return error
    if isinstance(error, UnavailableError):
        return UnreadableLocationError("unreachable", location, detail=error.what, fix=error.fix)
    if isinstance(error, TooLargeFileError):
        return UnreadableLocationError("too-many-bytes", location, detail=f"It has {error}.")
    reason = next((reason for kinds, reason in _BY_KIND if isinstance(error, kinds)), None)
    if reason is not None or is_refusal(error):
        return UnreadableLocationError(reason or "no-permission", location)
    said = _SECRETS.sub("", str(error).strip().partition("\n")[0])[:_MOST_SAID]
    return UnreadableLocationError(
        "unreachable", location, detail=f"{type(error).__name__}: {said}."
    )
