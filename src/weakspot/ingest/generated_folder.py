"""A folder of generated images, one sub-folder a class, with or without a table of prompts."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from weakspot.core.dataset import RawSample, Split
from weakspot.core.errors import UnavailableError
from weakspot.core.generated import MAKER, MARK
from weakspot.ingest.image_folder import ImageFolderSource
from weakspot.ingest.one_table import ManifestSource
from weakspot.ingest.problems import Problems
from weakspot.ingest.source import SampleSource, fingerprint_of_listing
from weakspot.ingest.splits import parse_split
from weakspot.ingest.table_source import open_table
from weakspot.ingest.tables import TABLE_EXTENSIONS
from weakspot.media.listing import list_files
from weakspot.media.locations import local_path

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
