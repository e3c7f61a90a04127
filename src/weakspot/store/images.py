"""A pack of encoded images for sources that hold them only in memory: large files that grow at the end."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

FULL_PACK_BYTES = 1 << 30
PACK_NAME = re.compile(r"(?:images|pictures)-(\d{4})\.bin")
PACK_SCHEME = "weakspot-pack:"


@dataclass(frozen=True, kw_only=True)
class PackPosition:
    """How far a pack is filled: so many full files, and so many bytes of the next."""

    shard: int
    length: int


class ImagePack:
    """Encoded images, one after the other.

    An image is addressed by `weakspot-pack:<folder>/images-0000.bin#bytes=<offset>-<length>`, which stays true when the project
    folder is moved; the data set that is read from the store has real paths.

    Args:
        folder: where the files are.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._position = PackPosition(shard=0, length=0)
        self._stream: BinaryIO | None = None

    @property
    def position(self) -> PackPosition:
        return self._position

    def append(self, data: bytes) -> str:
        """Add an image and return its address; it is on disk after the next `flush`."""
        if self._position.length and self._position.length + len(data) > FULL_PACK_BYTES:
            self.close()
            self._position = PackPosition(shard=self._position.shard + 1, length=0)
        path = self._path(self._position.shard)
        if self._stream is None:
            self._stream = path.open("ab")
        self._stream.write(data)
        address = (
            f"{PACK_SCHEME}{self.folder.name}/{path.name}#bytes={self._position.length}-{len(data)}"
        )
        self._position = PackPosition(
            shard=self._position.shard, length=self._position.length + len(data)
        )
        return address

    def flush(self) -> None:
        if self._stream is not None:
            self._stream.flush()
            os.fsync(self._stream.fileno())

    def close(self) -> None:
        if self._stream is not None:
            self.flush()
            self._stream.close()
            self._stream = None

    def cut_back(self, position: PackPosition) -> None:
        """Forget everything after a position: images whose samples were never recorded."""
        self.close()
        self._position = position
        for path in self.folder.glob("*.bin"):
            found = PACK_NAME.fullmatch(path.name)
            if found is None or int(found[1]) > position.shard:
                path.unlink()
        last = self._path(position.shard)
        if last.exists():
            os.truncate(last, position.length)

    def is_whole(self, position: PackPosition) -> bool:
        """Return whether the pack reaches at least to a position."""
        path = self._path(position.shard)
        return position.length == 0 or (path.exists() and path.stat().st_size >= position.length)

    def _path(self, shard: int) -> Path:
        earlier = self.folder / f"pictures-{shard:04d}.bin"
        return earlier if earlier.exists() else self.folder / f"images-{shard:04d}.bin"
