"""What people tagged in CVAT, as a table of labels: "CVAT for images 1.1", as XML or inside a zip file.

The file is read by events and never held as a tree. A document type, with which XML can be made to grow without bounds, is refused.
"""

import re
import zipfile
from pathlib import Path
from typing import BinaryIO
from xml.parsers import expat

from weakspot.core.errors import DataError
from weakspot.neighbours.bundle import Written
from weakspot.neighbours.cvat_files import SUGGESTED, TAGS_FILE
from weakspot.neighbours.label_tables import AgreedLabels
from weakspot.neighbours.manifest_files import refuse_extension

MOST_BYTES = 1 << 30
_BLOCK_BYTES = 1 << 20
_SAMPLE_ID = re.compile(r"[0-9a-f]{32}(-\d+)?")


def read_annotations(source: Path, target: Path) -> Written:
    """Write a table of the labels that people gave; tags that are still the classifier's suggestion are no labels.

    Pictures that weakspot named are joined by sample id, others by name.

    Raises:
        DataError: if this is no export of CVAT, or it has no labels.
    """
    refuse_extension(target)
    if zipfile.is_zipfile(source):
        with zipfile.ZipFile(source) as archive:
            name = next((one for one in archive.namelist() if one.rpartition("/")[2] == TAGS_FILE), None)
            if name is None:
                raise _unreadable(source, f"the zip file holds no {TAGS_FILE}")
            with archive.open(name) as stream:
                return _read(stream, source, target)  # type: ignore[arg-type]
    with source.open("rb") as plain:
        return _read(plain, source, target)


def _read(stream: BinaryIO, source: Path, target: Path) -> Written:
    reading = _Reading(source)
    n_read = 0
    try:
        while block := stream.read(_BLOCK_BYTES):
            n_read += len(block)
            if n_read > MOST_BYTES:
                raise _unreadable(source, f"it is larger than {MOST_BYTES:,} bytes")
            reading.parser.Parse(block)
        reading.parser.Parse(b"", True)  # noqa: FBT003 - the end; the parser takes no names
    except (expat.ExpatError, zipfile.BadZipFile, ValueError) as error:
        raise _unreadable(source, str(error)) from error
    if not reading.is_cvat:
        raise _unreadable(source, "it has no element annotations")
    return reading.labels.written(source, target)


class _Reading:
    """Labels of the pictures read so far."""

    def __init__(self, source: Path) -> None:
        self.labels = AgreedLabels()
        self.is_cvat = False
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.StartDoctypeDeclHandler = self._refuse
        self._source = source
        self._name = ""
        self._tags: list[str] = []

    def _start(self, element: str, attributes: dict[str, str]) -> None:
        if element == "annotations":
            self.is_cvat = True
        elif element == "image":
            self._name, self._tags = attributes.get("name", ""), []
        elif element == "tag" and attributes.get("source") != SUGGESTED and attributes.get("label"):
            self._tags.append(attributes["label"])

    def _end(self, element: str) -> None:
        if element == "image" and self._name:
            stem = Path(self._name).stem
            is_own = _SAMPLE_ID.fullmatch(stem) is not None
            self.labels.add(tuple(self._tags), sample_id=stem if is_own else "", path="" if is_own else self._name)

    def _refuse(self, *_given: object) -> None:
        raise _unreadable(self._source, "it has a document type, which no export of CVAT has")


def _unreadable(source: Path, why: str) -> DataError:
    return DataError(
        f"This is no export of CVAT: {why}.",
        where=str(source),
        fix='Export as "CVAT for images 1.1".',
    )
