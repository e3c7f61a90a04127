"""Which files of a data set a protocol expects, and whether they are there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from weakspot.core.errors import DataError


@dataclass(frozen=True, kw_only=True, eq=False)
class DataSet:
    """A data set as it is distributed.

    Args:
        name: as the paper calls it.
        files: what must be there: a path relative to the data folder, which may be a pattern such as `images_*`, and what it holds,
            in the words of the data set.
    """

    name: str
    files: Mapping[str, str]

    def missing(self, folder: Path) -> tuple[str, ...]:
        return tuple(path for path in self.files if not any(folder.glob(path)))

    def is_in(self, folder: Path) -> bool:
        return folder.is_dir() and not self.missing(folder)

    def share_missing(self, folder: Path) -> float:
        return len(self.missing(folder)) / len(self.files)

    @property
    def words(self) -> str:
        return "; ".join(f"{path} ({what})" for path, what in self.files.items())


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
    there = min(sets, key=lambda one: one.share_missing(folder))
    if there.share_missing(folder) == 1.0:
        raise DataError(
            f"The folder holds no file of a data set of {paper}.", where=str(folder), fix=expected
        )
    raise DataError(
        f"Files of {there.name} are missing.",
        where=str(folder),
        given=list(there.missing(folder)),
        fix=f"The folder must hold {there.words}.",
    )
