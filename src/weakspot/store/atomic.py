"""Writing files so that a crash at any instant leaves the old file or the new one, and one writer at a time."""

import fcntl
import json
import os
import secrets
import socket
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import IO

from pydantic import JsonValue

from weakspot.core.errors import StoreError

TEMPORARY_MARK = ".tmp-"
ABANDONED_SECONDS = 24 * 3600.0


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; when the block ends without an error it becomes `path`, on disk.

    The temporary path may be written as a file or made a folder. What killed writers of the same path left behind is removed.
    """
    temporary = path.with_name(f"{path.name}{TEMPORARY_MARK}{_writer()}-{secrets.token_hex(4)}")
    try:
        _remove_abandoned(path)
        yield temporary
        flush_to_disk(temporary)
        os.replace(temporary, path)
    except BaseException:
        remove(temporary)
        raise
    flush_folder(path.parent)


def write_bytes(path: Path, content: bytes) -> None:
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def write_json(path: Path, content: Mapping[str, JsonValue]) -> None:
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
    """Delete what interrupted writes left behind under a folder; only while no other machine writes there."""
    for path in sorted(folder.rglob(f"*{TEMPORARY_MARK}*")):
        remove_leftover(path)


def remove_leftover(path: Path) -> None:
    """Delete a path if it is a temporary that nobody on this machine is writing."""
    if TEMPORARY_MARK in path.name and not _is_being_written(path):
        remove(path)


def _remove_abandoned(path: Path) -> None:
    """Delete temporaries of a path whose writer is gone; a writer on another machine is given a day."""
    prefix = f"{path.name}{TEMPORARY_MARK}"
    with suppress(
        OSError
    ):  # whoever writes next removes them, and the write itself tells what is wrong
        for temporary in [one for one in path.parent.iterdir() if one.name.startswith(prefix)]:
            is_ours = temporary.name.startswith(f"{prefix}{_machine()}-")
            if is_ours or time.time() - temporary.stat().st_mtime > ABANDONED_SECONDS:
                remove_leftover(temporary)


def _is_being_written(temporary: Path) -> bool:
    """Say whether the process that a temporary is named after is alive on this machine."""
    machine, _, rest = temporary.name.rpartition(TEMPORARY_MARK)[2].partition("-")
    process, _, rest = rest.partition("-")
    started = rest.partition("-")[0]
    return machine == _machine() and process.isdecimal() and started == _started(int(process))


def _writer() -> str:
    process = os.getpid()
    return f"{_machine()}-{process}-{_started(process)}"


def _started(process: int) -> str:
    """Return when a process started, as the system counts: a number that is used again is another process; "" if it is gone."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        pass
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return ""
    except OSError:
        return "0"
    return "0"


@cache
def _machine() -> str:
    """Return a short name of this machine since its start, or of this container: where process numbers mean the same."""
    facts = [socket.gethostname()]
    with suppress(OSError):
        facts.append(Path("/proc/sys/kernel/random/boot_id").read_text())
        facts.append(os.readlink("/proc/self/ns/pid"))
    return f"{zlib.crc32(chr(10).join(facts).encode()):08x}"


WAIT_SECONDS = 0.05


@contextmanager
def exclusive(path: Path, *, patience: float = 0.0) -> Iterator[None]:
    """Hold the lock file; the operating system lets go of it when the process ends, however it ends.

    Args:
        path: of the lock file.
        patience: seconds to wait for another writer.

    Raises:
        StoreError: if another writer holds it for longer than that, with its process id, host and start.
    """
    with path.open("a+b") as stream:
        _take(stream, path, time.monotonic() + patience)
        _sign(stream)
        try:
            yield
        finally:
            stream.truncate(0)


def _take(stream: IO[bytes], path: Path, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise _held_by(path) from None
            time.sleep(WAIT_SECONDS)
        else:
            return


def _sign(stream: IO[bytes]) -> None:
    holder = {
        "process": os.getpid(),
        "host": socket.gethostname(),
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    stream.truncate(0)
    stream.write(json.dumps(holder).encode())
    stream.flush()


def _held_by(path: Path) -> StoreError:
    try:
        holder = json.loads(path.read_bytes())
        who = f"process {holder['process']} on {holder['host']}, since {holder['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        who = "another process that has just started"
    return StoreError(
        f"The project is being written by {who}.",
        where=str(path.parent.parent),
        fix="Wait until it has finished or end it; the lock vanishes with that process, there is nothing to delete.",
    )
