"""Locations, local or remote: their bytes, whole or a range of them, files of folders, and patterns for many files.

The order of a listing never changes.

A location is a path, an http(s) URL or a URL of fsspec (`s3://`, `memory://`, `zip://member::archive.zip`), each with an optional
suffix `#bytes=<offset>-<length>` that selects a range, which is how members of tar shards are addressed without copying them.
"""

import glob
import heapq
import os
import posixpath
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, BinaryIO, cast
from urllib.parse import unquote, urlsplit, urlunsplit

from weakspot.core.errors import DataError, MissingExtraError, UnavailableError
from weakspot.data import remote
from weakspot.data.remote import (
    MEGABYTE,
    DiskCache,
    LastingTroubleError,
    RemoteReading,
    TooLargeFileError,
    file_system,
    is_refusal,
    remote_reading,
)

_RANGE = re.compile(r"#bytes=(\d+)-(\d+)$")
_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.\-]+(://|::)")
_SECRETS = re.compile(r"(?<=://)[^/\s@]+@|\?\S+")
_MAX_SAID = 300

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


ByteRange = tuple[int, int]
"""A part of a file: its first byte, and how many follow."""


def range_location(location: str, *, offset: int, length: int) -> str:
    """Return a location for a part of a file.

    >>> range_location("shard.tar", offset=512, length=9000)
    'shard.tar#bytes=512-9000'
    """
    return f"{location}#bytes={offset}-{length}"


def split_range(location: str) -> tuple[str, ByteRange | None]:
    """Return the location without its range, and the range.

    >>> split_range("shard.tar#bytes=512-9000")
    ('shard.tar', (512, 9000))
    """
    found = _RANGE.search(location)
    if found is None:
        return location, None
    return location[: found.start()], (int(found.group(1)), int(found.group(2)))


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


def read_location(location: str) -> bytes:
    """Return the bytes of the image at a location; those of remote ones are kept on this machine, within a bound.

    What is kept is what was read last, by an ingest for example; it is not asked whether it has changed since.

    Raises:
        UnreadableLocationError: with a reason, when they cannot be read.
        MissingExtraError: if the library of an object store is not installed.
    """
    return _read_checked(location, is_fresh=False)[0]


def read_anew(location: str) -> bytes:
    """Return what is at a location now, whatever is kept on this machine, and keep that instead; errors as of `read_location`."""
    return read_stamped(location)[0]


def read_stamped(location: str) -> tuple[bytes, str | None]:
    """Return the same with a stamp: as long as it stays the same, the bytes do; None where a server does not tell."""
    return _read_checked(location, is_fresh=True)


def _read_checked(location: str, *, is_fresh: bool) -> tuple[bytes, str | None]:
    where, part = split_range(location)
    data, stamp = (
        (_read_local(where, part), None)
        if is_local(where)
        else _read_cached(location, is_fresh=is_fresh)
    )
    if part is not None and len(data) < part[1]:
        raise UnreadableLocationError("bad-range", location)
    return data, stamp


def _read_cached(location: str, *, is_fresh: bool) -> tuple[bytes, str | None]:
    where, part = split_range(location)
    reading = remote_reading()
    has_cache = reading.cache_megabytes > 0 and (remote.is_web(where) or remote.is_cloud(where))
    cache = DiskCache(folder=reading.folder, most_bytes=reading.cache_megabytes * MEGABYTE)
    known = cache.get(location) if has_cache and not is_fresh else None
    if known is not None:
        return known, None
    data, stamp = _read_remote(where, part, reading)
    if has_cache and (part is None or len(data) == part[1]):
        cache.put(location, data)
    return data, stamp


def open_location(location: str) -> BinaryIO:
    """Open a file for reading from any position; the caller closes it.

    Raises:
        UnreadableLocationError: with a reason, when it cannot be opened.
    """
    try:
        if is_local(location):
            return local_path(location).open("rb")
        if remote.is_web(location):
            return remote.open_web_file(location, explained)
        system, path = remote.file_system(location)
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
            size = os.fstat(file.fileno()).st_size if part is None else part[1]
            if size > most:
                raise TooLargeFileError(f"{size:,} bytes; the limit is {most:,}")
            if part is None:
                return file.read()
            file.seek(part[0])
            return file.read(part[1])
    except (OSError, ValueError) as error:
        raise explained(error, location) from error


def _read_remote(
    where: str, part: ByteRange | None, reading: RemoteReading
) -> tuple[bytes, str | None]:
    offset, length = (0, None) if part is None else part
    try:
        if length is not None and length > reading.most_bytes:
            raise TooLargeFileError(f"{length:,} bytes; the limit is {reading.most_bytes:,}")
        if length == 0:
            return b"", None
        if remote.is_web(where):
            answer = remote.ask(remote.WebRequest(url=where, offset=offset, length=length))
            return answer.body, answer.lasting_stamp
        read = partial(remote.read_bytes, where, offset=offset, length=length, reading=reading)
        return remote.try_again(read, where, reading), None
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
    said = _SECRETS.sub("", str(error).strip().partition("\n")[0])[:_MAX_SAID]
    return UnreadableLocationError(
        "unreachable", location, detail=f"{type(error).__name__}: {said}."
    )


RUN_LENGTH = 200_000
_FOLDER_MARK = "\0"
_BETWEEN = b"/"
_BLOCK_BYTES = 1 << 16


def sorted_names(folder: str, *, run_length: int = RUN_LENGTH) -> Iterator[tuple[str, bool]]:
    """Yield the names in a folder that are not hidden, and whether each is a folder; of many, sorted runs are merged from disk.

    Raises:
        OSError: if the folder cannot be listed.
    """
    with os.scandir(folder) as listing, ExitStack() as runs:
        # The mark sorts before every letter, so names keep their order with it.
        names = (
            f"{one.name}{_FOLDER_MARK}" if one.is_dir() else one.name
            for one in listing
            if not one.name.startswith(".")
        )
        run = sorted(islice(names, run_length))
        written: list[IO[bytes]] = []
        while len(run) == run_length:
            written.append(_write(run, runs))
            run = sorted(islice(names, run_length))
        for name in heapq.merge(run, *map(_read, written)) if written else run:
            yield name.removesuffix(_FOLDER_MARK), name.endswith(_FOLDER_MARK)


def _write(run: list[str], open_files: ExitStack) -> IO[bytes]:
    file = open_files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
    for name in run:
        file.write(os.fsencode(name) + _BETWEEN)
    file.seek(0)
    return file


def _read(file: IO[bytes]) -> Iterator[str]:
    rest = b""
    while block := file.read(_BLOCK_BYTES):
        *names, rest = (rest + block).split(_BETWEEN)
        yield from map(os.fsdecode, names)


SETTLED_NANOSECONDS = 2_000_000_000
_TAGS = ("ETag", "etag", "generation", "content_settings_md5", "md5Hash")
_TIMES = ("mtime", "LastModified", "last_modified", "created")


@dataclass(frozen=True, kw_only=True)
class ListedFile:
    """One file as a listing tells it.

    Args:
        location: where it is.
        relative: its path below the listed folder, with `/` between parts.
        size: bytes, -1 when the file system does not tell.
        stamp: anything that changes when the file does: time of change, or the tag of a remote store.
        lasting_stamp: as long as this stays the same, the content does. None where nothing says so: a file that was changed in the
            last two seconds, or in the future, may change again without a trace, because clocks are no finer.
    """

    location: str
    relative: str
    size: int
    stamp: str
    lasting_stamp: str | None = None


def is_folder(location: str) -> bool:
    """Return whether there is a folder at a location; the web has none."""
    if is_local(location):
        return local_path(location).is_dir()
    if remote.is_web(location):
        return False
    system, path = _fresh_file_system(location)
    return bool(_ask(system.isdir, path, location))


def is_there(location: str) -> bool:
    if is_local(location):
        return local_path(location).exists()
    try:
        file_facts(location)
    except UnreadableLocationError as error:
        if error.reason != "missing-file":
            raise
        return is_folder(location)
    return True


def file_facts(location: str) -> ListedFile:
    """Return size and stamps of one file; of a range, those of the file that it is in.

    Raises:
        UnreadableLocationError: with a reason, when nothing can be said of it.
    """
    where, _ = split_range(location)
    name = where.rsplit("/", 1)[-1]
    if is_local(where):
        try:
            return _local_fact(local_path(where).stat(), location=location, relative=name)
        except (OSError, ValueError) as error:
            raise UnreadableLocationError("missing-file", location) from error
    if remote.is_web(where):
        return _web_fact(location, where, name)
    system, path = _fresh_file_system(where)
    return _remote_fact(_ask(system.info, path, location), location=location, relative=name)


def stamp_of(location: str) -> str | None:
    """Return the lasting stamp of a file, None where it has none."""
    try:
        return file_facts(location).lasting_stamp
    except UnreadableLocationError:
        return None


def list_files(folder: str) -> Iterator[ListedFile]:
    """Yield every file below a folder, sorted by path; hidden files and folders are left out, links are followed once."""
    if is_local(folder):
        yield from _list_local(str(local_path(folder)), "", frozenset())
        return
    system, path = _fresh_file_system(folder)
    yield from _list_remote(system, path.rstrip("/"), folder, "")


def match_files(pattern: str) -> list[str]:
    """Return the locations that a pattern with `*`, `?` or `[...]` matches, sorted."""
    if is_local(pattern):
        return sorted(glob.glob(str(local_path(pattern)), recursive=True))
    system, path = _fresh_file_system(pattern)
    return sorted(str(system.unstrip_protocol(name)) for name in _ask(system.glob, path, pattern))


def _list_local(
    folder: str, relative: str, above: frozenset[tuple[int, int]]
) -> Iterator[ListedFile]:
    try:
        found = os.stat(folder)
        identity = (found.st_dev, found.st_ino)
        for name, has_more in sorted_names(folder) if identity not in above else ():
            below = f"{relative}/{name}" if relative else name
            path = os.path.join(folder, name)
            if has_more:
                yield from _list_local(path, below, above | {identity})
            else:
                yield _local_file(path, below)
    except OSError as error:
        raise UnavailableError(
            f"The folder cannot be listed: {error.strerror}.",
            where=folder,
            fix="Allow this user to read it.",
        ) from error


def _local_file(path: str, relative: str) -> ListedFile:
    try:
        return _local_fact(os.stat(path), location=path, relative=relative)
    except OSError:
        # A link that points nowhere is still listed, so that it shows up in the quarantine.
        return ListedFile(location=path, relative=relative, size=-1, stamp="")


def _local_fact(found: os.stat_result, *, location: str, relative: str) -> ListedFile:
    is_settled = found.st_mtime_ns < time.time_ns() - SETTLED_NANOSECONDS
    # The time of change of the entry tells of a file that was put in the place of another with the same size and time.
    lasting = f"{found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}" if is_settled else None
    return ListedFile(
        location=location,
        relative=relative,
        size=found.st_size,
        stamp=str(found.st_mtime_ns),
        lasting_stamp=lasting,
    )


def _list_remote(system: Any, path: str, folder: str, relative: str) -> Iterator[ListedFile]:
    entries = _ask(lambda one: system.ls(one, detail=True), path, folder)
    # A store keeps what it listed: that would be all files at last, and the next listing would not see what is new.
    system.invalidate_cache()
    named = sorted(
        (str(info["name"]).rstrip("/").rsplit("/", 1)[-1], info) for info in _inside(entries, path)
    )
    for name, info in named:
        below = f"{relative}/{name}" if relative else name
        if name.startswith("."):
            continue
        if info.get("type") == "directory":
            yield from _list_remote(system, f"{path}/{name}", folder, below)
        else:
            yield _remote_fact(info, location=join_location(folder, below), relative=below)


def _inside(entries: list[dict[str, Any]], path: str) -> Iterator[dict[str, Any]]:
    """Yield what is in a folder, without the empty object by which some stores mark the folder itself."""
    for info in entries:
        if str(info["name"]).strip("/") != path.strip("/"):
            yield info


def _remote_fact(info: dict[str, Any], *, location: str, relative: str) -> ListedFile:
    tag = next((str(info[name]) for name in _TAGS if info.get(name)), "") or str(
        info.get("CRC") or ""
    )
    moment = next((info[name] for name in _TIMES if info.get(name)), "")
    size = -1 if info.get("size") is None else int(info["size"])
    lasting = tag or (str(moment) if isinstance(moment, datetime) and _is_settled(moment) else "")
    return ListedFile(
        location=location,
        relative=relative,
        size=size,
        stamp=tag or str(moment),
        lasting_stamp=f"{size} {lasting}" if lasting else None,
    )


def _is_settled(moment: datetime) -> bool:
    return moment.timestamp() * 1e9 < time.time_ns() - SETTLED_NANOSECONDS


def _web_fact(location: str, url: str, name: str) -> ListedFile:
    try:
        answer = _headers(url)
    except Exception as error:
        raise explained(error, location) from error
    return ListedFile(
        location=location,
        relative=name,
        size=answer.size,
        stamp=answer.stamp,
        lasting_stamp=answer.lasting_stamp,
    )


def _headers(url: str) -> remote.WebAnswer:
    try:
        return remote.ask(remote.WebRequest(url=url, only_headers=True))
    except (PermissionError, LastingTroubleError):
        # A signed address is often good for reading only, and some servers know no other question.
        return remote.ask(remote.WebRequest(url=url, length=1))


def _fresh_file_system(location: str) -> tuple[Any, str]:
    """Return a file system that forgot what it listed before, so that it sees what is there now."""
    try:
        system, path = file_system(location)
    except UnavailableError as error:
        raise explained(error, location) from error
    system.invalidate_cache()
    return system, path


def _ask(ask: Any, path: str, location: str) -> Any:
    try:
        return ask(path)
    except Exception as error:  # every file system of fsspec has errors of its own
        raise explained(error, location) from error


TAR_EXTENSIONS = (".tar", ".tar.gz", ".tgz")
_BRACES = re.compile(r"\{([^{}]*)\}")
_NUMBERS = re.compile(r"(\d+)\.\.(\d+)")
_WILD = re.compile(r"[*?\[]")
_MAX_SHARDS = 1_000_000


def is_pattern(location: str) -> bool:
    return bool(_WILD.search(location) or _BRACES.search(location))


def expand_braces(pattern: str) -> list[str]:
    """Return every location that braces stand for, in order.

    >>> expand_braces("part-{08..10}.tar")
    ['part-08.tar', 'part-09.tar', 'part-10.tar']
    """
    found = _BRACES.search(pattern)
    if found is None:
        return [pattern]
    head, tail = pattern[: found.start()], pattern[found.end() :]
    return list(
        chain.from_iterable(
            expand_braces(head + choice + tail) for choice in _choices(found.group(1), pattern)
        )
    )


def find_shards(location: str) -> list[str]:
    """Return the tar files that a folder, file or pattern means, in order."""
    if not is_pattern(location) and is_folder(location):
        shards = [
            file.location
            for file in list_files(location)
            if file.relative.lower().endswith(TAR_EXTENSIONS)
        ]
    else:
        shards = list(
            chain.from_iterable(
                match_files(one) if _WILD.search(one) else [one] for one in expand_braces(location)
            )
        )
    if not shards:
        raise DataError(
            "No tar file is there.",
            where=shown_location(location),
            fix="Correct the folder or the pattern.",
        )
    return shards


def _choices(inside: str, pattern: str) -> list[str]:
    numbers = _NUMBERS.fullmatch(inside)
    if numbers is None:
        return inside.split(",")
    first, last = numbers.groups()
    if not 0 <= int(last) - int(first) < _MAX_SHARDS:
        raise DataError(
            f"The range {{{inside}}} is empty or too long.",
            where=pattern,
            fix="Write the smaller number first.",
        )
    return [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]
