"""Files that an export writes: JSON, text and images of samples."""

import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from weakspot.core.errors import ConfigError, DataError
from weakspot.data.images import sniff_format
from weakspot.data.locations import (
    UnreadableLocationError,
    is_local,
    local_path,
    read_location,
    split_range,
)
from weakspot.tools.bundle import ExchangeBundle


def write_bytes(path: Path, content: bytes) -> Path:
    """Write a file, making folders above it, and return its path; an interrupted call leaves the old file or none.

    Raises:
        ConfigError: if the place cannot be written to.
    """
    with replacing(path) as temporary:
        temporary.write_bytes(content)
    return path


def write_json(path: Path, value: object) -> Path:
    return write_bytes(
        path, (json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False) + "\n").encode()
    )


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
            f"The file cannot be written: {error.strerror or error}.",
            where=str(path),
            fix="Choose a folder with room for it.",
        ) from error
    finally:
        with suppress(OSError):
            temporary.unlink()


FOLDER = "images"
_EXTENSIONS = {
    "JPEG": ".jpg",
    "PNG": ".png",
    "GIF": ".gif",
    "BMP": ".bmp",
    "TIFF": ".tif",
    "JPEG 2000": ".jp2",
    "PPM": ".ppm",
    "WebP": ".webp",
    "AVIF": ".avif",
}


def image_paths(
    bundle: ExchangeBundle, folder: Path, rows: list[int] | None = None, *, below: str = FOLDER
) -> list[str | None]:
    """Return an absolute path for the image of every row (all by default), None for samples without an image.

    Whole local files are pointed to, or copied if the bundle says so. Images inside other files (packs, tar shards) and remote
    ones are written to `<folder>/<below>/<sample id>.<extension>`; what is there already is not written again.

    Raises:
        DataError: if an image cannot be read.
    """
    dataset = bundle.samples.dataset
    wanted = range(len(dataset)) if rows is None else rows
    locations, ids = dataset.locations(), dataset.sample_ids()
    target = folder.resolve() / below
    return [_path(locations[row], ids[row], target, copies=bundle.copies_images) for row in wanted]


def _path(location: str | None, sample_id: str, folder: Path, *, copies: bool) -> str | None:
    if location is None:
        return None
    where, part = split_range(location)
    if part is None and is_local(where):
        path = local_path(where).resolve()
        return (
            str(_copy_files(path, folder / f"{sample_id}{path.suffix.lower()}"))
            if copies
            else str(path)
        )
    return str(_write(location, folder, sample_id))


def _copy_files(source: Path, target: Path) -> Path:
    if not source.exists():
        raise DataError(
            "An image is not there.",
            where=str(source),
            fix="Put it back, or run `weakspot ingest` again.",
        )
    if not target.exists():
        with replacing(target) as temporary:
            shutil.copyfile(source, temporary)
    return target


def _write(location: str, folder: Path, sample_id: str) -> Path:
    there = next(
        (
            path
            for path in (folder / f"{sample_id}{end}" for end in _EXTENSIONS.values())
            if path.exists()
        ),
        None,
    )
    if there is not None:
        return there
    try:
        data = read_location(location)
    except UnreadableLocationError as error:
        raise DataError(
            f"An image cannot be read: {error.detail}", where=error.where, fix=error.fix
        ) from error
    found = sniff_format(data)
    return write_bytes(folder / f"{sample_id}{_EXTENSIONS[found] if found else '.bin'}", data)
