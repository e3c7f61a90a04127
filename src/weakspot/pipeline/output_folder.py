"""Files that a command leaves in a folder of the user's choice."""

import io
from collections.abc import Mapping
from pathlib import Path

from PIL import Image

from weakspot.core.errors import ConfigError


def written(folder: Path, contents: Mapping[str, bytes | Image.Image]) -> tuple[Path, ...]:
    """Write files by name into a folder that is made if need be, and return where they are, in order.

    Args:
        folder: of the user's choice.
        contents: bytes, or images, which are written as PNG.

    Raises:
        ConfigError: if the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            (folder / name).write_bytes(content if isinstance(content, bytes) else _encode(content))
    except OSError as error:
        raise ConfigError(
            f"The files cannot be written: {error.strerror}.", where=str(folder)
        ) from error
    return tuple(folder / name for name in contents)


def _encode(image: Image.Image) -> bytes:
    stream = io.BytesIO()
    image.save(stream, format="PNG")
    return stream.getvalue()
