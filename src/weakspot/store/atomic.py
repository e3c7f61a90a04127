"""Writing files so that a crash at any instant leaves the old file or the new one, never half of one."""

import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pydantic import JsonValue

from weakspot.core.errors import StoreError

TEMPORARY_MARK = ".tmp-"


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; when the block ends without an error it becomes `path`, on disk.

    The temporary path may be written as a file or made a folder.
    """
    temporary = path.with_name(f"{path.name}{TEMPORARY_MARK}{secrets.token_hex(4)}")
    try:
        yield temporary
        flush_to_disk(temporary)
        os.replace(temporary, path)
    except BaseException:
        remove(temporary)
        raise
    flush_folder(path.parent)


def write_bytes(path: Path, content: bytes) -> None:
    """Replace a file by the given bytes."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def write_json(path: Path, content: Mapping[str, JsonValue]) -> None:
    """Replace a JSON file."""
    write_bytes(path, (json.dumps(content, indent=1, sort_keys=True) + "\n").encode())


def read_json(path: Path) -> dict[str, JsonValue]:
    """Read a JSON object.

    Raises:
        StoreError: if the file holds anything else.
    """
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise damaged(path, str(error)) from error
    if not isinstance(content, dict):
        raise damaged(path, "it is not a JSON object")
    return content


def damaged(path: Path, why: str) -> StoreError:
    """Return the error for a file of the project folder that cannot be used."""
    return StoreError(
        f"A file of the project folder is damaged: {why}.",
        where=str(path),
        fix="Delete it, or the whole .weakspot folder, and run the command again: all of it is made from your files.",
    )


def flush_to_disk(path: Path) -> None:
    """Wait until a file, or every file under a folder, is on disk."""
    if path.is_dir():
        for child in path.iterdir():
            flush_to_disk(child)
        flush_folder(path)
        return
    with path.open("rb") as stream:
        os.fsync(stream.fileno())


def flush_folder(folder: Path) -> None:
    """Wait until the names in a folder are on disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove(path: Path) -> None:
    """Delete a file or a folder with everything in it; fine if there is none."""
    if path.is_dir() and not path.is_symlink():
        for child in path.iterdir():
            remove(child)
        path.rmdir()
    else:
        path.unlink(missing_ok=True)


def remove_leftovers(folder: Path) -> None:
    """Delete what interrupted writes left behind under a folder; only while no one else writes there."""
    for found in sorted(folder.rglob(f"*{TEMPORARY_MARK}*")):
        remove(found)
