"""Names in a local folder in their order, with little memory however many there are."""

import heapq
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from typing import IO

RUN_LENGTH = 200_000
_FOLDER_MARK = "\0"
_BETWEEN = b"/"
_BLOCK_BYTES = 1 << 16


def sorted_names(folder: str, *, run_length: int = RUN_LENGTH) -> Iterator[tuple[str, bool]]:
    """Yield the names in a folder that are not hidden, and whether each is a folder; of many, sorted runs are merged from disk.

    Raises:
        OSError: if the folder cannot be listed.
    """
    with os.scandir(folder) as listing, ExitStack() as runs:
        # The mark sorts before every letter, so names keep their order with it.
        names = (f"{one.name}{_FOLDER_MARK}" if one.is_dir() else one.name for one in listing if not one.name.startswith("."))
        run = sorted(islice(names, run_length))
        written: list[IO[bytes]] = []
        while len(run) == run_length:
            written.append(_written(run, runs))
            run = sorted(islice(names, run_length))
        for name in heapq.merge(run, *map(_read, written)) if written else run:
            yield name.removesuffix(_FOLDER_MARK), name.endswith(_FOLDER_MARK)


def _written(run: list[str], open_files: ExitStack) -> IO[bytes]:
    file = open_files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
    for name in run:
        file.write(os.fsencode(name) + _BETWEEN)
    file.seek(0)
    return file


def _read(file: IO[bytes]) -> Iterator[str]:
    rest = b""
    while block := file.read(_BLOCK_BYTES):
        *names, rest = (rest + block).split(_BETWEEN)
        yield from map(os.fsdecode, names)
