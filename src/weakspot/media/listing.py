"""Listing files of a local or remote folder in an order that never changes."""

import glob
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from weakspot.core.errors import UnavailableError
from weakspot.media.locations import UnreadableLocationError, is_local, join_location, local_path, shown_location


@dataclass(frozen=True, kw_only=True)
class ListedFile:
    """One file as a listing tells it.

    Args:
        location: where it is.
        relative: its path below the listed folder, with `/` between parts.
        size: bytes, -1 when the file system does not tell.
        stamp: anything that changes when the file does: time of change, or the tag of a remote store.
    """

    location: str
    relative: str
    size: int
    stamp: str


def is_folder(location: str) -> bool:
    """Return whether there is a folder at a location."""
    if is_local(location):
        return local_path(location).is_dir()
    system, path = _file_system(location)
    return bool(system.isdir(path))


def is_there(location: str) -> bool:
    """Return whether there is anything at a location."""
    if is_local(location):
        return local_path(location).exists()
    system, path = _file_system(location)
    return bool(system.exists(path))


def file_facts(location: str) -> ListedFile:
    """Return size and stamp of one file."""
    name = location.rsplit("/", 1)[-1]
    if is_local(location):
        try:
            found = local_path(location).stat()
        except OSError as error:
            raise UnreadableLocationError("missing-file", location) from error
        return ListedFile(location=location, relative=name, size=found.st_size, stamp=str(found.st_mtime_ns))
    system, path = _file_system(location)
    try:
        return _remote_fact(system.info(path), location=location, relative=name)
    except FileNotFoundError as error:
        raise UnreadableLocationError("missing-file", location) from error


def list_files(folder: str) -> Iterator[ListedFile]:
    """Yield every file below a folder, sorted by path; hidden files and folders are left out, links are followed once."""
    if is_local(folder):
        yield from _list_local(str(local_path(folder)), "", frozenset())
        return
    system, path = _file_system(folder)
    root = str(path).rstrip("/")
    for name, info in sorted(system.find(path, detail=True).items()):
        relative = str(name)[len(root) :].lstrip("/")
        if not any(part.startswith(".") for part in relative.split("/")):
            yield _remote_fact(info, location=join_location(folder, relative), relative=relative)


def match_files(pattern: str) -> list[str]:
    """Return the locations that a pattern with `*`, `?` or `[...]` matches, sorted."""
    if is_local(pattern):
        return sorted(glob.glob(str(local_path(pattern)), recursive=True))
    system, path = _file_system(pattern)
    return sorted(str(system.unstrip_protocol(name)) for name in system.glob(path))


def _list_local(folder: str, relative: str, above: frozenset[tuple[int, int]]) -> Iterator[ListedFile]:
    try:
        found = os.stat(folder)
        with os.scandir(folder) as listing:
            entries = sorted((entry for entry in listing if not entry.name.startswith(".")), key=lambda entry: entry.name)
    except OSError as error:
        raise UnavailableError(
            f"The folder cannot be listed: {error.strerror}.", where=folder, fix="Allow this user to read it."
        ) from error
    identity = (found.st_dev, found.st_ino)
    if identity in above:
        return
    for entry in entries:
        below = f"{relative}/{entry.name}" if relative else entry.name
        if entry.is_dir():
            yield from _list_local(entry.path, below, above | {identity})
        else:
            yield _local_fact(entry, below)


def _local_fact(entry: "os.DirEntry[str]", relative: str) -> ListedFile:
    try:
        found = entry.stat()
    except OSError:
        # A link that points nowhere is still listed, so that it shows up in the quarantine.
        return ListedFile(location=entry.path, relative=relative, size=-1, stamp="")
    return ListedFile(location=entry.path, relative=relative, size=found.st_size, stamp=str(found.st_mtime_ns))


def _remote_fact(info: dict[str, Any], *, location: str, relative: str) -> ListedFile:
    stamp = next((info[name] for name in ("ETag", "etag", "mtime", "LastModified", "created", "CRC") if info.get(name)), "")
    size = info.get("size")
    return ListedFile(location=location, relative=relative, size=-1 if size is None else int(size), stamp=str(stamp))


def _file_system(location: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs

        system, path = url_to_fs(location)
    except (ImportError, ValueError) as error:
        raise UnavailableError(
            f"The location cannot be opened: {error}.",
            where=shown_location(location),
            fix="Install the library that is named there, or correct the address.",
        ) from error
    return system, str(path)
