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
    begun = [one for one in sets if len(one.missing(folder)) < len(one.files)]
    if not begun:
        raise DataError(
            f"The folder holds no file of a data set of {paper}.", where=str(folder), fix=expected
        )
    raise DataError(
        f"Files of {' or of '.join(one.name for one in begun)} are missing.",
        where=str(folder),
        given=[path for one in begun for path in one.missing(folder)],
        fix=f"The folder must hold {' | or '.join(one.words for one in begun)}.",
    )
