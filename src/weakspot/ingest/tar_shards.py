"""Members of tar files, grouped into samples by the part of their name before the first dot."""

import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field

from weakspot.core.errors import DataError
from weakspot.media.locations import open_location, shown_location

_MAX_SIDE_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class TarMember:
    """One file in a tar file.

    Args:
        offset: where its bytes begin in the tar file; None when the tar file is compressed and nothing can point into it.
        size: how many bytes.
        data: its bytes, for small files beside pictures and in compressed tar files.
    """

    offset: int | None
    size: int
    data: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class TarGroup:
    """Consecutive members with the same name before the first dot.

    Args:
        key: that name, with its folder.
        members: member by what follows the first dot, in lower case.
    """

    key: str
    members: dict[str, TarMember]


def read_groups(location: str, *, side_extensions: frozenset[str]) -> Iterator[TarGroup]:
    """Yield the groups of a tar file in order.

    Args:
        location: the tar file.
        side_extensions: last extensions of the small members whose bytes are wanted.
    """
    key: str | None = None
    members: dict[str, TarMember] = {}
    for name, member in _members(location, side_extensions):
        found, extension = _split_name(name)
        if found != key and members:
            yield TarGroup(key=key or "", members=members)
            members = {}
        key = found
        members[extension] = member
    if members:
        yield TarGroup(key=key or "", members=members)


def _members(location: str, side_extensions: frozenset[str]) -> Iterator[tuple[str, TarMember]]:
    is_packed = not location.lower().endswith(".tar")
    try:
        with open_location(location) as raw, tarfile.open(fileobj=raw, mode="r|*" if is_packed else "r:") as archive:
            while (info := archive.next()) is not None:
                # The archive would keep every member it has seen.
                archive.__dict__["members"].clear()
                if info.isfile() and not info.name.rsplit("/", 1)[-1].startswith("."):
                    wants = is_packed or info.name.rsplit(".", 1)[-1].lower() in side_extensions
                    yield info.name, _member(archive, info, wants_data=wants, is_packed=is_packed)
    except (tarfile.TarError, EOFError, OSError) as error:
        raise DataError(
            f"The tar file cannot be read: {error}.",
            where=shown_location(location),
            fix="Check that it is complete; copy it again if not.",
        ) from error


def _member(archive: tarfile.TarFile, info: tarfile.TarInfo, *, wants_data: bool, is_packed: bool) -> TarMember:
    data = None
    if wants_data and (is_packed or info.size <= _MAX_SIDE_BYTES):
        file = archive.extractfile(info)
        data = file.read() if file is not None else b""
    return TarMember(offset=None if is_packed else info.offset_data, size=info.size, data=data)


def _split_name(name: str) -> tuple[str, str]:
    folder, slash, base = name.rpartition("/")
    stem, _, extension = base.partition(".")
    return folder + slash + stem, extension.lower()
