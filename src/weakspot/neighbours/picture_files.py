"""Pictures of samples as files that any tool can open."""

import shutil
from pathlib import Path

from weakspot.core.errors import DataError
from weakspot.media.formats import sniff_format
from weakspot.media.locations import UnreadableLocationError, is_local, local_path, read_location, split_range
from weakspot.neighbours.bundle import ExchangeBundle
from weakspot.neighbours.written_files import replacing, write_bytes

FOLDER = "pictures"
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


def picture_paths(bundle: ExchangeBundle, folder: Path, rows: list[int] | None = None, *, below: str = FOLDER) -> list[str | None]:
    """Return an absolute path for the picture of every row (all by default), None for samples without a picture.

    Whole local files are pointed to, or copied if the bundle says so. Pictures inside other files (packs, tar shards) and remote
    ones are written to `<folder>/<below>/<sample id>.<extension>`; what is there already is not written again.

    Raises:
        DataError: if a picture cannot be read.
    """
    dataset = bundle.samples.dataset
    wanted = range(len(dataset)) if rows is None else rows
    locations, ids = dataset.locations(), dataset.sample_ids()
    target = folder.resolve() / below
    return [_path(locations[row], ids[row], target, copies=bundle.copies_pictures) for row in wanted]


def _path(location: str | None, sample_id: str, folder: Path, *, copies: bool) -> str | None:
    if location is None:
        return None
    where, part = split_range(location)
    if part is None and is_local(where):
        path = local_path(where).resolve()
        return str(_copied(path, folder / f"{sample_id}{path.suffix.lower()}")) if copies else str(path)
    return str(_written(location, folder, sample_id))


def _copied(source: Path, target: Path) -> Path:
    if not source.exists():
        raise DataError("A picture is not there.", where=str(source), fix="Put it back, or run `weakspot ingest` again.")
    if not target.exists():
        with replacing(target) as temporary:
            shutil.copyfile(source, temporary)
    return target


def _written(location: str, folder: Path, sample_id: str) -> Path:
    there = next((path for path in (folder / f"{sample_id}{end}" for end in _EXTENSIONS.values()) if path.exists()), None)
    if there is not None:
        return there
    try:
        data = read_location(location)
    except UnreadableLocationError as error:
        raise DataError(f"A picture cannot be read: {error.detail}", where=error.where, fix=error.fix) from error
    found = sniff_format(data)
    return write_bytes(folder / f"{sample_id}{_EXTENSIONS[found.name] if found else '.bin'}", data)
