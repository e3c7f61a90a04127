"""Listing files of a local or remote folder in an order that never changes, a folder at a time."""

import glob
import heapq
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import IO, Any

from weakspot.core.errors import UnavailableError
from weakspot.media import web
from weakspot.media.cloud import file_system
from weakspot.media.locations import (
    UnreadableLocationError,
    explained,
    is_local,
    join_location,
    local_path,
    split_range,
)
from weakspot.media.remote import LastingTroubleError

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
    if web.is_web(location):
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
    if web.is_web(where):
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


def _headers(url: str) -> web.WebAnswer:
    try:
        return web.ask(web.WebRequest(url=url, only_headers=True))
    except (PermissionError, LastingTroubleError):
        # A signed address is often good for reading only, and some servers know no other question.
        return web.ask(web.WebRequest(url=url, length=1))


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
