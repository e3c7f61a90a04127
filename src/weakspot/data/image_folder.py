"""Images in folders named after their classes; generated images with or without a table of prompts."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count, islice
from pathlib import Path, PurePosixPath
from typing import ClassVar

from weakspot.core.dataset import RawSample, Split
from weakspot.core.errors import DataError, UnavailableError
from weakspot.core.generated import MAKER, MARK
from weakspot.data.locations import ListedFile, list_files, local_path, shown_location
from weakspot.data.source import Problems, SampleSource, fingerprint_of_listing, parse_split
from weakspot.data.table_source import ManifestSource, open_table
from weakspot.data.tables import TABLE_EXTENSIONS

IMAGE_EXTENSIONS = frozenset(
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


def is_image_name(name: str) -> bool:
    return PurePosixPath(name).suffix.lower() in IMAGE_EXTENSIONS


@dataclass(frozen=True, kw_only=True)
class ImageFolderSource:
    """`<class>/.../image.jpg`, or `<split>/<class>/.../image.jpg` when all top folders are named after splits.

    A top folder `synthetic` that holds folders of the same classes is a split also beside class folders. Hidden files and files
    without an image's extension are left out. Images outside any class folder are unlabelled. Folders below the class are kept
    in the metadata column `subfolder`.

    Args:
        location: the top folder.
        default_split: split of images when no folder names one.
    """

    kind: ClassVar[str] = "image-folder"
    location: str
    default_split: Split | None = None

    def fingerprint(self) -> str:
        overview = _look_through(self.location, self.kind, self.default_split)
        # A folder that changed is seen as it is now.
        self.__dict__["_overview"] = overview
        return overview.fingerprint

    def count(self) -> int:
        return self._overview.n_images

    def read(self, start: int = 0) -> Iterator[RawSample]:
        splits = self.split_folders
        for file in islice(self._images(), start, None):
            yield self._sample(file, splits)

    @property
    def split_folders(self) -> frozenset[str]:
        """Return the top folders that are splits; raise when that is unclear or there is no image at all."""
        overview = self._overview
        if overview.n_images == 0:
            raise _no_images(self.location, overview.others)
        return self._splits_among(overview.folders_in)

    @cached_property
    def _overview(self) -> "_Overview":
        return _look_through(self.location, self.kind, self.default_split)

    def _splits_among(self, folders_in: dict[str, set[str]]) -> frozenset[str]:
        named = frozenset(top for top in folders_in if parse_split(top) is not None)
        if not named or len(named) == len(folders_in):
            return named
        if not any(folders_in[top] for top in named):
            # Only images inside: `train` beside `bus` and `car` is a vehicle.
            return frozenset()
        classes = set(folders_in) - named
        if all(parse_split(top) is Split.SYNTHETIC and folders_in[top] <= classes for top in named):
            return named
        raise DataError(
            "Some top folders are named after splits and others are not, so it is unclear which level is the class.",
            where=shown_location(self.location),
            given=sorted(folders_in)[:12],
            fix="Move the folders that are not splits elsewhere, or write a manifest.",
        )

    def _images(self) -> Iterator[ListedFile]:
        return (file for file in list_files(self.location) if is_image_name(file.relative))

    def _sample(self, file: ListedFile, splits: frozenset[str]) -> RawSample:
        folders = file.relative.split("/")[:-1]
        split = (
            parse_split(folders.pop(0)) if folders and folders[0] in splits else self.default_split
        )
        return RawSample(
            key=file.relative,
            location=file.location,
            labels=tuple(folders[:1]),
            split=split.value if split is not None else None,
            metadata={"subfolder": "/".join(folders[1:])} if folders[1:] else {},
            stamp=file.lasting_stamp,
        )


@dataclass(frozen=True, kw_only=True)
class _Overview:
    """What one look through all files tells, without keeping any of them.

    Args:
        fingerprint: over paths, sizes and times of change of images.
        n_images: how many.
        folders_in: folders inside every top folder that holds images.
        others: how many files are no images, by extension.
    """

    fingerprint: str
    n_images: int
    folders_in: dict[str, set[str]]
    others: Counter[str]


def _look_through(location: str, *settings: object) -> _Overview:
    others: Counter[str] = Counter()
    folders_in: dict[str, set[str]] = {}
    counted = count()

    def images() -> Iterator[ListedFile]:
        for file in list_files(location):
            if not is_image_name(file.relative):
                others[PurePosixPath(file.relative).suffix.lower() or "no extension"] += 1
                continue
            next(counted)
            top, *below = file.relative.split("/")
            if below:
                folders_in.setdefault(top, set()).update(below[:1] if len(below) > 1 else ())
            yield file

    fingerprint = fingerprint_of_listing(images(), *settings)
    return _Overview(
        fingerprint=fingerprint, n_images=next(counted), folders_in=folders_in, others=others
    )


def _no_images(location: str, others: Counter[str]) -> DataError:
    found = ", ".join(f"{count} with {name}" for name, count in others.most_common(5))
    return DataError(
        "The folder holds no images.",
        where=shown_location(location),
        given=f"files: {found}" if found else "an empty folder",
        fix="Point to the folder whose sub-folders are named after the classes.",
    )


TABLE_NAMES = ("metadata", "manifest")
IMAGE_COLUMNS, PROMPT = ("image", "picture"), "prompt"
_VERIFYING = (Split.VALIDATION, Split.TEST)


@dataclass(frozen=True, kw_only=True)
class GeneratedFolder:
    """`<class>/.../image.png`, or a table `metadata.csv` or `manifest.csv` (or another table format) with one row an image.

    Columns of the table: `image` (or any name that a manifest may have), `label`, `prompt`, `generator`, `seed`; only the first
    is needed, and the label is that of the sub-folder when there is no column for it. Everything is in the split `synthetic`; a
    row that names validation or test keeps that, and is refused when samples are assembled.

    Args:
        location: the folder.
    """

    kind: ClassVar[str] = "generated-images"
    location: str

    def fingerprint(self) -> str:
        self._need_folder()
        return fingerprint_of_listing(list_files(self.location), self.kind)

    def count(self) -> int | None:
        return self._inner.count()

    def read(self, start: int = 0) -> Iterator[RawSample]:
        return map(self._generate, self._inner.read(start))

    @cached_property
    def _inner(self) -> SampleSource:
        self._need_folder()
        folder = Path(self.location)
        tables = [
            folder / f"{name}{extension}" for name in TABLE_NAMES for extension in TABLE_EXTENSIONS
        ]
        table = next((path for path in tables if path.is_file()), None)
        if table is None:
            return ImageFolderSource(location=self.location)
        names = open_table(str(table)).header(Problems()).names
        column = next((name for name in IMAGE_COLUMNS if name in names), None)
        return ManifestSource(location=str(table), columns={"path": column} if column else {})

    def _need_folder(self) -> None:
        if not Path(self.location).is_dir():
            raise UnavailableError(
                "There is no such folder of generated images.",
                where=self.location,
                fix="Give one with a sub-folder a class.",
            )

    def _generate(self, sample: RawSample) -> RawSample:
        named = parse_split(sample.split or "")
        texts = {name: _text(sample.metadata.get(name)) for name in (PROMPT, MAKER)}
        return replace(
            sample,
            labels=sample.labels or self._folder_label(sample.location),
            split=(named if named in _VERIFYING else Split.SYNTHETIC).value,
            predictions=None,
            probabilities=None,
            metadata={**sample.metadata, **texts, **({MARK: True} if named in _VERIFYING else {})},
        )

    def _folder_label(self, location: str | None) -> tuple[str, ...]:
        if location is None:
            return ()
        path, folder = Path(local_path(location)), Path(self.location)
        within = path.relative_to(folder).parts if path.is_relative_to(folder) else ()
        return within[:1] if len(within) > 1 else ()


def _text(value: object) -> str | None:
    return None if value is None or not str(value).strip() else str(value).strip()
