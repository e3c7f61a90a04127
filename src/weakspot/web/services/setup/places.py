"""Which places of this machine may be named on the pages of the set-up, and what lies there."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from pathlib import Path

from weakspot.core.errors import ConfigError
from weakspot.ingest.hf_dataset import SHARD_EXTENSIONS
from weakspot.ingest.image_folder import is_image_name
from weakspot.ingest.shard_patterns import TAR_EXTENSIONS
from weakspot.ingest.tables import TABLE_EXTENSIONS
from weakspot.project.new_settings import BY_SUFFIX
from weakspot.web.services.view import View

MOST_LISTED = 500
MOST_LOOKED_AT = 20_000


class PlaceKind(StrEnum):
    """What lies at a place, as far as its name tells."""

    FOLDER = "folder"
    DATA = "data"
    MODEL = "model"


class Place(View):
    """Something that can be chosen.

    Args:
        name: its own name.
        path: the whole path.
        kind: what it may be.
    """

    name: str
    path: str
    kind: PlaceKind


class PlaceList(View):
    """What lies in a folder.

    Args:
        path: the folder.
        above: the folder around it, None if that may not be looked into.
        places: folders first, then files that may be data or models; hidden ones are left out.
        n_images: image files that lie there themselves.
        is_whole: whether everything is listed.
    """

    path: str
    above: str | None
    places: list[Place]
    n_images: int
    is_whole: bool


@dataclass(frozen=True, kw_only=True)
class AllowedPlaces:
    """What may be named: nothing but what lies below some folders, links followed.

    Args:
        start: where relative paths start.
        roots: the folders, and single files.
    """

    start: Path
    roots: Sequence[Path]

    def allow(self, text: str) -> Path:
        """Return the real path of a place.

        Raises:
            ConfigError: if it lies elsewhere, or nothing is there.
        """
        try:
            found = (self.start / text).resolve()
            is_there = found.exists()
        except (OSError, ValueError, RuntimeError):
            raise ConfigError("This is no path.", where="path") from None
        if not any(found.is_relative_to(root.resolve()) for root in self.roots):
            raise ConfigError(
                "This place may not be read from here.",
                where="path",
                fix=f"Choose something below {self.shown}, or start `weakspot serve` with the place behind it.",
            )
        if not is_there:
            raise ConfigError("There is nothing at this path.", where="path", fix="Correct it.")
        return found

    @property
    def shown(self) -> str:
        return " or ".join(dict.fromkeys(str(root.resolve()) for root in self.roots))

    def list_folder(self, text: str) -> PlaceList:
        """Return what lies in a folder.

        Raises:
            ConfigError: if it may not be read, is not there, or is a file.
        """
        folder = self.allow(text or ".")
        try:
            entries = sorted(
                islice(os.scandir(folder), MOST_LOOKED_AT), key=lambda one: one.name.lower()
            )
        except OSError as error:
            raise ConfigError(
                f"The folder cannot be read: {error.strerror}.", where="path"
            ) from error
        seen = [(one, _kind_of(one)) for one in entries if not one.name.startswith(".")]
        places = [
            Place(name=one.name, path=one.path, kind=kind) for one, kind in seen if kind is not None
        ]
        places.sort(key=lambda place: place.kind is not PlaceKind.FOLDER)
        above = folder.parent
        may_rise = any(above.is_relative_to(root.resolve()) for root in self.roots)
        return PlaceList(
            path=str(folder),
            above=str(above) if may_rise and above != folder else None,
            places=places[:MOST_LISTED],
            n_images=sum(is_image_name(one.name) for one, _ in seen),
            is_whole=len(places) <= MOST_LISTED and len(entries) < MOST_LOOKED_AT,
        )


def _kind_of(entry: "os.DirEntry[str]") -> PlaceKind | None:
    name = entry.name.lower()
    try:
        if entry.is_dir():
            return PlaceKind.FOLDER
    except OSError:
        return None
    if name.endswith((*TABLE_EXTENSIONS, *TAR_EXTENSIONS, *SHARD_EXTENSIONS)):
        return PlaceKind.DATA
    return PlaceKind.MODEL if name.endswith(tuple(BY_SUFFIX)) else None
