"""Pictures in folders named after their classes."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import PurePosixPath
from typing import ClassVar

from weakspot.core.dataset import RawSample, Split
from weakspot.core.errors import DataError
from weakspot.ingest.fingerprints import fingerprint_of_listing
from weakspot.ingest.splits import parse_split
from weakspot.media.listing import ListedFile, list_files
from weakspot.media.locations import shown_location

PICTURE_EXTENSIONS = frozenset(
    {
        ".jpg",
        ".jpeg",
        ".jpe",
        ".jfif",
        ".png",
        ".gif",
        ".webp",
        ".bmp",
        ".tif",
        ".tiff",
        ".ppm",
        ".pgm",
        ".pbm",
        ".pnm",
        ".jp2",
        ".j2k",
        ".avif",
        ".heic",
        ".heif",
        ".jxl",
    }
)


def is_picture_name(name: str) -> bool:
    """Return whether a file name has an extension of a picture."""
    return PurePosixPath(name).suffix.lower() in PICTURE_EXTENSIONS


@dataclass(frozen=True, kw_only=True)
class ImageFolderSource:
    """`<class>/.../picture.jpg`, or `<split>/<class>/.../picture.jpg` when all top folders are named after splits.

    Hidden files and files without a picture's extension are left out. Pictures outside any class folder are unlabelled. Folders
    below the class are kept in the metadata column `subfolder`.

    Args:
        location: the top folder.
        default_split: split of pictures when no folder names one.
    """

    kind: ClassVar[str] = "image-folder"
    location: str
    default_split: Split | None = None

    def fingerprint(self) -> str:
        """Return a hash over paths, sizes and times of change."""
        return fingerprint_of_listing(self._pictures(), self.kind, self.default_split)

    def count(self) -> int:
        """Return the number of pictures."""
        return sum(1 for _ in self._pictures())

    def read(self, start: int = 0) -> Iterator[RawSample]:
        """Yield samples from position `start` on."""
        has_splits = self.has_splits
        for file in islice(self._pictures(), start, None):
            yield self._sample(file, has_splits=has_splits)

    @cached_property
    def has_splits(self) -> bool:
        """Return whether the top folders are splits; raise when that is unclear or there is no picture at all."""
        others: Counter[str] = Counter()
        tops: dict[str, int] = {}
        n_pictures = 0
        for file in list_files(self.location):
            if not is_picture_name(file.relative):
                others[PurePosixPath(file.relative).suffix.lower() or "no extension"] += 1
                continue
            n_pictures += 1
            top, *below = file.relative.split("/")
            if below:
                tops[top] = max(tops.get(top, 0), len(below))
        if n_pictures == 0:
            raise _no_pictures(self.location, others)
        return self._are_splits(tops)

    def _are_splits(self, depth_of: dict[str, int]) -> bool:
        named = [top for top in depth_of if parse_split(top) is not None]
        if not named or len(named) == len(depth_of):
            return bool(named)
        if all(depth_of[top] == 1 for top in named):
            # Only pictures inside: `train` beside `bus` and `car` is a vehicle.
            return False
        raise DataError(
            "Some top folders are named after splits and others are not, so it is unclear which level is the class.",
            where=shown_location(self.location),
            given=sorted(depth_of)[:12],
            fix="Move the folders that are not splits elsewhere, or write a manifest.",
        )

    def _pictures(self) -> Iterator[ListedFile]:
        return (file for file in list_files(self.location) if is_picture_name(file.relative))

    def _sample(self, file: ListedFile, *, has_splits: bool) -> RawSample:
        folders = file.relative.split("/")[:-1]
        split = parse_split(folders.pop(0)) if has_splits and folders else self.default_split
        return RawSample(
            key=file.relative,
            location=file.location,
            labels=tuple(folders[:1]),
            split=split.value if split is not None else None,
            metadata={"subfolder": "/".join(folders[1:])} if folders[1:] else {},
        )


def _no_pictures(location: str, others: Counter[str]) -> DataError:
    found = ", ".join(f"{count} with {name}" for name, count in others.most_common(5))
    return DataError(
        "The folder holds no pictures.",
        where=shown_location(location),
        given=f"files: {found}" if found else "an empty folder",
        fix="Point to the folder whose sub-folders are named after the classes.",
    )
