"""Annotations of CVAT: tasks written for people to label, and their answers read back."""

import re
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from weakspot.core.errors import DataError
from weakspot.store.csv_tables import csv_text
from weakspot.tools.bundle import ExchangeBundle, Names, Written, predicted_names
from weakspot.tools.files import write_bytes, write_json
from weakspot.tools.label_studio import places_to_label
from weakspot.tools.tables import AgreedLabels, refuse_extension

TAGS_FILE = "annotations.xml"
LABELS_FILE = "labels.json"
LIST_FILE = "to_label.csv"
IMAGES_FOLDER = "images"
SUGGESTED = "auto"


def write_tasks(bundle: ExchangeBundle, folder: Path) -> Written:
    """Write images named after sample ids, `labels.json` for the task, suggestions as `annotations.xml`, and the reasons as CSV.

    Raises:
        DataError: if there is nothing to label, or a sample to label has no image.
    """
    copied = replace(bundle, copies_images=True)
    names = [Path(path).name for path in places_to_label(copied, folder, below=IMAGES_FOLDER)]
    dataset = bundle.samples.dataset
    sizes = [
        tuple(dataset.table.column(side)[one.row].as_py() for side in ("width", "height"))
        for one in bundle.to_label
    ]
    suggested = predicted_names(dataset)
    said = [list(one.suggested) or suggested[one.row] for one in bundle.to_label]
    files = (
        write_json(
            folder / LABELS_FILE,
            [{"name": name, "type": "tag", "attributes": []} for name in dataset.class_names],
        ),
        write_bytes(folder / TAGS_FILE, _tags(dataset.class_names, names, sizes, said).encode()),
        write_bytes(folder / LIST_FILE, _list(bundle, names, said).encode()),
    )
    create = f"cvat-cli task create {bundle.name} --labels @{LABELS_FILE} local {IMAGES_FOLDER}/*"
    sentence = (
        f"{len(names)} samples to label. In the folder: {create}. {TAGS_FILE} has what marks or the classifier suggest; import it only to "
        'start from them. Then export as "CVAT for images 1.1" and: weakspot import --from cvat annotations.xml --out labels.csv'
    )
    return Written(files=files, sentence=sentence)


def _tags(
    class_names: tuple[str, ...], names: list[str], sizes: list[tuple[int, ...]], said: list[Names]
) -> str:
    labels = "".join(
        f"<label><name>{escape(name)}</name><type>tag</type><attributes></attributes></label>"
        for name in class_names
    )
    lines = ['<?xml version="1.0" encoding="utf-8"?>', "<annotations>", "  <version>1.1</version>"]
    lines.append(
        f"  <meta><task><size>{len(names)}</size><mode>annotation</mode><labels>{labels}</labels></task></meta>"
    )
    for number, (name, size, suggested) in enumerate(zip(names, sizes, said, strict=True)):
        tags = "".join(
            f'<tag label={quoteattr(label)} source="{SUGGESTED}"></tag>'
            for label in suggested or ()
        )
        lines.append(
            f'  <image id="{number}" name={quoteattr(name)} width="{size[0]}" height="{size[1]}">{tags}</image>'
        )
    return "\n".join([*lines, "</annotations>", ""])


def _list(bundle: ExchangeBundle, names: list[str], said: list[Names]) -> str:
    ids = bundle.samples.dataset.sample_ids()
    rows = [
        [ids[one.row], name, "|".join(suggested or ()), one.why, ""]
        for one, name, suggested in zip(bundle.to_label, names, said, strict=True)
    ]
    return csv_text(["sample_id", "image", "suggested_class", "why", "label"], rows)


MAX_BYTES = 1 << 30
_BLOCK_BYTES = 1 << 20
_SAMPLE_ID = re.compile(r"[0-9a-f]{32}(-\d+)?")


def read_annotations(source: Path, target: Path) -> Written:
    """Write a table of the labels that people gave; tags that are still the classifier's suggestion are no labels.

    Images that weakspot named are joined by sample id, others by name.

    Raises:
        DataError: if this is no export of CVAT, or it has no labels.
    """
    refuse_extension(target)
    if zipfile.is_zipfile(source):
        with zipfile.ZipFile(source) as archive:
            name = next(
                (one for one in archive.namelist() if one.rpartition("/")[2] == TAGS_FILE), None
            )
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
            if n_read > MAX_BYTES:
                raise _unreadable(source, f"it is larger than {MAX_BYTES:,} bytes")
            reading.parser.Parse(block)
        reading.parser.Parse(b"", True)  # noqa: FBT003 - the end; the parser takes no names
    except (expat.ExpatError, zipfile.BadZipFile, ValueError) as error:
        raise _unreadable(source, str(error)) from error
    if not reading.is_cvat:
        raise _unreadable(source, "it has no element annotations")
    return reading.labels.written(source, target)


class _Reading:
    """Labels of the images read so far."""

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
            self.labels.add(
                tuple(self._tags),
                sample_id=stem if is_own else "",
                path="" if is_own else self._name,
            )

    def _refuse(self, *_given: object) -> None:
        raise _unreadable(self._source, "it has a document type, which no export of CVAT has")


def _unreadable(source: Path, why: str) -> DataError:
    return DataError(
        f"This is no export of CVAT: {why}.",
        where=str(source),
        fix='Export as "CVAT for images 1.1".',
    )
