"""Files that are made once from a file of vectors, stand beside it, and are made anew when it changes."""

import os
import secrets
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from weakspot.core.arrays import AnyArray
from weakspot.core.errors import DataError, StoreError

N_PROBES = 16
PROBE_BYTES = 4096


def file_of(array: AnyArray) -> Path:
    """Return the file that an array is the memory map of.

    Raises:
        DataError: if it is none, or the file is gone.
    """
    name = getattr(array, "filename", None)
    if name is None or not Path(name).exists():
        raise DataError(
            "The vectors are not in a file of the project, so nothing that is made from them can stand beside it.",
            fix="Use --index exact.",
        )
    return Path(name)


def mark_of(path: Path) -> str:
    """Return what tells one state of a file from another without reading all of it: size, time, and a few places of its content."""
    facts = path.stat()
    value = 0
    with path.open("rb") as stream:
        for probe in range(N_PROBES):
            stream.seek(probe * max(facts.st_size - PROBE_BYTES, 0) // (N_PROBES - 1))
            value = zlib.crc32(stream.read(PROBE_BYTES), value)
    return f"{facts.st_size}-{facts.st_mtime_ns}-{value:08x}"


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; when the block ends without an error it becomes `path`, on disk.

    Raises:
        StoreError: if the folder cannot be written.
    """
    temporary = path.with_name(f"{path.name}.tmp-{secrets.token_hex(4)}")
    try:
        yield temporary
        with temporary.open("rb") as stream:
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise StoreError(
            f"A smaller copy of the vectors cannot be written: {error.strerror or error}.",
            where=str(path),
            fix="Make room or the folder writable, or look with --index exact, which needs no copy.",
        ) from error
    finally:
        temporary.unlink(missing_ok=True)
