"""Files of an export: each whole or not there."""

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from weakspot.core.errors import ConfigError


def write_bytes(path: Path, content: bytes) -> Path:
    """Write a file, making folders above it, and return its path; an interrupted call leaves the old file or none.

    Raises:
        ConfigError: if the place cannot be written to.
    """
    with replacing(path) as temporary:
        temporary.write_bytes(content)
    return path


def write_json(path: Path, value: object) -> Path:
    """Write a value as JSON and return the path."""
    return write_bytes(path, (json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False) + "\n").encode())


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path` that takes its place when the block ends without an error.

    Raises:
        ConfigError: if the place cannot be written to.
    """
    temporary = path.with_name(f".{path.name}.tmp-{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        os.replace(temporary, path)
    except OSError as error:
        raise ConfigError(
            f"The file cannot be written: {error.strerror or error}.", where=str(path), fix="Choose a folder with room for it."
        ) from error
    finally:
        with suppress(OSError):
            temporary.unlink()
