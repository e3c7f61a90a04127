"""Small images of samples, kept on disk: made once, for all requests, processes and people."""

import contextlib
import hashlib
import os
import secrets
import threading
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weakspot.media.images import jpeg_at
from weakspot.web.services.workspace import Workspace

SIDES = (64, 96, 128, 160, 224, 320, 512)
FOLDER = "thumbnails"
MOST_BYTES = 512 * 1024 * 1024
KEPT_SHARE = 0.75
UNFINISHED = ".part"
_DECODING = threading.BoundedSemaphore(max(2, (os.cpu_count() or 1)))


@dataclass(frozen=True, kw_only=True)
class Thumbnail:
    """A small image.

    Args:
        data: a JPEG file.
        tag: the same for the same image and size, for ever.
    """

    data: bytes
    tag: str


class ThumbnailFolder:
    """Thumbnails on disk by content and side; when there are too many bytes, the oldest go.

    Every file is written under a name of its own and then renamed, so that readers and other processes see whole files or none.
    A disk that is full or read-only costs time, not answers.

    Args:
        folder: where they are; made when the first one is kept.
        most_bytes: how much is kept at most, within what one process writes between two counts.
    """

    def __init__(self, folder: Path, *, most_bytes: int = MOST_BYTES) -> None:
        self.folder = folder
        self.most_bytes = most_bytes
        self._guard = threading.Lock()
        self._n_bytes: int | None = None

    def get(self, tag: str) -> bytes | None:
        try:
            return self._path(tag).read_bytes() or None
        except OSError:
            return None

    def keep(self, tag: str, data: bytes) -> None:
        path = self._path(tag)
        unfinished = path.with_name(f"{path.name}.{secrets.token_hex(6)}{UNFINISHED}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished.write_bytes(data)
            os.replace(unfinished, path)
        except OSError:
            with contextlib.suppress(OSError):
                unfinished.unlink(missing_ok=True)
            return
        self._count(len(data))

    def _path(self, tag: str) -> Path:
        return self.folder / tag[:2] / f"{tag}.jpg"

    def _count(self, n_bytes: int) -> None:
        with self._guard:
            if self._n_bytes is None:
                self._n_bytes = sum(size for _, size, _ in self._files())
            else:
                self._n_bytes += n_bytes
            if self._n_bytes > self.most_bytes:
                self._n_bytes = self._tidy()

    def _tidy(self) -> int:
        """Delete the oldest files until three quarters of what may be kept are left; return how many bytes that is."""
        files = sorted(self._files())
        n_bytes = sum(size for _, size, _ in files)
        for _, size, path in files:
            if n_bytes <= KEPT_SHARE * self.most_bytes:
                break
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
            n_bytes -= size
        return n_bytes

    def _files(self) -> list[tuple[float, int, Path]]:
        """Return age, size and path of every file; others may delete some meanwhile."""
        found = []
        for path in self.folder.glob("*/*"):
            try:
                facts = path.stat()
            except OSError:
                continue
            found.append((facts.st_mtime, facts.st_size, path))
        return found


def thumbnail(workspace: Workspace, row: int, *, side: int) -> Thumbnail | None:
    """Return a small image of a sample, None if it has none that can be read.

    Args:
        workspace: the project.
        row: which sample.
        side: longest side in pixels; the next larger one of `SIDES` is taken.
    """
    dataset = workspace.samples.dataset
    if not 0 <= row < len(dataset):
        return None
    here = np.array([row])
    (location,), (content,) = dataset.locations(here), dataset.content_hashes(here)
    if location is None:
        return None
    size = next((step for step in SIDES if step >= side), SIDES[-1])
    tag = hashlib.sha256(f"{content} {size}".encode()).hexdigest()[:32]
    kept = _folder(workspace)
    data = kept.get(tag)
    if data is None:
        with _DECODING, workspace.project.reading():
            data = jpeg_at(location, size)
        if data is None:
            return None
        kept.keep(tag, data)
    return Thumbnail(data=data, tag=tag)


def _folder(workspace: Workspace) -> ThumbnailFolder:
    return workspace.once(FOLDER, lambda: ThumbnailFolder(workspace.project.store.data / FOLDER))
