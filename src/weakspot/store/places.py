"""Where images are, so that a project folder can be moved or copied: places below it are stored without it."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePath

import pyarrow as pa
import pyarrow.compute as pc

from weakspot.store.images import PACK_SCHEME

PROJECT_SCHEME = "weakspot-project:"
LOOKED_AT = 20


@dataclass(frozen=True, kw_only=True)
class Places:
    """Turns places of this machine into places within a project, and back.

    Args:
        packs: folder of the packs of images that locations may point into.
        root: the project folder; None if nothing lies below it.
    """

    packs: Path
    root: Path | None = None

    @cached_property
    def folder(self) -> str:
        """Return the project folder with the separator behind it; empty if there is none."""
        return "" if self.root is None else f"{os.path.abspath(self.root)}{os.sep}"

    @property
    def key(self) -> str:
        """Return what real places depend on."""
        return f"{os.path.abspath(self.packs)} {self.folder}"

    def stored(self, locations: pa.Array) -> pa.Array:
        """Return locations as they are stored: those below the project folder without it."""
        for folder in self._own_names():
            locations = _with_start(locations, folder, PROJECT_SCHEME)
        return locations

    def real(self, locations: pa.Array) -> pa.Array:
        """Return locations on this machine; those that an earlier version stored whole are looked for where the project is now."""
        locations = _with_start(locations, PACK_SCHEME, f"{self.packs}{os.sep}")
        if not self.folder:
            return locations
        locations = _with_start(locations, PROJECT_SCHEME, self.folder)
        earlier = self._earlier_folder(locations)
        return locations if earlier is None else _with_start(locations, earlier, self.folder)

    def _own_names(self) -> tuple[str, ...]:
        if self.root is None:
            return ()
        given = f"{self.root}{os.sep}"
        names = {self.folder, f"{os.path.realpath(self.root)}{os.sep}"}
        return tuple(names | {given}) if os.path.isabs(given) else tuple(names)

    def _earlier_folder(self, locations: pa.Array) -> str | None:
        """Return the folder that the project was in when it stored whole places, None if they are right or cannot be found here."""
        looked_at = locations.drop_null()
        step = max(1, len(looked_at) // LOOKED_AT)
        paths = [str(one) for one in looked_at[::step].to_pylist()] if len(looked_at) else []
        plain = [path for path in paths if os.path.isabs(path) and "#bytes=" not in path]
        if not plain or any(os.path.exists(path) for path in plain):
            return None
        return next(filter(None, (self._moved_from(path) for path in plain)), None)

    def _moved_from(self, path: str) -> str | None:
        """Return what stood before the longest end of a path that is found in the project folder."""
        parts: Sequence[str] = PurePath(path).parts
        for cut in range(1, len(parts)):
            if os.path.exists(os.path.join(self.folder, *parts[cut:])):
                return f"{os.path.join(*parts[:cut])}{os.sep}"
        return None


def _with_start(locations: pa.Array, old: str, new: str) -> pa.Array:
    """Return locations that begin with something else instead."""
    starts = pc.fill_null(pc.starts_with(locations, old), False)  # noqa: FBT003 - the fill value
    if not pc.any(starts).as_py():
        return locations
    changed = pc.binary_join_element_wise(
        pa.scalar(new), pc.utf8_slice_codeunits(locations, len(old)), ""
    )
    return pc.if_else(starts, changed, locations)
