"""Files that appear all at once, or not at all, and never in place of a user's own."""

import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from weakspot.core.errors import ModelError

_N_SHOWN = 10


@contextmanager
def new_files(folder: Path) -> Iterator[Path]:
    """Yield an empty folder beside the given one; when the block ends without an error, what is in it is moved there.

    Args:
        folder: made if need be; files that are in it stay as they are.

    Raises:
        ModelError: if a file of the same name is there already; then nothing is moved.
    """
    place = folder.absolute()
    staging = place.with_name(f".{place.name}.tmp-{secrets.token_hex(4)}")
    try:
        staging.mkdir(parents=True)
        yield staging
        _move(staging, folder)
    except OSError as error:
        raise ModelError(
            f"The files cannot be written: {error.strerror or error}.",
            where=str(folder),
            fix="Choose another folder.",
        ) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def refuse_existing(folder: Path, names: Iterable[Path | str]) -> None:
    """Refuse to write files of these names into a folder if there are any such.

    Raises:
        ModelError: with the names that are there already.
    """
    if folder.exists() and not folder.is_dir():
        raise ModelError(
            "This is a file, not a folder.", where=str(folder), fix="Choose another folder."
        )
    taken = sorted(
        str(name) for name in names if (folder / name).exists() or (folder / name).is_symlink()
    )
    if taken:
        more = f" and {len(taken) - _N_SHOWN} more" if len(taken) > _N_SHOWN else ""
        raise ModelError(
            f"Files of these names are there already, and nothing is overwritten: {', '.join(taken[:_N_SHOWN])}{more}.",
            where=str(folder),
            fix="Choose another folder, or move them away.",
        )


def files_in(folder: Path) -> tuple[Path, ...]:
    """Return every file below a folder, relative to it, in order of name."""
    return tuple(path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file())


def main_first(folder: Path, names: Iterable[Path], main: Path) -> tuple[Path, ...]:
    """Return files of a folder, the main one first, the others by name."""
    return tuple(folder / name for name in sorted(names, key=lambda name: (name != main, name)))


def _move(staging: Path, folder: Path) -> None:
    names = files_in(staging)
    refuse_existing(folder, names)
    if not folder.exists():
        os.replace(staging, folder)
        return
    moved: list[Path] = []
    try:
        for name in names:
            _made((folder / name).parent)
            os.replace(staging / name, folder / name)
            moved.append(folder / name)
    except OSError:
        _unlink(moved)
        raise


def _made(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)


def _unlink(files: Sequence[Path]) -> None:
    for file in files:
        file.unlink(missing_ok=True)
