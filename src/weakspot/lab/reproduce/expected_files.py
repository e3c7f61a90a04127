"""Which files of a data set a protocol expects, and whether they are there."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from weakspot.core.errors import DataError


@dataclass(frozen=True, kw_only=True)
class ExpectedFile:
    """A file or folder of a data set.

    Args:
        path: relative to the data folder; may be a pattern such as `images_*`.
        what: what it holds, and how the data set calls it.
    """

    path: str
    what: str


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """A data set as it is distributed.

    Args:
        name: as the paper calls it.
        files: what must be there.
    """

    name: str
    files: tuple[ExpectedFile, ...]

    def missing(self, folder: Path) -> tuple[ExpectedFile, ...]:
        return tuple(one for one in self.files if not any(folder.glob(one.path)))

    def is_in(self, folder: Path) -> bool:
        return folder.is_dir() and not self.missing(folder)

    @property
    def words(self) -> str:
        return "; ".join(f"{one.path} ({one.what})" for one in self.files)


def require_data(folder: Path | None, sets: Sequence[DataSet], *, paper: str) -> DataSet:
    """Return the first of the data sets that a folder holds whole.

    Raises:
        DataError: if it holds none; the message says which files each of them needs.
    """
    if folder is not None:
        for one in sets:
            if one.is_in(folder):
                return one
    expected = " | ".join(f"{one.name}: {one.words}" for one in sets)
    if folder is None:
        raise DataError(
            f"The protocol of {paper} needs data.",
            where="--data",
            fix=f"Give a folder with one of these, or --stand-in. {expected}.",
        )
    if not folder.is_dir():
        raise DataError("There is no such folder.", where="--data", given=str(folder), fix=expected)
    there = min(sets, key=lambda one: len(one.missing(folder)))
    raise DataError(
        f"Files of {there.name} are missing.",
        where=str(folder),
        given=[one.path for one in there.missing(folder)],
        fix=f"The folder must hold {there.words}.",
    )
