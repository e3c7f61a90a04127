"""COCO detection data: each box of a file of instances is a sample."""

import glob
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath
from typing import ClassVar

import numpy as np

from weakspot.core.arrays import IntArray
from weakspot.core.dataset import RawSample, Split
from weakspot.core.errors import DataError
from weakspot.ingest.boxes import Box, BoxedImage, BoxOptions, Corners
from weakspot.ingest.coco_table import CocoTable, read_coco
from weakspot.ingest.crops import cut_out
from weakspot.ingest.detections import Detections, read_detections
from weakspot.ingest.source import (
    fingerprint_of_files,
    fingerprint_of_listing,
    fingerprint_of_values,
)
from weakspot.ingest.splits import parse_split
from weakspot.media.listing import file_facts, is_folder, is_there, match_files
from weakspot.media.locations import (
    UnreadableLocationError,
    is_local,
    join_location,
    local_path,
    parent_location,
    shown_location,
)

_WORDS = re.compile(r"[A-Za-z]+")
_FIRST_KEYS = re.compile(
    rb'^\s*\{\s*"(images|annotations|categories|info|licenses|license|type)"\s*:'
)
_NAME_IN_SPLIT = "_annotations.coco.json"
_PATTERNS = (
    "instances_*.json",
    "annotations/instances_*.json",
    _NAME_IN_SPLIT,
    f"*/{_NAME_IN_SPLIT}",
)


def is_coco_start(data: bytes) -> bool:
    """Return whether the first bytes of a file are those of a COCO file."""
    return _FIRST_KEYS.match(data.removeprefix(b"\xef\xbb\xbf")) is not None


def coco_files(folder: str) -> list[str]:
    """Return the COCO files of a folder: `annotations/instances_*.json` or `<split>/_annotations.coco.json`."""
    top = glob.escape(str(local_path(folder))) if is_local(folder) else folder
    return sorted(
        {file for pattern in _PATTERNS for file in match_files(join_location(top, pattern))}
    )


@dataclass(frozen=True, kw_only=True)
class _Part:
    """One file of instances, with the folder of its images."""

    location: str
    table: CocoTable
    folder: str
    split: Split | None
    prefix: str


@dataclass(frozen=True, kw_only=True)
class CocoSource:
    """Boxes of one or several COCO files of instances, each cut out of its image.

    The split follows from the file's name or folder (`instances_val2017.json`, `train/_annotations.coco.json`); an image without
    one is put, with all its boxes, where a hash of its name says. Images without boxes are no samples.

    Args:
        location: a file, or a folder that holds files by their usual names.
        options: how boxes become samples.
        default_split: split of boxes when no name tells one.
    """

    kind: ClassVar[str] = "coco"
    location: str
    options: BoxOptions = field(default_factory=BoxOptions)
    default_split: Split | None = None

    def fingerprint(self) -> str:
        given = [self.options.detections] if self.options.detections else []
        content = fingerprint_of_files(
            [*self._files, *given], self.kind, self.options, self.default_split
        )
        facts = (
            file_facts(place)
            for place in self._image_places()
            if is_local(place) and is_there(place)
        )
        return fingerprint_of_values([content, fingerprint_of_listing(facts)])

    def count(self) -> int:
        return sum(part.table.n_boxes for part in self._parts)

    @property
    def known_classes(self) -> tuple[str, ...]:
        """Return all classes, also those without a box, if detections may name them; else none, and the labels tell."""
        if self._detections is None:
            return ()
        listed = dict.fromkeys(name for part in self._parts for name in part.table.classes.values())
        return (*listed, self._detections.missed)

    def read(self, start: int = 0) -> Iterator[RawSample]:
        return cut_out(self._images(start), self.options)

    def _images(self, start: int) -> Iterator[BoxedImage]:
        before = 0
        for part in self._parts:
            first = max(0, start - before)
            before += part.table.n_boxes
            if first < part.table.n_boxes:
                yield from self._images_of(part, first)

    def _images_of(self, part: _Part, first: int) -> Iterator[BoxedImage]:
        table = part.table
        split = part.split or self.default_split
        begin = int(np.searchsorted(table.starts, first, side="right")) - 1
        for place in range(begin, len(table.images)):
            image = table.images[place]
            boxes = np.arange(max(first, int(table.starts[place])), int(table.starts[place + 1]))
            yield BoxedImage(
                location=join_location(part.folder, image.name) if image.name else None,
                name=image.name,
                image_id=image.image_id,
                split=split.value if split is not None else None,
                size=image.size,
                boxes=self._boxes(part, image.image_id, boxes),
                n_boxes=int(table.starts[place + 1] - table.starts[place]),
            )

    def _boxes(self, part: _Part, image_id: str, places: IntArray) -> tuple[Box, ...]:
        said = (
            None
            if self._detections is None
            else self._detections.matched(image_id, part.table, places)
        )
        return tuple(
            _box(part, image_id, place, None if said is None else said[number])
            for number, place in enumerate(places.tolist())
        )

    @cached_property
    def _files(self) -> list[str]:
        if not is_folder(self.location):
            return [self.location]
        found = coco_files(self.location)
        if not found:
            raise DataError(
                "The folder holds no COCO file.",
                where=shown_location(self.location),
                fix="Point to the JSON file, or call it instances_<split>.json or <split>/_annotations.coco.json.",
            )
        return found

    @cached_property
    def _parts(self) -> tuple[_Part, ...]:
        several = len(self._files) > 1
        parts = []
        for location in self._files:
            table = read_coco(location)
            name = f"{split_word(location)}: " if several else ""
            folder = images_folder(location, table, self.options.images)
            parts.append(
                _Part(
                    location=location,
                    table=table,
                    folder=folder,
                    split=split_of_coco(location),
                    prefix=name,
                )
            )
        return tuple(parts)

    @cached_property
    def _detections(self) -> Detections | None:
        if not self.options.detections:
            return None
        classes = {
            number: name for part in self._parts for number, name in part.table.classes.items()
        }
        return read_detections(self.options.detections, classes, overlap=self.options.overlap)

    def _image_places(self) -> Iterator[str]:
        for part in self._parts:
            for image in part.table.images:
                if image.name:
                    yield join_location(part.folder, image.name)


def split_word(location: str) -> str:
    """Return what tells one COCO file from its neighbours: the end of its name, or its folder.

    >>> split_word("annotations/instances_val2017.json"), split_word("data/train/_annotations.coco.json")
    ('val2017', 'train')
    """
    path = PurePosixPath(location.replace("\\", "/"))
    if path.name == _NAME_IN_SPLIT:
        return path.parent.name
    return path.stem.rpartition("_")[2]


def split_of_coco(location: str) -> Split | None:
    """Return the split that the name of a COCO file tells, or None.

    >>> split_of_coco("annotations/instances_val2017.json"), split_of_coco("boxes.json")
    (<Split.VALIDATION: 'validation'>, None)
    """
    words = _WORDS.findall(split_word(location))
    return next((split for word in words if (split := parse_split(word)) is not None), None)


def images_folder(location: str, table: CocoTable, given: str) -> str:
    """Return the folder that names of images start at: the given one, else the first around the file that holds one of them.

    Raises:
        DataError: naming the folders that were looked into.
    """
    beside = parent_location(location)
    above = join_location(beside, "..")
    word = split_word(location)
    choices = [given] if given else [beside]
    if not given:
        choices += [
            join_location(top, name)
            for top in (beside, above)
            for name in ("images", word, f"images/{word}", "data")
        ]
    names = [image.name for image in table.images if image.name][:5]
    for folder in choices:
        if any(_is_there(join_location(folder, name)) for name in names):
            return folder
    raise DataError(
        "The images of the annotations are not there.",
        where=shown_location(location),
        given=f"{names[0] if names else 'no names'}, looked for in {', '.join(map(shown_location, choices))}",
        fix="Set [boxes] images to the folder that holds them.",
    )


def _is_there(location: str) -> bool:
    try:
        return is_there(location)
    except (UnreadableLocationError, OSError):
        return False


def _box(part: _Part, image_id: str, place: int, prediction: str | None) -> Box:
    table = part.table
    number, category = table.ids[place], table.categories[place]
    label = table.classes.get(category)
    reason, detail = "", ""
    if not image_id:
        reason, detail = "unknown-image", f"annotation {number}"
    elif table.is_crowd[place]:
        reason = "crowd"
    elif label is None:
        reason, detail = "unknown-class", f"category_id {category or 'missing'}"
    corners: Corners = tuple(table.corners[place].tolist())
    return Box(
        key=f"{part.prefix}{image_id or '?'}/{number}",
        annotation_id=number,
        category_id=category,
        label=label,
        corners=corners,
        reason=reason,
        detail=detail,
        prediction=prediction,
        attributes=table.attributes.get(place, {}),
    )
